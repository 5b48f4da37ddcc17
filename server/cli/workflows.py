"""Commands on a workflow or a task: check, run, repair, solve."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click
from pydantic import JsonValue

from catalog.config import ModelSpec
from server.cli.options import (
    DOCUMENT,
    allow_option,
    budget_options,
    check_options,
    examples_option,
    inputs_option,
    model_option,
    save_option,
    session_command,
    tokens_option,
)
from server.cli.render import render_check, render_repair, render_run
from server.cli.render_solved import render_solved
from server.cli.searching import Searching, search_options
from server.cli.session import Session
from server.context.policy import TEMPLATES, ContextPolicy, Template
from server.driving.options import DriveOptions
from server.evolution.lineage import lineage_json, lineage_mermaid
from server.reports import RepairReport, Route, exit_code
from server.requests import Budget, RepairRequest, SolveRequest
from server.verification import Checks

__all__ = ["check", "repair", "run", "solve"]

_trace_option = click.option("--trace", is_flag=True, help="Show each executed step.")
_output_option = click.option(
    "--output",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Write the best workflow found to this file.",
)
_lineage_option = click.option(
    "--lineage",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Write which candidate came of which: JSON where FILE ends in .json, else a Mermaid chart.",
)


@click.command()
@click.argument("workflow", type=DOCUMENT)
@click.option("--connect", is_flag=True, help="Ask the servers for their tools; otherwise as last seen.")
@session_command
def check(session: Session, *, workflow: bytes, connect: bool) -> int:
    """List every static fault of WORKFLOW (a file, or - for stdin) with its place.

    Exit code 1 when there are any.

    \b
    Example:
      skillbank check convert.json --connect
    """
    report = session.with_bank(lambda bank: bank.check(workflow, connect=connect))
    session.show(report, render_check)
    return 1 if report.faults else 0


@click.command()
@click.argument("workflow", type=DOCUMENT)
@inputs_option
@check_options
@allow_option
@_trace_option
@session_command
def run(
    session: Session,
    *,
    workflow: bytes,
    inputs: dict[str, JsonValue],
    checks: Checks,
    allow: tuple[str, ...],
    trace: bool,
) -> int:
    """Execute WORKFLOW (a file, or - for stdin) and print its outputs.

    \b
    Example:
      skillbank run convert.json --inputs '{"celsius": 21}' \\
          --assert 'output.fahrenheit == `69.8`' --trace
    """
    report = session.with_bank(lambda bank: bank.run(workflow, inputs, checks, allow))
    session.show(report, functools.partial(render_run, trace=trace))
    return exit_code(report.status, report.faults)


@click.command()
@click.argument("workflow", type=DOCUMENT)
@click.option("--task", metavar="TEXT", help="The task in your words: what the workflow is for.")
@inputs_option
@check_options
@budget_options
@save_option
@examples_option
@model_option
@tokens_option
@search_options
@allow_option
@_output_option
@_lineage_option
@_trace_option
@click.option("--judge", is_flag=True, help="Have a model score candidates: advice, never proof.")
@session_command
def repair(
    session: Session,
    *,
    workflow: bytes,
    task: str | None,
    inputs: dict[str, JsonValue],
    checks: Checks,
    budget: Budget,
    save: str | None,
    examples: tuple[dict[str, JsonValue], ...],
    model: ModelSpec | None,
    budget_tokens: int,
    searching: Searching,
    allow: tuple[str, ...],
    output: Path | None,
    lineage: Path | None,
    trace: bool,
    judge: bool,
) -> int:
    """Repair WORKFLOW by typed edits until it runs and passes its checks.

    Shows the faults, the edits, the difference and the result. The file itself is not changed.
    What may change something in the world is never repeated.

    Edits chosen by what is wrong come first. Where a model can edit, or with --strategy population,
    the best candidates are then evolved further.

    \b
    Example:
      skillbank repair convert.json --task 'Convert 21 degrees Celsius to Fahrenheit' \\
          --assert 'approx(output.fahrenheit, `69.8`, `0.01`)' --save celsius_to_fahrenheit
      skillbank repair convert.json --strategy population --record search.jsonl --lineage search.mmd
      skillbank repair convert.json --resume search.jsonl
    """
    request = RepairRequest(
        task=task,
        inputs=inputs,
        checks=checks,
        budget=replace(budget, tokens=budget_tokens),
        save=save,
        examples=examples,
        model=model,
        allow=allow,
        search=searching.options,
        record=searching.record,
        resume=searching.resume,
        judge=judge,
    )
    report = session.with_bank(lambda bank: bank.repair(workflow, request))
    if lineage is not None:
        render = lineage_json if lineage.suffix == ".json" else lineage_mermaid
        _written(session, lineage, render(report.lineage, report.candidate))
    return _finish(session, report, output=output, trace=trace)


@click.command()
@click.argument("task")
@inputs_option
@check_options
@budget_options
@save_option
@click.option(
    "--route",
    type=click.Choice(["direct", "seeded", "dynamic"]),
    help="Run a skill, plan with one in view, or plan from scratch. Default: by what the bank knows.",
)
@click.option(
    "--driver",
    type=click.Choice(["plan", "react"]),
    default="plan",
    help="plan: the whole workflow first. react: a model goes step by step. Default: plan.",
)
@click.option(
    "--context",
    "template",
    type=click.Choice(TEMPLATES),
    default="window",
    help="For react: what of a long task the model is shown. Default: window.",
)
@click.option("--steps", type=click.IntRange(1), default=30, help="For react: most steps. Default: 30.")
@model_option
@tokens_option
@click.option("--answer", is_flag=True, help="Put the outputs into words, with the steps they rest on.")
@click.option("--judge", is_flag=True, help="Have a model score the run: advice, never proof.")
@allow_option
@_output_option
@_trace_option
@session_command
def solve(
    session: Session,
    *,
    task: str,
    inputs: dict[str, JsonValue],
    checks: Checks,
    budget: Budget,
    save: str | None,
    route: Route | None,
    driver: str,
    template: Template,
    steps: int,
    model: ModelSpec | None,
    budget_tokens: int,
    answer: bool,
    judge: bool,
    allow: tuple[str, ...],
    output: Path | None,
    trace: bool,
) -> int:
    """Solve TASK, said in words: plan, run, repair, and on verified success compile to a skill.

    Where a model is configured it plans, cheap attempts first; --json tells what each level cost.

    --driver react has the model call tools one at a time instead; what it did is kept as a workflow.

    \b
    Example:
      skillbank solve 'What time is it in Tokyo when it is 09:30 in Berlin?' \\
          --assert 'contains(output.time, `"17:30"`)'
    """
    if driver == "react" and route is not None:
        raise click.UsageError("--driver react takes no --route: skills are among what it may call")
    drive = DriveOptions(steps=steps, policy=ContextPolicy(template)) if driver == "react" else None
    request = SolveRequest(
        drive=drive,
        inputs=inputs,
        checks=checks,
        budget=replace(budget, tokens=budget_tokens),
        save=save,
        route=route,
        model=model,
        allow=allow,
        answer=answer,
        judge=judge,
    )
    report = session.with_bank(lambda bank: bank.solve(task, request))
    return _finish(session, report, output=output, trace=trace, render=render_solved)


def _finish(
    session: Session,
    report: RepairReport,
    *,
    output: Path | None,
    trace: bool,
    render: Callable[..., None] = render_repair,
) -> int:
    session.show(report, functools.partial(render, trace=trace))
    if output is not None:
        _written(session, output, json.dumps(report.workflow, indent=2, ensure_ascii=False) + "\n")
    return exit_code(report.status, report.faults)


def _written(session: Session, path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise click.FileError(str(path), error.strerror or "") from error
    session.say(f"wrote {path}")
