"""One task of an environment over tool servers, as a worker is given it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

__all__ = ["EnvironmentTask"]


class EnvironmentTask(BaseModel):
    """One task as a worker is given it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    task: str
    """In a person's words, with the concrete values."""
    servers: tuple[str, ...]
    inputs: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    check: Literal["assertions", "judge", "state"] = "assertions"
    assertions: tuple[str, ...] = ()
    """jmespath over `output` (the answer), `inputs` and `nodes` (`c1`, `c2`, …: what calls gave)."""
    answer: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    """Of the reference run; empty where none is known."""
    workflow: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    """Of the reference run; empty where none is known."""
    reference_calls: tuple[tuple[str, dict[str, JsonValue]], ...] = ()
    """What leads to the state that is compared; of `state` tasks only."""
    communicate: tuple[str, ...] = ()
    """What the answer has to say beside."""
