"""Skills: a workflow that earned trust, with its signature, tests, evidence and pins.

`s = (f, σ, T, m, ℓ)` (Paper: FlowEvo (skill record); DESIGN §3). Versions are immutable: a
change is a new version; only the state of a version moves, by `skills_store.lifecycle`.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from catalog.effects import Effect
from catalog.tools import ToolId
from skills_store.trace import Verification
from skills_store.workflow.model import Workflow

__all__ = [
    "AdmissionCheck",
    "AdmissionVerdict",
    "Guidance",
    "Pin",
    "Planning",
    "Provenance",
    "RecordedCall",
    "ReplayTest",
    "Signature",
    "Skill",
    "SkillState",
    "ToolHints",
]

SkillState = Literal[
    "proposed", "active", "context_only", "shadow", "suppressed", "stale", "rejected", "retired"
]
Origin = Literal["system", "user"]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Signature(_Record):
    """Typed border of a skill: JSON Schemas of `type: object`, portable for strict hosts."""

    input_schema: dict[str, JsonValue]
    output_schema: dict[str, JsonValue]


class RecordedCall(_Record):
    """One upstream call as it happened: node, arguments, output or its digest."""

    node: str
    item: int | None = None
    tool: ToolId
    arguments: dict[str, JsonValue]
    output: JsonValue = None
    output_digest: str | None = None


class ReplayTest(_Record):
    """Inputs, what came out, and where it may differ.

    `volatile` holds pointers into `outputs` that differ between equal runs and are not compared.
    """

    name: str
    inputs: dict[str, JsonValue]
    outputs: dict[str, JsonValue]
    volatile: tuple[str, ...] = ()
    recorded: tuple[RecordedCall, ...] = ()
    kind: Literal["original", "varied", "held_out", "example"] = "original"


class Pin(_Record):
    """An upstream tool as it was when the skill was verified."""

    tool: ToolId
    contract_hash: str
    effect: Effect


class Planning(_Record):
    """What it cost to plan a task from scratch, the run of the plan itself left out."""

    tokens: int
    """0 where no model was asked."""
    seconds: float
    calls: int
    """Upstream calls of plans that were tried before the one that came out right."""


class Provenance(_Record):
    """Where a skill came from."""

    task: str | None = None
    traces: tuple[str, ...] = ()
    parent_version: int | None = None
    edits: tuple[str, ...] = ()
    """Readable edits of the repair that led here."""
    verifications: tuple[Verification, ...] = ()
    explicit_save: bool = False
    imported_from: str | None = None
    """File it came from and the digest it had there; None: it was made in this bank."""
    named: tuple[str, ...] = ()
    """Inputs that whoever saved it named."""
    plannings: tuple[Planning, ...] = ()
    """Of those runs it was made from that were planned from scratch."""
    worded_by: str | None = None
    """Model that wrote into its title, description and guidance; None: all of them are rendered."""


class Guidance(_Record):
    """Text beside the body, rendered from graph and schemas, never from tool output."""

    when_to_use: str = ""
    when_not: tuple[str, ...] = ()
    """Negative preconditions: where it cannot help."""
    pitfalls: tuple[str, ...] = ()


class SkillWords(_Record):
    """The words beside a version's body as a model put them."""

    title: str | None = None
    description: str = ""
    guidance: Guidance = Guidance()
    worded_by: str
    """The model."""


class ToolHints(_Record):
    """Annotations of the published tool, derived from those of its upstream tools."""

    read_only: bool = False
    destructive: bool = True
    idempotent: bool = False
    open_world: bool = True


class AdmissionCheck(_Record):
    """One gate with what it looked at."""

    name: str
    gate: Literal["duplicate", "interface", "function", "safety", "trivial"]
    passed: bool
    detail: str
    leaves: SkillState | None = None
    """Best state that the failed check leaves open; None: it passed, or this was not written down."""
    inputs: JsonValue = None
    seconds: float = 0.0


class AdmissionVerdict(_Record):
    """The state a candidate earned, and every check that led there."""

    state: SkillState
    reason: str
    checks: tuple[AdmissionCheck, ...] = ()


class Skill(_Record):
    """One immutable version of a skill. `state` and `reason` move by the lifecycle only.

    What its title, description and guidance say is settled when it becomes active: nobody who calls
    tools has seen them before.
    """

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")
    version: int = Field(ge=1)
    state: SkillState
    reason: str = ""
    origin: Origin = "system"
    description: str = ""
    title: str | None = None
    workflow: Workflow
    content_hash: str
    shape_hash: str
    signature: Signature
    tests: tuple[ReplayTest, ...] = ()
    pins: tuple[Pin, ...] = ()
    hints: ToolHints = ToolHints()
    guidance: Guidance = Guidance()
    provenance: Provenance = Provenance()
    verdict: AdmissionVerdict | None = None
    tags: tuple[str, ...] = ()
    created_at: float = 0.0
    """Unix seconds."""

    def worded(self, words: SkillWords | None) -> Skill:
        """Return it with other words beside its body, as it is without any."""
        if words is None:
            return self
        said = {"title": words.title, "description": words.description, "guidance": words.guidance}
        provenance = self.provenance.model_copy(update={"worded_by": words.worded_by})
        return self.model_copy(update={**said, "provenance": provenance})
