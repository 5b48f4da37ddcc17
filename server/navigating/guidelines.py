"""What the records of a tool's calls say of calling it: how often it works, and with which choices.

Paper: AgentEvolver through ReMe (tool memory: the last 100 calls kept, the 20 newest summarised; facts
§4.3). Differs: counted rather than summarised by a model; only arguments are looked at, never answers,
and only values that look like a choice: short, and seen more than once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from catalog.tools import ToolId
from skills_store.trace import Step, Trace

__all__ = ["Guideline", "guideline_of"]

_KEPT = 100
_SUMMARISED = 20
_LEAST = 3
_LONGEST_CHOICE = 40
_MOST_CHOICES = 4


@dataclass(frozen=True, slots=True)
class Guideline:
    """A tool as its newest calls show it."""

    tool: ToolId
    calls: int
    succeeded: int
    always: tuple[str, ...] = ()
    """Arguments that every call that worked had and some that failed lacked."""
    choices: dict[str, tuple[JsonValue, ...]] = field(default_factory=dict[str, tuple[JsonValue, ...]])
    """By argument, the values with which calls worked, the most frequent first."""
    faults: tuple[str, ...] = ()
    """Classes of its failures, the most frequent first."""

    @property
    def text(self) -> str:
        """The guideline as a prompt shows it."""
        parts = [f"{self.tool}: {self.succeeded} of {self.calls} calls worked"]
        if self.always:
            parts.append(f"those that worked always gave {', '.join(self.always)}")
        parts += [
            f"{name} worked with {', '.join(map(repr, values))}" for name, values in self.choices.items()
        ]
        if self.faults:
            parts.append(f"failures: {', '.join(self.faults)}")
        return "; ".join(parts)


def guideline_of(tool: ToolId, traces: Iterable[Trace]) -> Guideline | None:
    """Return what the newest calls of a tool show, None of fewer than three.

    Args:
        tool: the tool.
        traces: the newest first.
    """
    calls = [s for t in traces for s in t.steps if s.tool == tool and _says_something(s)][:_KEPT]
    calls = calls[:_SUMMARISED]
    if len(calls) < _LEAST:
        return None
    good = [step for step in calls if step.outcome == "succeeded"]
    bad = [step for step in calls if step.outcome == "failed"]
    faults = Counter(step.fault.kind for step in bad if step.fault is not None)
    return Guideline(
        tool,
        len(calls),
        len(good),
        _always(good, bad),
        _choices(good, bad),
        tuple(kind for kind, _ in faults.most_common(3)),
    )


def _says_something(step: Step) -> bool:
    if step.outcome not in ("succeeded", "failed") or step.from_memory:
        return False
    return step.fault is None or step.fault.evidence == "workflow"


def _always(good: Sequence[Step], bad: Sequence[Step]) -> tuple[str, ...]:
    if not good or not bad:
        return ()
    common = set(good[0].arguments).intersection(*(step.arguments for step in good))
    return tuple(sorted(name for name in common if any(name not in step.arguments for step in bad)))


def _choices(good: Sequence[Step], bad: Sequence[Step]) -> dict[str, tuple[JsonValue, ...]]:
    """Return the choices of the arguments with which calls failed on another value."""
    found: dict[str, tuple[JsonValue, ...]] = {}
    for name in sorted({name for step in bad for name in step.arguments}):
        values = [step.arguments[name] for step in good if name in step.arguments]
        texts = [value for value in values if isinstance(value, str) and len(value) <= _LONGEST_CHOICE]
        counts = Counter(texts)
        repeated = [value for value, times in counts.most_common() if times > 1]
        if texts and len(texts) == len(values) and 0 < len(counts) <= _MOST_CHOICES and repeated:
            found[name] = tuple(counts)
    return found
