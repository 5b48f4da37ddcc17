"""The MCP surface: skills and use cases of a bank as tools, in both protocol eras.

It owns the protocol side only: names, schemas, validation, progress, consent forms, list changes.
What a tool does is the bank's (`port.BankPort`).
"""

from server.surface.access import Access
from server.surface.auth import MachineToken, token_file
from server.surface.names import BUILTIN_NAMES, listed_names
from server.surface.port import TRACE_META_KEY, BankPort, PublishedSkill
from server.surface.principals import LOCAL, Principal
from server.surface.server import BankServer
from server.surface.serving import AddressUnusable, serve_http, serve_stdio
from server.surface_options import SurfaceOptions

__all__ = [
    "BUILTIN_NAMES",
    "LOCAL",
    "TRACE_META_KEY",
    "Access",
    "AddressUnusable",
    "BankPort",
    "BankServer",
    "MachineToken",
    "Principal",
    "PublishedSkill",
    "SurfaceOptions",
    "listed_names",
    "serve_http",
    "serve_stdio",
    "token_file",
]
