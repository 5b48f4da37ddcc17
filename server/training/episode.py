"""The episode: one run of one task as a conversation, with all that training needs to know of it.

A line of `episodes.jsonl` is one of these. Every other format is made from it, never from anything else.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from server.attribution.labels import Label, LabelSource
from skills_store.trace import Status

__all__ = [
    "SCHEMA",
    "Episode",
    "EpisodeStep",
    "ExperienceSpan",
    "FunctionCall",
    "Outcome",
    "Provenance",
    "Source",
    "ToolCall",
    "Turn",
]

SCHEMA = "skillbank.episode/1"
Source = Literal["trace", "search", "drive"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FunctionCall(_Part):
    """A call as chat templates read it."""

    name: str
    arguments: dict[str, JsonValue]


class ToolCall(_Part):
    """One call in an assistant's turn."""

    type: Literal["function"] = "function"
    function: FunctionCall


class Turn(_Part):
    """One message of the conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    name: str | None = None
    """Of a tool's answer: which tool."""


class ExperienceSpan(_Part):
    """Characters of a message that an experience unit put there: `content[start:end]`."""

    message: int
    start: int = Field(ge=0)
    end: int
    unit: str


class EpisodeStep(_Part):
    """The credit of one step: of the turns that took it."""

    index: int
    """Its place in the run, from 0; a run whose context was rewritten is several episodes."""
    messages: tuple[int, ...]
    """Indices of the turns that the model said in it."""
    node: str
    label: Label
    label_source: LabelSource
    reason: str = ""
    reward: float
    """+1 good, -1 bad."""
    advantage: float | None = None
    """Over the group, copied to every token of the step; None: the group says nothing."""


class Outcome(_Part):
    """What became of the task."""

    status: Status
    score: float | None
    """1 right, 0 wrong, None: nobody looked; never to be taken for 0."""
    by: tuple[str, ...] = ()
    """Who said so."""


class Provenance(_Part):
    """Where an episode comes from."""

    source: Source
    id: str
    """Of the run: its trace, or the digest of what a driven model was shown and said."""
    file: str | None = None
    """Name of the file it was in, None: the bank."""
    workflow_hash: str | None = None
    policy: str = ""
    """Who chose the steps: a model, a planner, an edit; empty: not on record."""
    template: str | None = None
    """The context template of a drive."""
    simulated: bool = False
    """The steps were a program's and are told as a model's turns: no model said them."""
    at: float = 0.0
    """Unix seconds."""
    catalog: str | None = None
    """Hash of the tools when this was exported."""
    servers: tuple[str, ...] = ()


class Episode(_Part):
    """One run of one task."""

    format: Literal["skillbank.episode/1"] = SCHEMA
    id: str
    group: str
    """Runs of one task with the same inputs; advantages are relative to it."""
    family: str
    """Tasks of one kind; never in two splits."""
    split: Literal["train", "test"] = "train"
    task: str
    tools: tuple[dict[str, JsonValue], ...]
    """As `{"type": "function", "function": {name, description, parameters}}`."""
    messages: tuple[Turn, ...]
    trained: tuple[int, ...]
    """The loss mask: indices of the turns that are learned; nothing else is."""
    steps: tuple[EpisodeStep, ...]
    experience: tuple[ExperienceSpan, ...] = ()
    outcome: Outcome
    provenance: Provenance

    @model_validator(mode="after")
    def _fits(self) -> Episode:
        """Refuse masks, spans and steps that point at nothing."""
        for index in self.trained:
            if not (0 <= index < len(self.messages) and self.messages[index].role == "assistant"):
                raise ValueError(f"trained: {index} is no turn of the model")
        for step in self.steps:
            if not set(step.messages) <= set(self.trained):
                raise ValueError(f"step {step.node}: its turns are not among the trained ones")
        for span in self.experience:
            inside = 0 <= span.message < len(self.messages)
            if not (inside and span.start < span.end <= len(self.messages[span.message].content)):
                raise ValueError(f"experience {span.unit}: the span is outside of message {span.message}")
        return self

    @property
    def guided(self) -> bool:
        """Whether experience was told when the model took its steps."""
        return bool(self.experience)

    @property
    def prompt_length(self) -> int:
        """How many messages stand before the first turn of the model."""
        return next(
            (i for i, turn in enumerate(self.messages) if turn.role == "assistant"), len(self.messages)
        )
