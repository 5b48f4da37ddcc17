"""Problems of the code and mathematics sets, asked of one model: how many it gets right, and what is kept.

A function is run against its asserts in the sandbox alone; one that passes is judged as a code skill.
Expected values stay in this process. The figures are the model's, which the report names.

Paper: FlowEvo (HumanEval, MBPP, GSM8K, MATH-500). Differs: the loaders take any file and backend; no
    figure of another model stands beside them.
"""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue

from server.backends.backend import Message, Request, Wire
from server.backends.errors import BackendTimeout
from server.bank import Bank
from server.bank.errors import BankError
from server.bench.errors import BenchError
from server.bench.kept import Kept
from server.bench.models import spec_of
from server.bench.problems import (
    CodeProblem,
    MathProblem,
    Problem,
    is_same_answer,
    kinds_of,
    load_problems,
)
from server.bench.request import BenchRequest, Measured, show_progress
from server.planning.answer_json import NotJson, read_json
from server.planning.conversation import MeteredBackend
from server.progress import Progress, ProgressListener, ignore_progress
from server.requests import SaveCodeRequest
from server.sandbox.engine import CodeRequest, Returned, SandboxUnavailable
from server.wiring import open_bank
from skills_store.code.examples import CodeExample, parse_examples
from skills_store.code.lint import lint_code
from skills_store.code.reading import Function, parse_code, read_function
from skills_store.errors import MalformedCode
from skills_store.workflow.bounds import json_equal

__all__ = [
    "ProblemsOptions",
    "ProblemsReport",
    "SetReport",
    "measure",
    "render_problems_report",
    "run_problems_bench",
]

_CODE = (
    "You write one Python function. Annotate its parameters and result with int, float, str, bool, None,"
    ' list, dict or unions of them. Answer with one JSON object: {"source": "the whole module as text"}.'
)
_MATH = (
    'You solve a problem. Think first, then answer with one JSON object: {"reasoning": "…", "answer": "…"}.'
    " The answer is the final value alone, as short as it can be written."
)
_FENCED = re.compile(r"```(?:python)?\n(.*?)```", re.DOTALL)
_NEAR = 1e-6
_ANSWER_SECONDS = 300.0
"""A small model on a busy machine takes minutes to think 1,200 tokens."""


@dataclass(frozen=True, slots=True)
class ProblemsOptions:
    """What is asked of whom."""

    problems: Sequence[Problem]
    model: Wire
    listener: ProgressListener = field(default=ignore_progress)
    kept: Kept = field(default_factory=lambda: Kept(None))
    """Problems that an earlier run was answered."""


class SetReport(BaseModel):
    """One set of problems."""

    model_config = ConfigDict(frozen=True)

    name: str
    problems: int
    right: int
    left_out: int
    """Code problems none of whose asserts compares with a literal: nothing could judge them."""
    partly: int
    """Code problems of whose asserts some do not, and that were judged by the others."""
    late: int
    """Problems to which no answer came in time; they count as not right."""
    kept: int
    """Functions that passed and became skills; how many of these are active follows."""
    active: int
    tokens: int
    seconds: float


class ProblemsReport(BaseModel):
    """Answer of `bench problems`."""

    model_config = ConfigDict(frozen=True)

    bench: Literal["problems"] = "problems"
    model: str
    sets: tuple[SetReport, ...]
    seconds: float


class _Answered(BaseModel):
    """What became of one problem: what a run that goes on keeps of it."""

    model_config = ConfigDict(frozen=True)

    right: bool
    left_out: bool = False
    partly: bool = False
    late: bool = False
    state: str | None = None
    tokens: int = 0
    seconds: float = 0.0


async def run_problems_bench(options: ProblemsOptions, bank: Bank) -> ProblemsReport:
    """Return what a model makes of problems.

    Args:
        options: the problems and the model.
        bank: keeps the functions that pass; its sandbox runs them.

    Raises:
        BackendError: the model cannot be asked.
    """
    started = time.perf_counter()
    sets = [await _set(name, options, bank) for name in kinds_of(options.problems)]
    return ProblemsReport(model=options.model.name, sets=tuple(sets), seconds=time.perf_counter() - started)


async def _set(name: str, options: ProblemsOptions, bank: Bank) -> SetReport:
    mine = [problem for problem in options.problems if problem.set == name]
    answers: list[_Answered] = []
    for number, problem in enumerate(mine, 1):

        async def make(problem: Problem = problem) -> _Answered:
            return await _timed(problem, options.model, bank)

        key = f"{options.model.name}/{problem.id}"
        answers.append(await options.kept.or_made("problems", key, _Answered, make))
        right = sum(answer.right for answer in answers)
        options.listener(Progress("bench", f"{name} {number} of {len(mine)}: {right} right"))
    states = [answer.state for answer in answers if answer.state is not None]
    return SetReport(
        name=name,
        problems=len(mine),
        right=sum(answer.right for answer in answers),
        left_out=sum(answer.left_out for answer in answers),
        partly=sum(answer.partly for answer in answers),
        late=sum(answer.late for answer in answers),
        kept=len(states),
        active=states.count("active"),
        tokens=sum(answer.tokens for answer in answers),
        seconds=sum(answer.seconds for answer in answers),
    )


async def _timed(problem: Problem, wire: Wire, bank: Bank) -> _Answered:
    model, started = MeteredBackend(wire), time.perf_counter()
    try:
        answered = await _answered(problem, model, bank)
    except BackendTimeout:
        answered = _Answered(right=False, late=True)
    spent = {"tokens": model.usage.total, "seconds": time.perf_counter() - started}
    return answered.model_copy(update=spent)


async def _answered(problem: Problem, model: MeteredBackend, bank: Bank) -> _Answered:
    match problem:
        case MathProblem():
            text = await _said(_MATH, problem.asked, model)
            return _Answered(right=is_same_answer(_field(text, "answer") or text, problem.answer))
        case CodeProblem():
            if not _has_examples(problem):
                return _Answered(right=False, left_out=True)
            text = await _said(_CODE, problem.asked, model)
            fenced = _FENCED.search(text)
            source = _field(text, "source") or (fenced[1] if fenced else text)
            return await _tried(source, problem, bank)


async def _said(rules: str, asked: str, model: MeteredBackend) -> str:
    messages = (Message("system", rules), Message("user", asked))
    request = Request(messages, max_output_tokens=1_200, deadline_seconds=_ANSWER_SECONDS)
    return (await model.complete(request)).text


def _field(text: str, name: str) -> str | None:
    """Return a field of an answer that is a JSON object, None where it is none or has no such field."""
    try:
        found = read_json(text)
    except NotJson:
        return None
    value = found.get(name) if isinstance(found, dict) else None
    return None if value is None else str(value)


def _has_examples(problem: CodeProblem) -> bool:
    """Return whether an assert compares with a literal; parameters are not known before it is written."""
    return bool(re.search(rf"assert {re.escape(problem.entry)}\(", problem.tests))


async def _tried(source: str, problem: CodeProblem, bank: Bank) -> _Answered:
    """Return whether a function passes every assert, and the state of the skill it becomes."""
    try:
        function = read_function(_with_types(source, problem.entry), problem.entry)
    except MalformedCode:
        return _Answered(right=False)
    usable, examples = _usable(problem.tests, function)
    is_partly = usable != problem.tests
    if not examples:
        return _Answered(right=False, left_out=True)
    if lint_code(source) or not await _passes(source, problem.entry, examples, bank):
        return _Answered(right=False, partly=is_partly)
    name = re.sub(r"[^a-z0-9]+", "_", problem.id.lower()).strip("_")
    try:
        saved = await bank.save_code(
            SaveCodeRequest(f"p_{name}", source, usable, problem.entry, task=problem.asked)
        )
    except BankError:
        return _Answered(right=True, partly=is_partly)  # it is right, and no skill
    return _Answered(right=True, partly=is_partly, state=saved.skill.state if saved.skill else None)


def _usable(tests: str, function: Function) -> tuple[str, list[CodeExample]]:
    """Return the asserts that compare with a literal, as a text and as examples."""
    lines: list[str] = []
    examples: list[CodeExample] = []
    for line in tests.split("\n"):
        try:
            examples += parse_examples(line, function)
            lines.append(line)
        except MalformedCode:
            continue  # what it compares with is computed by the test itself, which nothing here runs
    return "\n".join(lines), examples


def _with_types(source: str, entry: str) -> str:
    """Return a module whose function says of every parameter what it is, `object` where it said nothing.

    A right answer without types counts as right; it becomes no skill, which has to have them.
    """
    tree = parse_code(source)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == entry:
            node.returns = node.returns or _anything()
            for argument in (*node.args.args, *node.args.kwonlyargs):
                argument.annotation = argument.annotation or _anything()
    return ast.unparse(ast.fix_missing_locations(tree))


def _anything() -> ast.expr:
    return ast.Name("object", ast.Load())


async def _passes(source: str, entry: str, examples: Sequence[CodeExample], bank: Bank) -> bool:
    sandbox = bank.context.sandbox
    if sandbox is None:
        raise BenchError("nothing here runs code")
    for example in examples:
        try:
            ran = (await sandbox.first_able(CodeRequest(source, entry, example.inputs))).outcome
        except SandboxUnavailable as error:
            raise BenchError(str(error)) from error
        if not (isinstance(ran, Returned) and _is_equal(ran.value, example.expected)):
            return False
    return True


def _is_equal(given: JsonValue, expected: JsonValue) -> bool:
    if isinstance(given, float) and isinstance(expected, int | float):
        return abs(given - expected) <= _NEAR * max(1.0, abs(expected))
    return json_equal(given, expected)


async def measure(request: BenchRequest) -> Measured:
    """Measure what the command asks for, with a store of its own."""
    if request.tasks is None or request.model is None:
        raise BenchError("problems are yours: give a file with --tasks and a model with --model")
    problems = load_problems(request.tasks)
    with TemporaryDirectory(prefix="skillbank-bench-") as folder:
        settings = replace(request.configured, store_path=Path(folder) / "store.db")
        async with open_bank(settings) as bank:
            model = await bank.context.models.open(spec_of(request.model))
            report = await run_problems_bench(
                ProblemsOptions(problems, model, show_progress, Kept(request.keep)), bank
            )
    return Measured(report, render_problems_report(report))


def render_problems_report(report: ProblemsReport) -> str:
    """Return the report as a Markdown table."""
    head = (
        f"Asked of {report.model}, one answer each. Functions run in the sandbox against their asserts; those"
        " that pass are judged as code skills.\n\n"
        "| set | right | left out | judged in part | no answer in time | kept as skills | active | tokens |"
        " seconds |\n"
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|\n"
    )
    rows = "".join(
        f"| {one.name} | {one.right}/{one.problems} | {one.left_out} | {one.partly} | {one.late} |"
        f" {one.kept} | {one.active} | {one.tokens} | {one.seconds:.0f} |\n"
        for one in report.sets
    )
    return head + rows
