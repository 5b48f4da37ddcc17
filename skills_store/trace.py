"""Traces: what was executed. A planned node is `skills_store.workflow.model.Node`, never this.

Values are already redacted and bounded when a trace is built: past `PREVIEW_BYTES` a value is
stored by digest with a preview, and the full value lives in the spill folder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from catalog.effects import Effect
from catalog.tools import ToolId
from skills_store.workflow.faults import Fault

__all__ = [
    "PREVIEW_BYTES",
    "Coercion",
    "Outcome",
    "RecordingSummary",
    "Status",
    "Step",
    "Trace",
    "Verification",
]

PREVIEW_BYTES = 16_384

Status = Literal["verified", "succeeded", "unverified", "failed", "needs_approval", "cancelled"]
Outcome = Literal["succeeded", "failed", "skipped", "not_reached"]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Coercion(_Record):
    """A scalar text that was turned into the type its schema asks for."""

    pointer: str
    before: JsonValue
    after: JsonValue


class Step(_Record):
    """One executed call of one node, or of one item of a mapped node."""

    node: str
    item: int | None = None
    """Index in the `for_each` list, None outside of a mapped node."""
    tool: ToolId | None = None
    skill: str | None = None
    arguments: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    """As sent, after references and coercion."""
    outcome: Outcome
    output: JsonValue = None
    """Node output, or its digest and preview when large; None unless succeeded."""
    output_digest: str | None = None
    """`sha256:…` of the full output; None unless succeeded."""
    content: list[JsonValue] = Field(default_factory=list[JsonValue])
    """The raw content blocks of a failed call, bounded."""
    fault: Fault | None = None
    seconds: float = 0.0
    effect: Effect = Effect.UNKNOWN
    from_memory: bool = False
    """An equal earlier answer stood in: no upstream call was made."""
    coercions: tuple[Coercion, ...] = ()
    wave: int = 0


class Verification(_Record):
    """Who said the run was right, and how."""

    by: Literal["assertion", "schema", "postcondition", "replay", "judge", "feedback"]
    passed: bool
    detail: str = ""


class Trace(_Record):
    """One execution of one workflow."""

    id: str
    workflow_hash: str
    """`content_hash` of the workflow that ran."""
    inputs: dict[str, JsonValue]
    steps: tuple[Step, ...]
    outputs: dict[str, JsonValue] | None
    """None when the run did not get that far."""
    faults: tuple[Fault, ...] = ()
    status: Status
    calls: int = 0
    """Upstream calls made; answers from memory are not counted."""
    seconds: float = 0.0
    started_at: float = 0.0
    """Unix seconds."""
    task: str | None = None
    """The task in a person's words, None when none was given."""
    verifications: tuple[Verification, ...] = ()
    level: str | None = None
    """How far a solve with a model had escalated when this ran, None outside of one."""
    route: str | None = None
    """Which way the task went that this ran for, None outside of a solve."""
    route_reasons: tuple[str, ...] = ()
    """Why it went that way."""
    workflow: dict[str, JsonValue] | None = None
    """The document that ran, secrets taken out; None for a single relayed call."""
    recording: str | None = None
    """Name of the conversation whose calls belong together, None outside of one."""


@dataclass(frozen=True, slots=True)
class RecordingSummary:
    """One conversation whose relayed calls were kept."""

    name: str
    calls: int
    started_at: float
    """Unix seconds, of its first call."""
    last_at: float
    """Unix seconds, of its last call."""
