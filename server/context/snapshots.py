"""Snapshots of what a model was asked, and their merging into samples to train on.

Paper: AgentEvolver (timeline snapshot recorder, prefix-absorbing merge; facts §4.5). Differs: compared by
text and role, so that no tokenizer is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from catalog.canonical import digest
from catalog.tools import JsonSchema
from server.context.messages import Spoken, spoken

__all__ = ["Sample", "Snapshot", "SnapshotRecorder", "merge_snapshots"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One call of a model: all it was shown, and what it said."""

    messages: tuple[Spoken, ...]
    reply: str
    tools: tuple[JsonSchema, ...] = ()
    """Of the tools it could call, as `{name, description, inputSchema}`."""
    is_trainable: bool = True
    """False for replies that only tidy the context."""
    step: int | None = None
    """Number of the step that the reply is, from 1; None where it is none."""

    @property
    def digest(self) -> str:
        """Names what was asked."""
        return digest([[one.role, one.text] for one in self.messages])


@dataclass(frozen=True, slots=True)
class Sample:
    """A conversation to train on.

    `messages` end with the last reply; those in `trained` (indices) were said by the model and are to be
    learned; `steps` gives for each of those the number of its step. Spans of experience are still in the
    messages, and are stripped by `Spoken.without_experience`.
    """

    messages: tuple[Spoken, ...]
    trained: tuple[int, ...]
    steps: tuple[int | None, ...]
    tools: tuple[JsonSchema, ...] = ()


@dataclass
class SnapshotRecorder:
    """Keeps the snapshots of one task, in order."""

    snapshots: list[Snapshot] = field(default_factory=list[Snapshot])

    def keep(self, snapshot: Snapshot) -> None:
        """Keep one."""
        self.snapshots.append(snapshot)


def merge_snapshots(snapshots: Sequence[Snapshot], *, ignore_tools: bool = True) -> list[Sample]:
    """Return samples in which every reply is once: a longer timeline absorbs those it begins with.

    Args:
        snapshots: of one task, oldest first.
        ignore_tools: whether timelines with other tools may be one sample.
    """
    kept: list[Sample] = []
    for snapshot in reversed(snapshots):
        sample = _sample(snapshot)
        place = next((i for i, one in enumerate(kept) if _begins_with(one, sample, ignore_tools)), None)
        if place is None:
            kept.append(sample)
        else:
            kept[place] = _absorbed(kept[place], sample)
    return list(reversed(kept))


def _sample(snapshot: Snapshot) -> Sample:
    messages = (*snapshot.messages, spoken("assistant", snapshot.reply, "model"))
    trained = (len(messages) - 1,) if snapshot.is_trainable else ()
    return Sample(messages, trained, tuple(snapshot.step for _ in trained), snapshot.tools)


def _begins_with(longer: Sample, shorter: Sample, ignore_tools: bool) -> bool:
    if len(shorter.messages) > len(longer.messages) or not (ignore_tools or longer.tools == shorter.tools):
        return False
    pairs = zip(shorter.messages, longer.messages, strict=False)
    return all((one.role, one.text) == (other.role, other.text) for one, other in pairs)


def _absorbed(longer: Sample, shorter: Sample) -> Sample:
    """Return the longer sample, which learns the shorter one's replies too."""
    steps = dict(zip(shorter.trained, shorter.steps, strict=True)) | dict(
        zip(longer.trained, longer.steps, strict=True)
    )
    trained = tuple(sorted(steps))
    return replace(longer, trained=trained, steps=tuple(steps[index] for index in trained))
