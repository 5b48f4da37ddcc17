"""The compile benchmark's report as Markdown tables that read well on a terminal too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import get_args

from server.bench.compile_report import (
    Attempt,
    CompileBenchReport,
    FamilyReport,
    GateReport,
    SelectionReport,
    TauReport,
    Way,
)

__all__ = ["render_compile_report"]


def render_compile_report(report: CompileBenchReport) -> str:
    """Return the tables of the parts that were measured, and what they stand on."""
    blocks: list[Sequence[str]] = []
    if report.families:
        blocks.append([*_accuracy(report.families)])
    if report.tau is not None:
        blocks.append([*_tau(report.tau)])
    if report.selection is not None:
        blocks.append([*_selection(report.selection)])
    if report.gate is not None:
        blocks.append([*_gate(report.gate)])
    blocks.append([*_notes(report)])
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _accuracy(families: Sequence[FamilyReport]) -> Iterator[str]:
    yield (
        "| compiled from              | families | inputs exact | data links exact | over | under"
        " | wrong links | right on the third | admitted as |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---|"
    for half in ("tuned", "apart"):
        own = [family for family in families if family.half == half]
        for way in get_args(Way):
            attempts = [a for family in own for a in family.attempts if a.way == way]
            if attempts:
                yield _row(f"{way}, half {half}", attempts)
    hard = [family for family in families if set(family.kinds) - {"equal"}]
    for kind in sorted({kind for family in hard for kind in family.kinds}):
        own = [family for family in families if kind in family.kinds]
        yield _row(
            f"two runs, {kind.replace('_', ' ')}",
            [a for family in own for a in family.attempts if a.way == "two runs"],
        )


def _row(name: str, attempts: Sequence[Attempt]) -> str:
    made = [attempt for attempt in attempts if attempt.compiled]
    judged = [attempt for attempt in attempts if attempt.right is not None or not attempt.compiled]
    states = Counter(attempt.state for attempt in made if attempt.state is not None)
    admitted = ", ".join(f"{count} {state}" for state, count in states.most_common()) or "not admitted"
    if len(made) < len(attempts):
        admitted += f", {len(attempts) - len(made)} refused"

    def share(holds: Callable[[Attempt], bool]) -> str:
        return f"{sum(holds(attempt) for attempt in made)}/{len(attempts)}"

    right = sum(attempt.right is True for attempt in judged)
    over, under = sum(a.over for a in made), sum(a.under for a in made)
    wrong = sum(a.wrong_links for a in made)
    return (
        f"| {name:<26} | {len(attempts)} | {share(lambda a: a.inputs_exact)}"
        f" | {share(lambda a: a.links_exact)} | {over} | {under} | {wrong}"
        f" | {right}/{len(judged)} | {admitted} |"
    )


def _tau(report: TauReport) -> Iterator[str]:
    yield (
        "| τ²-bench reference runs | sessions | compiled | admitted as | same task: as the reference"
        " | second task: as the reference |"
    )
    yield "|---|---:|---:|---|---:|---:|"
    for domain in dict.fromkeys(case.domain for case in report.cases):
        own = [case for case in report.cases if case.domain == domain]
        made = [case for case in own if case.compiled]
        states = Counter(case.state for case in made if case.state is not None)
        admitted = ", ".join(f"{count} {state}" for state, count in states.most_common())
        seconds = [case for case in made if case.right is not None]
        yield (
            f"| {domain} | {len(own)} | {len(made)} | {admitted}"
            f" | {sum(case.reproduced is True for case in made)}/{len(made)}"
            f" | {sum(case.right is True for case in seconds)}/{len(seconds)} |"
        )
    yield ""
    yield (
        f"- as the reference: last answer and database equal; {report.skipped} reference runs have fewer than"
        " two calls that succeed and were left out; second task: the next one of the same calls, whose values"
        " stand at the inputs' places"
    )
    causes = Counter(case.cause for case in report.cases if case.right is False and case.cause)
    if causes:
        told = "; ".join(f"{cause} {count}" for cause, count in causes.most_common())
        yield f"- where the second task goes otherwise, first comes this: {told}"
    missed = [case for case in report.cases if case.reproduced is False]
    if missed:
        told = "; ".join(f"{case.domain} {case.task}: {case.missed or 'unknown'}" for case in missed)
        yield f"- not as the reference on their own task: {told}"


def _selection(report: SelectionReport) -> Iterator[str]:
    yield (
        "| distractor skills | tasks | run directly, right | wrong | abstained | found first"
        " | in the first five | tasks of no skill | run all the same | CPU ms, p95 |"
    )
    yield "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    for row in report.rows:
        yield (
            f"| {row.distractors} | {row.tasks} | {row.direct_right} | {row.direct_wrong} | {row.abstained}"
            f" | {row.found_first} | {row.found_in_five} | {row.strange} | {row.strange_direct}"
            f" | {row.milliseconds:.0f} |"
        )
    yield ""
    yield f"- distractors are {report.source}"


def _gate(report: GateReport) -> Iterator[str]:
    yield "| bad candidates  | judged | became active | states |"
    yield "|---|---:|---:|---|"
    for kind in dict.fromkeys(case.kind for case in report.cases):
        own = [case for case in report.cases if case.kind == kind]
        states = Counter(case.state for case in own)
        told = ", ".join(f"{count} {state}" for state, count in states.most_common())
        yield f"| {kind:<15} | {len(own)} | {states['active']} | {told} |"
    yield f"| all             | {len(report.cases)} | {report.became_active} | |"
    yield ""
    yield (
        f"- made of {report.sound} skills of the first table, seed {report.seed}, judged as an explicit save"
        f" with two runs; {report.unplaced} planned ones found no place. Leaks use two scripted servers: no"
        " real one here sends anything away"
    )
    yield from (
        f"- ACTIVE: {case.kind}: {case.skill}: {case.detail}"
        for case in report.cases
        if case.state == "active"
    )


def _notes(report: CompileBenchReport) -> Iterator[str]:
    size = "a quick run; " if report.quick else ""
    versions = ", ".join(f"{name} {version}" for name, version in sorted(report.versions.items()))
    if report.families:
        yield (
            f"- {size}{report.traces} traces of {len(report.families)} families, three instances each, over"
            f" {len(report.servers)} real servers ({', '.join(report.servers)}); every call is real"
        )
        yield (
            "- *inputs exact*: the same places are inputs, and the same share one. *over*: inputs that should"
            " be constants or data flow, *under*: the reverse, in places. A constant that the task says and"
            " that became an input counts as neither. The compiler was tuned on one half of the families,"
            " split by a hash of their names; the other half stands apart"
        )
    yield from (f"- {note}" for note in report.notes)
    yield f"- seed {report.seed}; {report.seconds:.0f} s in this run; no model"
    yield f"- {versions}"
