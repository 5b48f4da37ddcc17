"""The report of the stream benchmark as Markdown."""

from __future__ import annotations

from server.bench.stream_report import (
    ChangedReport,
    FrozenReport,
    HardReport,
    NoiseReport,
    PlannerRuns,
    PlantedReport,
    StreamBenchReport,
    StreamRun,
    StreamsReport,
)
from server.bench.suppression import CurvePoint, SuppressionReport

__all__ = ["render_stream_report"]


def render_stream_report(report: StreamBenchReport) -> str:
    """Return the tables of the report as Markdown."""
    parts = [_suppression(report.suppression)] if report.suppression else []
    parts += [_streams(report.streams)] if report.streams else []
    return "\n".join(parts)


def _suppression(found: SuppressionReport) -> str:
    head = (
        f"Simulated: {found.points[0].streams} streams of each kind, seed {found.seed}; no tool is called."
        f" Error rate {found.error_rate:g}, {found.withheld:.0%} withheld,"
        f" {found.withheld_under_suspicion:.0%} under suspicion. Audits are thought to pass.\n\n"
        "| skill | right with it | right without | guided uses | restricted, 95 % | after, median |"
        " the paper's rule would suppress |\n|---|---:|---:|---:|---:|---:|---:|\n"
    )
    return head + "".join(_point(point) for point in found.points)


def _point(point: CurvePoint) -> str:
    after = f"{point.median_uses:g}" if point.median_uses is not None else "–"
    return (
        f"| {point.kind} | {point.guided_rate:.2f} | {point.control_rate:.2f} | {point.within} |"
        f" {point.share:.1%} ({point.low:.1%} to {point.high:.1%}) | {after} | {point.paper_share:.0%} |\n"
    )


def _streams(found: StreamsReport) -> str:
    head = (
        f"{found.length} tasks of {len(found.families)} families over {len(found.servers)} real servers"
        f" ({', '.join(found.servers)}), from an empty bank, seed {found.seed}."
        " Right is what Python computed. Direct hits are tasks for which a skill ran before anything was"
        " planned; right of these counts that skill's own answer. Late is the second half of the stream.\n\n"
    )
    parts = [_planner(one) for one in found.planners]
    parts += [_noise(found.noise)] if found.noise else []
    parts += [_hard(found.hard)] if found.hard else []
    parts += [_frozen(one) for one in found.frozen]
    parts += [_planted(found.planted)] if found.planted else []
    parts += [_changed(found.changed)] if found.changed else []
    missing = "".join(f"- not measured: {what}\n" for what in found.not_measured)
    return head + "\n".join(part for part in (*parts, missing) if part)


def _planner(found: PlannerRuns) -> str:
    named = f"{found.planner} (simulated)" if found.simulated else found.planner
    head = (
        f"**{named}**\n\n"
        "| condition | right | direct hits | right of these | late direct hits | withheld | tokens |"
        " late tokens | calls | seconds | active skills by quarter |\n"
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|\n"
    )
    pairs = "".join(
        f"- {pair.one} against {pair.two}: only the first right {pair.only_one}, only the second"
        f" {pair.only_two}, McNemar p = {pair.p:.3g}\n"
        for pair in found.pairs
    )
    cases = "".join(_wrong(run) + _wrong_direct(run) for run in found.runs)
    return f"{head}{''.join(_run(run) for run in found.runs)}\n{pairs}{_ratio(found)}{cases}"


def _hard(found: HardReport) -> str:
    head = (
        f"Harder stream: {found.asked} tasks asked, {found.checked} of them with their check, and"
        f" {found.shown} that a client worked out and showed; families {', '.join(found.families)}.\n\n"
    )
    return head + "\n".join(_planner(one) for one in found.planners)


def _wrong(run: StreamRun) -> str:
    if not run.wrong:
        return ""
    by_family = ", ".join(f"{name} {count}" for name, count in run.wrong.items())
    return f"- not right under {run.condition}: {by_family}\n"


def _wrong_direct(run: StreamRun) -> str:
    said = "; ".join(run.wrong_direct)
    return f"- answered wrong by a skill under {run.condition}: {said}\n" if said else ""


def _run(run: StreamRun) -> str:
    share = f"{run.direct_right}/{run.direct}" if run.direct else "–"
    late = f"{run.late_direct}/{run.late_tasks} ({run.late_direct / max(1, run.late_tasks):.0%})"
    return (
        f"| {run.condition} | {run.right}/{run.tasks} | {run.direct} | {share} | {late} | {run.withheld} |"
        f" {run.tokens} | {run.late_tokens} | {run.calls} | {run.seconds:.0f} |"
        f" {', '.join(map(str, run.bank))} |\n"
    )


def _ratio(found: PlannerRuns) -> str:
    none = found.run("none")
    if none is None or not none.tokens:
        return ""
    late = max(1, none.late_tokens)
    said = [
        f"{run.condition} {run.tokens / none.tokens:.2f} ({run.late_tokens / late:.2f} late)"
        for run in found.runs
        if run.condition in ("+ reuse", "+ curation", "text memory")
    ]
    return f"- tokens, as a share of those without skills: {', '.join(said)}\n"


def _noise(found: NoiseReport) -> str:
    return (
        f"- {found.share:.0%} of labels wrong: {found.right} of the {found.tasks} tasks with a true label"
        f" answered right, {found.right_without_noise} without noise: it costs {found.points:.1f} points\n"
    )


def _frozen(found: FrozenReport) -> str:
    head = (
        f"Frozen bank, {found.planner}: grown on {found.grown_on} tasks, then {found.held_out} held-out"
        " instances without any check.\n\n"
        "| way | right | open | tokens | calls |\n|---|---:|---:|---:|---:|\n"
    )
    rows = "".join(
        f"| {way.way} | {way.right}/{found.held_out} | {way.open} | {way.tokens} | {way.calls} |\n"
        for way in found.ways
    )
    return head + rows


def _planted(found: PlantedReport) -> str:
    return (
        f"- planted harmful skill with tests it passes, {found.streams} streams: restricted in"
        f" {found.restricted}, within 14 guided uses in {found.restricted_within_14}; guided uses"
        f" {', '.join(map(str, found.guided_uses))}; {found.answered_right} of {found.answered} tasks"
        " answered right meanwhile\n"
    )


def _changed(found: ChangedReport) -> str:
    again = (
        "no direct hit came again"
        if found.until_direct is None
        else (f"a direct hit again after {found.until_direct} tasks")
    )
    return (
        f"- an argument renamed in mid-stream: {found.before_right} of {found.before} right before;"
        f" {found.unseen_right} of {found.unseen} before an operator looked"
        f" ({found.unseen_direct} by a skill that calls the changed tool);"
        f" {found.after_right} of {found.after} afterwards ({found.after_direct} direct, {again});"
        f" stale: {', '.join(found.stale) or 'none'}; {'; '.join(found.recovered) or 'nothing recovered'};"
        f" wrong answers of a skill after the change: {found.wrong_direct}\n"
    )
