"""Which tool servers are configured, how they are started, and what the operator said of them."""

from catalog.config.curation import CurationSpec
from catalog.config.document import ConfigDocument, read_document
from catalog.config.edit import (
    with_allow,
    with_effects,
    with_inputs,
    with_reset,
    with_reset_check,
    with_server,
    without_profile,
    without_server,
)
from catalog.config.files import load_config, save_config
from catalog.config.formats import name_problem, parse_config, parse_inputs, parse_profile, parse_servers
from catalog.config.inputs import InputSpec
from catalog.config.model import (
    Config,
    Forwarded,
    Learning,
    OAuthSpec,
    ResetCheck,
    ServerSpec,
    Transport,
    expand,
)
from catalog.config.models import MODEL_FORMS, ModelSpec, Role, parse_model
from catalog.config.secrets import carries_credentials, secrets_of

__all__ = [
    "MODEL_FORMS",
    "Config",
    "ConfigDocument",
    "CurationSpec",
    "Forwarded",
    "InputSpec",
    "Learning",
    "ModelSpec",
    "OAuthSpec",
    "ResetCheck",
    "Role",
    "ServerSpec",
    "Transport",
    "carries_credentials",
    "expand",
    "load_config",
    "name_problem",
    "parse_config",
    "parse_inputs",
    "parse_model",
    "parse_profile",
    "parse_servers",
    "read_document",
    "save_config",
    "secrets_of",
    "with_allow",
    "with_effects",
    "with_inputs",
    "with_reset",
    "with_reset_check",
    "with_server",
    "without_profile",
    "without_server",
]
