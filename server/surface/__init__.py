"""The MCP surface: skills and use cases of a bank as tools, in both protocol eras.

It owns the protocol side only: names, schemas, validation, progress, consent forms, list changes.
What a tool does is the bank's (`port.BankPort`).
"""

from server.surface.names import BUILTIN_NAMES, listed_names
from server.surface.port import TRACE_META_KEY, BankPort, PublishedSkill
from server.surface.server import BankServer
from server.surface.serving import AddressUnusable, serve_http, serve_stdio
from server.surface_options import SurfaceOptions

__all__ = [
    "BUILTIN_NAMES",
    "TRACE_META_KEY",
    "AddressUnusable",
    "BankPort",
    "BankServer",
    "PublishedSkill",
    "SurfaceOptions",
    "listed_names",
    "serve_http",
    "serve_stdio",
]
