"""What the repair benchmark found, as data and as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue

from server.bench.measures import Spread, spread_of
from skills_store.trace import Status

__all__ = ["CaseReport", "MemoryMeasure", "RepairBenchReport", "Tally", "render_repair_report", "tallies_of"]

_SIZES = {1: "one fault", 2: "two faults", 3: "three faults"}


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class CaseReport(_Model):
    """One case and what the repair came to."""

    task: str
    kinds: tuple[str, ...]
    details: tuple[str, ...]
    lost: tuple[str, ...]
    seed: int | None
    status: Status
    crashed: str | None
    """The error the repair ended with instead of an answer: a defect of ours. None: it answered."""
    right_on_held_out: bool | None
    """None: not verified, or the task has no held-out inputs."""
    calls: int
    candidates: int
    seconds: float
    edits: tuple[str, ...]
    broken: dict[str, JsonValue]
    repaired: dict[str, JsonValue]

    @property
    def is_verified(self) -> bool:
        """Whether the repaired workflow passes the caller's assertions."""
        return self.status == "verified"

    @property
    def is_right(self) -> bool:
        """Whether it is verified and nothing held out says otherwise."""
        return self.is_verified and self.right_on_held_out is not False


class Tally(_Model):
    """Some cases together."""

    name: str
    cases: int
    verified: int
    right: int
    """Verified, and right on the held-out inputs as well."""
    false_repairs: int
    """Verified, and wrong on the held-out inputs."""
    calls: Spread
    candidates: Spread
    seconds: Spread


class MemoryMeasure(_Model):
    """Candidates per second of the same repairs with and without memoised answers."""

    cases: int
    with_memory: float
    without_memory: float
    calls_with: int
    calls_without: int

    @property
    def ratio(self) -> float:
        """How many times more candidates per second memory allows."""
        return self.with_memory / self.without_memory if self.without_memory else 0.0


class RepairBenchReport(_Model):
    """The whole run. Nothing in it is simulated: every call went to a real tool server."""

    bench: Literal["repair"] = "repair"
    quick: bool
    seed: int
    tasks: int
    servers: tuple[str, ...]
    versions: dict[str, str]
    still_passing: int
    """Damaged workflows that passed all the same; not counted as cases."""
    unplaced: int
    all_cases: Tally
    by_size: tuple[Tally, ...]
    by_kind: tuple[Tally, ...]
    """Cases with that fault alone."""
    by_kind_among_others: tuple[Tally, ...]
    """Cases with that fault beside others."""
    recoverable: Tally
    """Cases in which no value was lost: task, inputs, workflow and schemas still say each."""
    memory: MemoryMeasure | None
    seconds: float
    cases: tuple[CaseReport, ...]


def tally_of(name: str, cases: Sequence[CaseReport]) -> Tally:
    """Return what some cases came to together."""
    return Tally(
        name=name,
        cases=len(cases),
        verified=sum(case.is_verified for case in cases),
        right=sum(case.is_right for case in cases),
        false_repairs=sum(case.is_verified and not case.is_right for case in cases),
        calls=spread_of([case.calls for case in cases]),
        candidates=spread_of([case.candidates for case in cases]),
        seconds=spread_of([case.seconds for case in cases]),
    )


def tallies_of(cases: Sequence[CaseReport]) -> dict[str, Tally | tuple[Tally, ...]]:
    """Return the tallies of a report, by its field."""
    kinds = sorted({kind for case in cases for kind in case.kinds})
    sizes = sorted({len(case.kinds) for case in cases})

    def grouped(names: Iterable[str], belongs: Callable[[CaseReport, str], bool]) -> tuple[Tally, ...]:
        groups = ((name, [case for case in cases if belongs(case, name)]) for name in names)
        return tuple(tally_of(name, group) for name, group in groups if group)

    return {
        "all_cases": tally_of("all", cases),
        "by_size": tuple(
            tally_of(_SIZES.get(size, "not said" if not size else f"{size} faults"), group)
            for size in sizes
            if (group := [case for case in cases if len(case.kinds) == size])
        ),
        "by_kind": grouped(kinds, lambda case, kind: case.kinds == (kind,)),
        "by_kind_among_others": grouped(kinds, lambda case, kind: kind in case.kinds and len(case.kinds) > 1),
        "recoverable": tally_of("no value lost", [case for case in cases if not case.lost]),
    }


def render_repair_report(report: RepairBenchReport) -> str:
    """Return the report as Markdown that reads well on a terminal too."""
    alone = [tally.model_copy(update={"name": f"{tally.name}, alone"}) for tally in report.by_kind]
    beside = [
        tally.model_copy(update={"name": f"{tally.name}, among others"})
        for tally in report.by_kind_among_others
    ]
    rows = [report.all_cases, *report.by_size, report.recoverable, *alone, *beside]
    lines = [_HEAD, _RULE, *(_row(tally) for tally in rows), "", *_notes(report)]
    return "\n".join(lines) + "\n"


_HEAD = (
    "| broken workflows                  | cases | verified | right | false | calls mean / median / max"
    " | candidates | seconds median / max |"
)
_RULE = "|---|---:|---:|---:|---:|---:|---:|---:|"


def _row(tally: Tally) -> str:
    share, right = _share(tally.verified, tally.cases), _share(tally.right, tally.cases)
    calls, candidates, seconds = tally.calls, tally.candidates, tally.seconds
    return (
        f"| {tally.name:<33} | {tally.cases:>5} | {share:>8} | {right:>5} | {tally.false_repairs:>5}"
        f" | {calls.mean:.1f} / {calls.median:.0f} / {calls.max:.0f}"
        f" | {candidates.mean:.1f} | {seconds.median:.2f} / {seconds.max:.1f} |"
    )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "none"


def _notes(report: RepairBenchReport) -> list[str]:
    versions = ", ".join(f"{name} {version}" for name, version in sorted(report.versions.items()))
    size = "a quick run; " if report.quick else ""
    notes = [
        "*verified*: the caller's assertions hold. *right*: they hold on held-out inputs as well."
        " *false*: verified, and wrong on held-out inputs. No model; nothing is simulated.",
        "",
        f"- {size}seed {report.seed}, {report.tasks} tasks over {', '.join(report.servers)};"
        f" {report.seconds:.0f} s in all",
        f"- {report.still_passing} damaged workflows passed all the same and were drawn again;"
        f" {report.unplaced} planned cases found no task",
        f"- {versions}",
    ]
    notes += [
        f"- CRASHED on {case.task}, seed {case.seed}: {case.crashed}"
        for case in report.cases
        if case.crashed is not None
    ]
    if (memory := report.memory) is not None:
        notes.append(
            f"- candidates per second over {memory.cases} of the cases whose servers are not reset:"
            f" {memory.with_memory:.1f} with memoised answers ({memory.calls_with} calls),"
            f" {memory.without_memory:.1f} without ({memory.calls_without} calls): {memory.ratio:.1f} times"
        )
    return notes
