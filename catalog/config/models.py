"""Which model plays which role, as one string each: what such a string may say.

`anthropic:MODEL`, `openai:MODEL`, `openai-compatible:URL#MODEL`, `local:NAME`, `sampling`, `none`.
What reaches such a model belongs to the server.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast, get_args
from urllib.parse import SplitResult, urlsplit

__all__ = [
    "EMBEDDINGS",
    "MODEL_FORMS",
    "MODEL_KEYS",
    "ROLES",
    "ModelKind",
    "ModelSpec",
    "Role",
    "parse_embeddings",
    "parse_model",
]

Role = Literal["planner", "editor", "judge", "explorer"]
ModelKind = Literal["anthropic", "openai", "openai-compatible", "local", "sampling", "none"]

ROLES: tuple[Role, ...] = get_args(Role)
EMBEDDINGS = "embeddings"
"""The key of what measures likeness of texts; `default` does not stand for it."""
MODEL_KEYS: tuple[str, ...] = ("default", *ROLES, EMBEDDINGS)
"""What the `models` key may hold; `default` stands for every role that is not named."""
MODEL_FORMS = "anthropic:MODEL, openai:MODEL, openai-compatible:URL#MODEL, local:NAME, sampling, none"


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """One configured model. Made by `parse_model`."""

    kind: ModelKind
    model: str = ""
    """As its provider names it; empty for `sampling` and `none`, and where a server has only one."""
    url: str = ""
    """Of an OpenAI-compatible server, without its credentials; empty for all others."""

    def __str__(self) -> str:
        if self.kind in ("sampling", "none"):
            return self.kind
        return f"{self.kind}:{self.url}#{self.model}" if self.url else f"{self.kind}:{self.model}"


def parse_model(text: str) -> ModelSpec:
    """Return the model that a string names.

    Raises:
        ValueError: it is none of the forms; says what is wrong and which forms there are.
    """
    kind, colon, rest = text.strip().partition(":")
    if kind not in get_args(ModelKind):
        raise _no_model(text, f"there is no kind of model called {kind!r}")
    if kind in ("sampling", "none"):
        if colon:
            raise _no_model(text, f"{kind!r} stands alone")
        return ModelSpec(cast("ModelKind", kind))
    if kind == "openai-compatible":
        return _compatible(text, rest)
    if not rest or rest != rest.strip():
        raise _no_model(text, f"say which model: {kind}:NAME")
    return ModelSpec(cast("ModelKind", kind), rest)


def _compatible(text: str, rest: str) -> ModelSpec:
    address, _, model = rest.partition("#")
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port or 1)
    except ValueError:
        usable = False
        parts = SplitResult("", "", "", "", "")
    if not usable:
        raise _no_model(text, "say where it is, such as http://127.0.0.1:8080/v1")
    if parts.username or parts.password or parts.query:
        raise _no_model("", "an address holds no key: it is read from SKILLBANK_API_KEY")
    return ModelSpec("openai-compatible", model.strip(), address.rstrip("/"))


def parse_embeddings(text: str) -> ModelSpec:
    """Return the source of embeddings that a string names.

    Raises:
        ValueError: it is none of the forms, or of a kind that has no embeddings.
    """
    spec = parse_model(text)
    if spec.kind not in ("openai", "openai-compatible", "none"):
        raise ValueError(f"{spec.kind!r} has no embeddings: use openai:MODEL or openai-compatible:URL#MODEL")
    return spec


def _no_model(text: str, why: str) -> ValueError:
    return ValueError(f"{text!r} names no model: {why}; forms: {MODEL_FORMS}" if text else why)
