"""The arguments of the tool for long work: its schema and its parser."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, WithJsonSchema

__all__ = ["JOB_NAME", "KEEP_SECONDS", "JobRequest"]

JOB_NAME: Final = "job"
KEEP_SECONDS: Final = 86_400.0
"""How long a job is kept after it ended, where nobody says."""
_LONGEST_KEPT: Final = 7 * 86_400
_AnyObject = Annotated[dict[str, JsonValue], WithJsonSchema({"type": "object"})]


class JobRequest(BaseModel):
    """Arguments of `job`: `tool` goes with start, `job` with poll and cancel."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    action: Literal["start", "poll", "cancel"] = Field(description="What to do.")
    tool: str | None = Field(default=None, description="start: a listed tool.")
    arguments: _AnyObject = Field(default_factory=dict, description="Its arguments.")
    keep_seconds: float = Field(
        default=KEEP_SECONDS, ge=60, le=_LONGEST_KEPT, description="How long the result stays."
    )
    job: str | None = Field(default=None, description="Its id. poll without: all.")
    wait_seconds: float = Field(default=0, ge=0, le=50, description="poll: wait for a change.")
