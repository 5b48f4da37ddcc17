"""What speaks against a skill in use: how its latest uses failed, and what was said of them later.

World faults say nothing here, and neither does a plan that failed with the skill merely in view.
Moving a skill to another state on such evidence belongs to curation.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from skills_store.trace import Trace
from skills_store.utility import Use

__all__ = ["NO_DOUBTS", "USES_LOOKED_AT", "Doubts", "doubts_of"]

USES_LOOKED_AT: Final = 20
"""Latest uses of a skill that are looked at."""

_FADES_IN_SECONDS: Final = 72 * 3600.0
_CALLED_WRONG: Final = "called_wrong"
_SEVERITY: Final = {
    _CALLED_WRONG: 0.95,
    "check_failed": 0.95,
    "disguised_error": 0.9,
    "postcondition_failed": 0.9,
}
"""Of a wrong answer; a fault that was told at once weighs less."""
_TOLD_AT_ONCE: Final = 0.6
_VETO_IN_A_ROW: Final = 2
_INPUTS_KEPT: Final = 3


@dataclass(frozen=True, slots=True)
class Doubts:
    """What speaks against one version of a skill."""

    faults: tuple[tuple[str, int], ...] = ()
    """Fault classes and how many uses ended in each, the most frequent first; `called_wrong` is feedback."""
    in_a_row: int = 0
    """Latest uses that failed one after the other."""
    toxicity: float = 0.0
    """Sum of severities, each fading with its age."""
    failed_inputs: tuple[dict[str, JsonValue], ...] = ()
    """Inputs that did not work and that the task itself said, the latest first."""

    @property
    def risk(self) -> float:
        """How much speaks against it, in [0, 1).

        Paper: FlowEvo (negative risk): 0.45 per negative transfer + 0.20 per failure in a row + 0.60
            of the toxicity, whose severities of 0.6 to 0.95 fade over 72 hours.
        Differs: negative transfer is curation's; the sum is brought into [0, 1).
        """
        return 1 - math.exp(-(0.20 * self.in_a_row + 0.60 * self.toxicity))

    @property
    def veto(self) -> str:
        """Why it is not to be run unasked, empty when nothing forbids it.

        Paper: FlowEvo (suppress after two failures in a row). Differs: it only keeps the skill from
            the direct route; a plan that succeeds with it, or a person, ends it.
        """
        if self.in_a_row < _VETO_IN_A_ROW:
            return ""
        kinds = ", ".join(kind for kind, _ in self.faults) or "unknown"
        return f"its last {self.in_a_row} uses failed ({kinds})"


NO_DOUBTS: Final = Doubts()


def doubts_of(
    uses: Sequence[Use],
    version: int,
    trace_of: Callable[[str], Trace | None],
    now: float,
    cleared_at: float = -math.inf,
) -> Doubts:
    """Return what speaks against a version of a skill.

    Args:
        uses: of the skill, the newest first.
        version: the one in question; uses of others say nothing about it.
        trace_of: finds a kept trace by its id.
        now: Unix seconds.
        cleared_at: Unix seconds of the last audit it passed: failures up to then are none in a row.
    """
    counts: Counter[str] = Counter()
    inputs: list[dict[str, JsonValue]] = []
    in_a_row, is_in_a_row, toxicity = 0, True, 0.0
    for use in uses[:USES_LOOKED_AT]:
        if use.version != version or use.world_fault or (use.route == "seeded" and not use.succeeded):
            continue
        is_in_a_row &= use.at > cleared_at
        trace = trace_of(use.trace) if use.trace is not None else None
        if not (kinds := list(_kinds(use, trace))):
            is_in_a_row = False
            continue
        in_a_row += is_in_a_row
        counts.update(kinds)
        severity = max(_SEVERITY.get(kind, _TOLD_AT_ONCE) for kind in kinds)
        toxicity += severity * math.exp(-max(0.0, now - use.at) / _FADES_IN_SECONDS)
        said = _said_inputs(trace) if trace is not None else {}
        if said and said not in inputs:
            inputs.append(said)
    return Doubts(tuple(counts.most_common()), in_a_row, toxicity, tuple(inputs[:_INPUTS_KEPT]))


def _kinds(use: Use, trace: Trace | None) -> Iterator[str]:
    """Yield how a use failed, each class once; nothing for one that was right."""
    said = [v.passed for v in trace.verifications if v.by == "feedback"] if trace is not None else []
    if not use.succeeded and not (said and said[-1]):
        found = [fault.kind for fault in trace.faults if fault.evidence == "workflow"] if trace else []
        yield from dict.fromkeys(found or ["failed"])
    if use.succeeded and said and not said[-1]:
        yield _CALLED_WRONG


def _said_inputs(trace: Trace) -> dict[str, JsonValue]:
    """Return the inputs of a run that its task says: what a tool gave is repeated nowhere."""
    task = (trace.task or "").casefold()
    scalars = {n: v for n, v in trace.inputs.items() if isinstance(v, str | int | float) and str(v).strip()}
    return {name: value for name, value in scalars.items() if str(value).casefold() in task}
