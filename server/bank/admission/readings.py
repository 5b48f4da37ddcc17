"""Several readings of one run: which is kept, and whether evidence has decided between them.

Where a task says a value that an earlier answer gave as well, it is an input in one reading and data
flow in the other. Runs on other inputs may refute one of them. Else a second run decides: data flow
that held for two different values is no coincidence. Until then no reading is trusted.

Paper: FlowEvo (compile; DESIGN §5.8). Differs: the paper lifts whatever the task says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from server.compilation.compile import Compiled
from skills_store.admission import ONE_READING, is_refuted
from skills_store.skill import AdmissionVerdict, Skill, SkillState
from skills_store.workflow.bounds import json_equal

__all__ = ["Chosen", "Dispute", "choose_reading", "dispute_of", "is_undecided", "still_frozen"]

_FROM_WORST: tuple[SkillState, ...] = ("shadow", "context_only", "proposed", "active")
_MOST_SHOWN = 3
_LONGEST_VALUE = 40

_Place = tuple[str, str]
"""A node and the name of one of its arguments."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The reading to keep, by its number, and why another one holds as well, empty when none does."""

    reading: int
    undecided: str = ""


@dataclass(frozen=True, slots=True)
class Dispute:
    """Two readings of a run. `values` are what was given at the places where they differ."""

    linked: Compiled
    lifted: Compiled
    values: Mapping[_Place, JsonValue]

    def is_settled_by(self, known: Skill) -> bool:
        """Return whether the data flow has held for another value in the run a kept skill is made of."""
        before = _given(known)
        return any(
            place in before and not json_equal(before[place], value) for place, value in self.values.items()
        )

    def told(self) -> str:
        """Return in words what is not decided, and what would decide it."""
        shown = [repr(value)[:_LONGEST_VALUE] for value in self.values.values()]
        said = ", ".join(dict.fromkeys(shown[:_MOST_SHOWN])) or "a value"
        return (
            f"the task says {said}, which an earlier answer gave as well: whether it is an input or taken"
            " from there is open; another run with other values decides"
        )


def dispute_of(readings: Sequence[Compiled]) -> Dispute | None:
    """Return the two readings of a run as a dispute, None where there is one reading."""
    linked = next((compiled for compiled in readings if compiled.is_linked), None)
    lifted = next((compiled for compiled in readings if not compiled.is_linked), None)
    if linked is None or lifted is None:
        return None
    flows, inputs = linked.skill.workflow, lifted.skill.workflow
    values = {
        (node, argument): value
        for (node, argument), value in _given(lifted.skill).items()
        if (one := flows.node(node)) is not None
        and (other := inputs.node(node)) is not None
        and one.arguments.get(argument) != other.arguments.get(argument)
    }
    return Dispute(linked, lifted, values)


def choose_reading(readings: Sequence[Compiled], verdicts: Sequence[AdmissionVerdict]) -> Chosen:
    """Return which reading is kept by what each earned.

    One that runs refuted gives way to the other. Where none is, the one that makes more of the run's
    calls is kept, since each was made for something; but nothing has decided.
    """
    numbers = range(len(readings))
    dispute = dispute_of(readings)
    held = [number for number in numbers if not is_refuted(verdicts[number])]
    if dispute is None or len(held) < len(readings):
        return Chosen(max(held or numbers, key=lambda number: _trust(verdicts[number])))
    kept = max(held, key=lambda number: (_calls(readings[number]), _trust(verdicts[number])))
    return Chosen(kept, dispute.told())


def is_undecided(skill: Skill) -> bool:
    """Return whether a kept skill waits for a run that decides between two readings."""
    checks = skill.verdict.checks if skill.verdict is not None else ()
    return any(check.name == ONE_READING and not check.passed for check in checks)


def still_frozen(run: Compiled, wider: Skill) -> tuple[str, ...]:
    """Return the values that a run's task says and that no input of the skill it made wider carries either.

    Args:
        run: the reading of the run that widened the skill.
        wider: the skill, with the run as its second test.
    """
    given = {str(value) for test in wider.tests for value in test.inputs.values()}
    return tuple(said for said in run.frozen if said.strip("'\"`“”") not in given)


def _trust(verdict: AdmissionVerdict) -> tuple[int, int]:
    """Return what orders readings: the state earned, then how little was found against it."""
    return _FROM_WORST.index(verdict.state), -sum(not check.passed for check in verdict.checks)


def _calls(compiled: Compiled) -> int:
    return len(compiled.skill.tests[0].recorded)


def _given(skill: Skill) -> dict[_Place, JsonValue]:
    """Return what each argument was given in the run a skill is made of, all items of a repeated node."""
    given: dict[_Place, JsonValue] = {}
    for call in skill.tests[0].recorded if skill.tests else ():
        for argument, value in call.arguments.items():
            if call.item is None:
                given[call.node, argument] = value
            else:
                items = given.setdefault((call.node, argument), [])
                given[call.node, argument] = [*(items if isinstance(items, list) else []), value]
    return given
