"""The evolution benchmark's report as Markdown that reads well on a terminal too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from server.bench.evolution_report import (
    DETERMINISTIC,
    FLOOR,
    SIMULATED,
    EvolutionReport,
    Group,
    McpBenchRow,
    PlanOutcome,
    Row,
)

__all__ = ["render_evolution_report"]

_HEAD = (
    "| {name} | plans | static-ok | executed-ok | verified | Best | Valid Best | right on held-out | calls"
    " | planner tokens | s | per solved: calls | tokens | s |",
    "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
)
_NAMES = {
    "all": "recorded plans, all",
    "part": "recorded plans, a part: what is switched off, and the model",
}
_TARGET = 0.8
_LADDER = "deterministic ladder"


def render_evolution_report(report: EvolutionReport) -> str:
    """Return the report as Markdown."""
    lines: list[str] = []
    for group in report.groups:
        lines += [*_table(group), ""]
    lines += [*_paper(report), ""]
    if report.mcp_bench:
        lines += [*_mcp_bench(report.mcp_bench), ""]
    if failures := list(_failures(report.outcomes)):
        lines += [*failures, ""]
    lines += [f"- {line}" for line in (*_remarks(report), *_setting(report))]
    return "\n".join(lines) + "\n"


def _table(group: Group) -> list[str]:
    head, rule = _HEAD
    title = _NAMES.get(group.name) or _title(group.name)
    return [head.format(name=title), rule, *(_line(row) for row in group.rows)]


def _title(source: str) -> str:
    if source.startswith(SIMULATED):
        return f"{source} damage to references"
    return f"plans of the {source}" if source in (FLOOR, DETERMINISTIC) else f"recorded plans, {source}"


def _line(row: Row) -> str:
    cells = [
        row.condition,
        str(row.plans),
        _share(row.static_ok, row.plans),
        _share(row.executed_ok, row.plans),
        f"**{_share(row.verified, row.plans)}**",
        _share(*row.best),
        _share(*row.valid_best),
        f"{row.right} of {row.judged}" if row.judged else "–",
        f"{row.calls:.1f}",
        f"{row.tokens:.0f}",
        f"{row.seconds:.1f}",
        _per(row.calls_per_solved, ".1f"),
        _per(row.tokens_per_solved, ".0f"),
        _per(row.seconds_per_solved, ".1f"),
    ]
    return f"| {' | '.join(cells)} |"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "–"


def _per(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _paper(report: EvolutionReport) -> Iterator[str]:
    """Yield the paper's figures in a table of their own: neither tasks nor measure are ours."""
    yield "| EvoFlux, as its authors report it (not run here) | tasks | measure | before | after |"
    yield "|---|---|---|---:|---:|"
    yield (
        "| planners of 1.5 to 4 billion parameters on MCP-Bench | 104, over 28 servers | executed without"
        " failure, scored by a judge | 3 % | 17–24 % |"
    )
    del report


def _mcp_bench(rows: Sequence[McpBenchRow]) -> Iterator[str]:
    yield (
        "| MCP-Bench, tasks whose servers need no network | tasks | planned | static-ok | executed-ok"
        " | rule score | calls | planner tokens | s |"
    )
    yield "|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    for row in rows:
        yield (
            f"| {row.condition} | {row.tasks} | {row.planned} | {row.static_ok} | {row.executed_ok}"
            f" | {row.rule_score:.2f} | {row.calls:.1f} | {row.tokens:.0f} | {row.seconds:.1f} |"
        )


def _failures(outcomes: Sequence[PlanOutcome]) -> Iterator[str]:
    """Yield what the search without a model leaves unverified, by the fault left first."""
    left = [o for o in outcomes if o.condition == _LADDER and not o.verified and _is_recorded(o.source)]
    if not left:
        return
    yield f"| left of recorded plans by the {_LADDER} | plans | tasks |"
    yield "|---|---:|---|"
    for kind, count in Counter(_kind(one) for one in left).most_common():
        tasks = sorted({one.task for one in left if _kind(one) == kind})
        shown = ", ".join(tasks[:8]) + (f" and {len(tasks) - 8} more" if len(tasks) > 8 else "")
        yield f"| {kind} | {count} | {shown} |"


def _is_recorded(source: str) -> bool:
    return not source.startswith(SIMULATED) and source not in (FLOOR, DETERMINISTIC)


def _kind(outcome: PlanOutcome) -> str:
    if not outcome.readable:
        return "the answer could not be read as a plan"
    if outcome.crashed:
        return "a defect of ours"
    return outcome.faults[0].partition(":")[0] if outcome.faults else f"stopped by {outcome.stopped}"


def _remarks(report: EvolutionReport) -> Iterator[str]:
    """Yield what the rows say about each other, whichever way it came out."""
    rows = {(group.name, row.condition): row for group in report.groups for row in group.rows}
    if ladder := rows.get(("all", _LADDER)):
        share = ladder.verified / ladder.plans
        met = "met" if share >= _TARGET else "missed"
        yield (
            f"target, {_TARGET:.0%} of recorded plans verified with no model in the loop:"
            f" {share:.0%} by the {_LADDER}, {met}".replace("%", " %")
        )
    for one, other in (
        ("population", "greedy"),
        ("population", _LADDER),
        ("ladder, then population", _LADDER),
    ):
        for name in ("all", "part"):
            first, second = rows.get((name, one)), rows.get((name, other))
            if first is not None and second is not None:
                yield f"{one} against {other}: {_against(first, second)}"
                break
    for (name, condition), row in rows.items():
        if name == "part" and condition.startswith("population, "):
            yield f"{condition.removeprefix('population, ')}: {_against(row, rows[name, 'population'])}"


def _against(first: Row, second: Row) -> str:
    if first.verified == second.verified:
        return f"no difference in what is verified ({first.verified} of {first.plans} each)"
    word = "more" if first.verified > second.verified else "fewer"
    return f"{word} verified, {first.verified} against {second.verified} of {first.plans}"


def _setting(report: EvolutionReport) -> Iterator[str]:
    parts = ", ".join(f"{count} {name}" for name, count in sorted(report.parts.items()))
    sizes = ", ".join(f"{count} of {size}" for size, count in report.sizes.items())
    yield (
        f"{report.tasks} tasks ({sizes} steps; {report.mapped} with a step mapped over a list; {parts} part)"
        f" over {len(report.servers)} real servers, at least {report.distractors} others in each catalog"
    )
    if report.about is not None:
        about = report.about
        told = ", ".join(p for p in (about.model, about.quantisation, about.runtime, about.machine) if p)
        yield (
            f"recorded plans of {report.tasks_with_plans} tasks: {told}; read again, checked, run and"
            f" repaired now. {about.recorded}"
        )
    if report.mix is not None:
        counts = sorted(report.mix.counts.items(), key=lambda item: -item[1])
        shown = ", ".join(f"{kind} {count}" for kind, count in counts if count)
        yield (
            f"the simulator's mix, counted in {report.mix.plans} readable recorded plans,"
            f" {report.mix.wrong} of them wrong with {report.mix.mean:.1f} faults each: {shown}"
        )
    if part := next((group for group in report.groups if group.name == "part"), None):
        yield (
            f"a part is {part.rows[0].plans} recorded plans, drawn by a hash: every condition on every plan"
            " would take more than an hour"
        )
    budget = ", ".join(f"{amount:g} {name}" for name, amount in report.budget.items())
    yield f"one search: {budget} at most; seed {report.seed}"
    if crashed := [one for one in report.outcomes if one.crashed]:
        told = "; ".join(f"{one.condition}, {one.source}/{one.task}: {one.crashed}" for one in crashed[:3])
        yield f"{len(crashed)} searches ended in a defect of ours and count as not verified: {told}"
    yield from report.notes
    versions = ", ".join(f"{name} {version}" for name, version in sorted(report.versions.items()))
    yield f"{'quick size; ' if report.quick else ''}{report.seconds:.0f} s in all; {versions}"
