"""The arguments of the tools for long work: one model per tool is its schema and its parser."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, JsonValue, WithJsonSchema

__all__ = ["JOB_ARGUMENTS", "JOB_NAMES", "KEEP_SECONDS", "CancelJob", "PollJob", "StartJob"]

JOB_NAMES: Final = ("start_job", "poll_job", "cancel_job")
KEEP_SECONDS: Final = 86_400.0
"""How long a job is kept after it ended, where nobody says."""
_LONGEST_KEPT: Final = 7 * 86_400
_AnyObject = Annotated[dict[str, JsonValue], WithJsonSchema({"type": "object", "additionalProperties": True})]


class _Arguments(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class StartJob(_Arguments):
    """Arguments of `start_job`."""

    tool: str = Field(description="Name of a listed tool.")
    arguments: _AnyObject = Field(default_factory=dict, description="Its arguments.")
    keep_seconds: float = Field(
        default=KEEP_SECONDS, ge=60, le=_LONGEST_KEPT, description="How long the result stays."
    )


class PollJob(_Arguments):
    """Arguments of `poll_job`."""

    job: str | None = Field(default=None, description="Its id. Left out: lists your jobs.")
    wait_seconds: float = Field(default=0, ge=0, le=50, description="Wait for a change at most so long.")


class CancelJob(_Arguments):
    """Arguments of `cancel_job`."""

    job: str = Field(description="Its id.")


JOB_ARGUMENTS: Mapping[str, type[BaseModel]] = MappingProxyType(
    dict(zip(JOB_NAMES, (StartJob, PollJob, CancelJob), strict=True))
)
