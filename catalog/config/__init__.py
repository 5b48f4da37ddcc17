"""Which tool servers are configured, how they are started, and what the operator said of them."""

from catalog.config.document import ConfigDocument, read_document
from catalog.config.edit import with_allow, with_effects, with_reset, with_server
from catalog.config.files import load_config, save_config
from catalog.config.formats import parse_config
from catalog.config.model import Config, Learning, ServerSpec, Transport, expand

__all__ = [
    "Config",
    "ConfigDocument",
    "Learning",
    "ServerSpec",
    "Transport",
    "expand",
    "load_config",
    "parse_config",
    "read_document",
    "save_config",
    "with_allow",
    "with_effects",
    "with_reset",
    "with_server",
]
