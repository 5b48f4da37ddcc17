"""Draws what is particular to `solve`: what the model cost level by level, the words, the opinion."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from server.cli.render import heading, plain, render_repair, table
from server.reports import AnswerReport, JudgeReport, RepairReport

__all__ = ["render_solved"]


def render_solved(console: Console, report: RepairReport, *, trace: bool = False) -> None:
    """Draw the answer of `solve`."""
    render_repair(console, report, trace=trace)
    if report.model_problem is not None:
        line = Text.assemble(("! ", "yellow"), plain(f"{report.model} did not plan: {report.model_problem}"))
        console.print(line, soft_wrap=True)
    if report.levels:
        _render_levels(console, report)
    if report.answer is not None:
        _render_answer(console, report.answer)
    if report.judgement is not None:
        _render_judgement(console, report.judgement)


def _render_levels(console: Console, report: RepairReport) -> None:
    heading(console, "Levels")
    drawn = table("", "level", "plans", "tokens", "calls", "candidates", "s", "then")
    for level in report.levels:
        is_it = level.level == report.solved_by
        drawn.add_row(
            Text("✓", "green") if is_it else Text("·", "dim"),
            plain(level.level, "bold" if is_it else ""),
            plain(level.plans),
            plain(level.tokens),
            plain(level.calls),
            plain(level.candidates),
            plain(f"{level.seconds:.1f}"),
            plain(level.note or (level.status or "no plan").replace("_", " "), "dim"),
        )
    console.print(drawn)
    prices = [level.cost_usd for level in report.levels if level.cost_usd is not None]
    cost = f", ${sum(prices):.4f}" if prices else ""
    console.print(f"{report.model}: {report.tokens} tokens{cost}", style="dim", markup=False)


def _render_answer(console: Console, answer: AnswerReport) -> None:
    heading(console, "Answer")
    console.print(plain(answer.text), soft_wrap=True)
    if answer.nodes:
        console.print(plain(f"rests on {', '.join(answer.nodes)}", "dim"), soft_wrap=True)
    for problem in answer.problems:
        console.print(Text.assemble(("! ", "yellow"), plain(problem)), soft_wrap=True)


def _render_judgement(console: Console, judgement: JudgeReport) -> None:
    heading(console, "Judge")
    if judgement.score is not None:
        drawn = table("score", "1 to 10", "readings apart")
        for name, score in judgement.scores.items():
            drawn.add_row(
                plain(name.replace("_", " ")),
                plain(f"{score:.1f}"),
                plain(f"{judgement.disagreement.get(name, 0.0):g}"),
            )
        console.print(drawn)
        said = (
            f"{judgement.score:.2f} by {judgement.model}, {judgement.readings} of {judgement.asked} readings"
        )
        console.print(plain(f"{said}; an opinion, no proof", "dim"), soft_wrap=True)
    for problem in judgement.problems:
        console.print(Text.assemble(("! ", "yellow"), plain(problem)), soft_wrap=True)
