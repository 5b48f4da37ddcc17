"""How a provider is reached: key and address, as the settings read them from the environment.

A key is sent to its provider and nowhere else: it is neither stored nor shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from catalog.config import ModelSpec

__all__ = ["KEY_VARIABLES", "URL_VARIABLES", "Access", "access_of"]

KEY_VARIABLES: Mapping[str, str] = MappingProxyType(
    {
        "anthropic": "ANTHROPIC_API_KEY",
        "openai": "OPENAI_API_KEY",
        "openai-compatible": "SKILLBANK_API_KEY",
    }
)
"""Where the key of each kind of model is read from."""
URL_VARIABLES: Mapping[str, str] = MappingProxyType(
    {"anthropic": "ANTHROPIC_BASE_URL", "openai": "OPENAI_BASE_URL"}
)
"""Where another address of a provider, such as a gateway, is read from."""


@dataclass(frozen=True, slots=True)
class Access:
    """Address and key of one provider."""

    key: str | None = field(default=None, repr=False)
    """None: there is none."""
    url: str | None = None
    """None: the provider's own."""
    variable: str = ""
    """Where the key is read from, for messages."""


def access_of(spec: ModelSpec, environment: Mapping[str, str]) -> Access:
    """Return how a model is reached, given the variables of the environment."""
    variable = KEY_VARIABLES.get(spec.kind, "")
    return Access(
        key=environment.get(variable, "").strip() or None,
        url=spec.url or environment.get(URL_VARIABLES.get(spec.kind, ""), "").strip() or None,
        variable=variable,
    )
