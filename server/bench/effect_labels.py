"""How often proposed effect classes are right, on real tools that a person labelled by their text.

The sample is drawn by seed from every recorded server alike, so that servers with few tools and
many writes weigh as much as those with hundreds of formulas. Its labels were made from each tool's
text without a look at what is proposed. The error that counts is a write proposed as free.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from importlib import resources
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from catalog.canonical import JsonValue
from catalog.effect_profile import propose_effect
from catalog.effects import Effect
from catalog.tools import Annotations, Tool, ToolId

__all__ = [
    "EffectConfusion",
    "LabelledTool",
    "Misjudged",
    "Sample",
    "effect_confusion",
    "labelled_tools",
    "render_effect_confusion",
]

Sample = Literal["tuning", "fresh", "final"]
_FREE = (Effect.PURE, Effect.READ)


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Hints(_Model):
    read_only: bool | None = Field(default=None, alias="readOnlyHint")
    destructive: bool | None = Field(default=None, alias="destructiveHint")
    idempotent: bool | None = Field(default=None, alias="idempotentHint")
    open_world: bool | None = Field(default=None, alias="openWorldHint")


class LabelledTool(_Model):
    """One recorded tool, what a proposer reads of it, and what it truly does."""

    sample: Sample
    """`tuning` was looked at while the rules were made, `fresh` was labelled and run once after; one
    rule came of it. `final` was labelled and run once after that, and changed nothing."""
    server: str
    tool: str
    title: str | None = None
    description: str
    parameters: dict[str, str | None]
    """JSON type by name, None where the schema says none or several."""
    annotations: _Hints = _Hints()
    label: Literal["pure", "read", "write"]
    why: str

    def to_tool(self) -> Tool:
        """Return the tool as a proposer gets it."""
        typed: dict[str, JsonValue] = {
            name: {} if kind is None else {"type": kind} for name, kind in self.parameters.items()
        }
        hints = self.annotations
        return Tool(
            ToolId(self.server, self.tool),
            {"type": "object", "properties": typed},
            title=self.title,
            description=self.description,
            annotations=Annotations(hints.read_only, hints.destructive, hints.idempotent, hints.open_world),
        )


class Misjudged(_Model):
    """A tool proposed as freer than it is."""

    tool: str
    label: Effect
    proposed: Effect
    reason: str
    """The proposer's."""
    why: str
    """The label's."""


class EffectConfusion(_Model):
    """Labels against proposals."""

    tools: int
    counts: dict[Effect, dict[Effect, int]]
    """How many of each label were proposed as each class."""
    writes_as_free: tuple[Misjudged, ...]
    reads_as_pure: tuple[Misjudged, ...]

    @property
    def error_share(self) -> float:
        """Writes proposed as free, of all tools."""
        return len(self.writes_as_free) / self.tools

    @property
    def useful_share(self) -> float:
        """Tools that are free and proposed so, of those that are free."""
        free = [self.counts[label] for label in _FREE]
        return sum(row[effect] for row in free for effect in _FREE) / sum(sum(row.values()) for row in free)


def labelled_tools(sample: Sample | None = None) -> tuple[LabelledTool, ...]:
    """Return the labelled tools, of one sample or of all."""
    text = resources.files("server.bench").joinpath("data/labelled_tools.jsonl").read_text("utf-8")
    found = (LabelledTool.model_validate_json(line) for line in text.splitlines())
    return tuple(tool for tool in found if sample is None or tool.sample == sample)


def effect_confusion(sample: Iterable[LabelledTool]) -> EffectConfusion:
    """Return what is proposed for these tools against what they are."""
    judged = [(tool, propose_effect(tool.to_tool())) for tool in sample]
    counted = Counter((Effect(tool.label), proposal.effect) for tool, proposal in judged)
    freer = [
        Misjudged(
            tool=str(proposal.tool),
            label=Effect(tool.label),
            proposed=proposal.effect,
            reason=proposal.reason,
            why=tool.why,
        )
        for tool, proposal in judged
        if proposal.effect.is_free and proposal.effect != tool.label
    ]
    return EffectConfusion(
        tools=len(judged),
        counts={
            label: {effect: counted[label, effect] for effect in Effect} for label in (*_FREE, Effect.WRITE)
        },
        writes_as_free=tuple(m for m in freer if m.label is Effect.WRITE),
        reads_as_pure=tuple(m for m in freer if (m.label, m.proposed) == (Effect.READ, Effect.PURE)),
    )


def render_effect_confusion(confusion: EffectConfusion) -> str:
    """Return the matrix as Markdown, with the two shares that count."""
    rows = [
        f"| {label.value} | " + " | ".join(str(row[effect]) for effect in Effect) + " |"
        for label, row in confusion.counts.items()
    ]
    lines = [
        "| is \\ proposed | " + " | ".join(effect.value for effect in Effect) + " |",
        "|---|---:|---:|---:|---:|",
        *rows,
        "",
        f"- writes proposed as free: {len(confusion.writes_as_free)} of {confusion.tools}"
        f" ({confusion.error_share:.2%}); reads proposed as pure: {len(confusion.reads_as_pure)}",
        f"- free tools proposed as free: {confusion.useful_share:.1%}",
    ]
    return "\n".join(lines) + "\n"
