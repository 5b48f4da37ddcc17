"""The drive benchmark: long tasks over real servers, driven under each context template in two windows.

The scripted policy acts only on what it is shown, so a template that loses what a task needs fails it: each
task reads many logs of a repository, hashes each, and at its end needs a name that stood in the first one.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from pydantic import JsonValue

from server.backends.backend import Request, Wire
from server.backends.estimate import estimate_tokens
from server.backends.roles import with_backend
from server.backends.scripted import ScriptedBackend
from server.bank import Bank
from server.bench.drive_environments import measure_environments
from server.bench.drive_report import ContextRow, DriveBenchReport, render_drive_report
from server.bench.fixtures import REPOSITORY, build_fixtures
from server.bench.models import answers_of
from server.bench.planning_tape import About, Tape
from server.bench.request import BenchRequest, Measured, show_progress
from server.bench.servers import demo_document, installed_versions
from server.context.policy import TEMPLATES, ContextPolicy, Template
from server.driving.options import DriveOptions
from server.progress import Progress, ProgressListener, ignore_progress
from server.requests import Budget, SolveRequest
from server.settings import Settings, read_settings
from server.verification import Checks

__all__ = [
    "DriveBenchOptions",
    "OpenBank",
    "measure",
    "quick_drive_options",
    "run_drive_bench",
    "scripted_policy",
]

_SERVERS = ("git", "hashlib")
_AUTHOR = "Alan"
"""Who made the newest commit of the fixture's repository."""
_ANSWER_TOKENS = 400
_BUDGET = Budget(seconds=600, calls=100, candidates=1, tokens=2_000_000)
_NAMED = re.compile(r"(?m)(?:^|\[result |gave )r(\d+)\b")
_FIRST_LOG = re.compile(r"(?m)^r1: (.*)$")


class OpenBank(Protocol):
    """Opens the bank whose servers are called (`server.wiring.open_bank`)."""

    def __call__(self, settings: Settings) -> AbstractAsyncContextManager[Bank]: ...


@dataclass(frozen=True, slots=True)
class DriveBenchOptions:
    """What is measured, and with how much."""

    lengths: tuple[int, ...] = (8, 12, 20, 30)
    """Steps of the tasks for the scripted policy."""
    windows: tuple[int, ...] = (4_096, 8_192)
    templates: tuple[Template, ...] = TEMPLATES
    live: Wire | None = None
    """A model that is driven through short tasks too; None: none is."""
    quick: bool = False
    listener: ProgressListener = field(default=ignore_progress)


def quick_drive_options() -> DriveBenchOptions:
    """Return a size that ends within a minute: the shortest task and the longest, in the small window."""
    return DriveBenchOptions(lengths=(8, 30), windows=(4_096,), quick=True)


@dataclass(frozen=True, slots=True)
class _Task:
    name: str
    text: str
    steps: int
    checks: Checks


def _long_task(steps: int) -> _Task:
    right = hashlib.sha256(_AUTHOR.encode()).hexdigest()
    text = (
        f"Read the log of the repository {steps // 2 - 1} times, each time with one more commit, hash each"
        " with SHA-256, and at the end hash the name of the newest commit's author."
    )
    return _Task(f"logs_{steps}", text, steps, Checks((f"output.author == '{right}'",)))


_SHORT = (
    _Task(
        "one_hash",
        "Compute the SHA-256 hash of the text 'milk'. Output: digest.",
        2,
        Checks((f"output.digest == '{hashlib.sha256(b'milk').hexdigest()}'",)),
    ),
    _Task(
        "hash_of_hash",
        "Compute the MD5 hash of the text 'milk', then the SHA-1 hash of that MD5 hash. Output: digest.",
        3,
        Checks(
            (
                "output.digest == '"
                + hashlib.sha1(hashlib.md5(b"milk").hexdigest().encode()).hexdigest()
                + "'",
            )
        ),
    ),
)
"""For a model: each within its reach, so that what is compared is the template."""


async def run_drive_bench(options: DriveBenchOptions, open_bank: OpenBank) -> DriveBenchReport:
    """Return how far the policy, and a model where one is given, get under each template.

    Raises:
        DemoServersMissing: the demo's servers are not installed.
    """
    started = time.perf_counter()
    rows: list[ContextRow] = []
    with TemporaryDirectory(prefix="skillbank-bench-") as made:
        folder = Path(made)
        (folder / "fixtures").mkdir()
        build_fixtures(folder / "fixtures")
        settings = read_settings(config=_config(folder), store=folder / "store.db")
        inputs: dict[str, JsonValue] = {"repository": str(folder / "fixtures" / REPOSITORY)}
        async with open_bank(settings) as bank:
            for window in options.windows:
                for template in options.templates:
                    for steps in options.lengths:
                        row = await _scripted(bank, _long_task(steps), template, window, inputs)
                        rows.append(_told(row, options.listener))
                    for task in _SHORT if options.live is not None else ():
                        assert options.live is not None
                        row = await _driven(bank, options.live, options.live.name, task, template, window, {})
                        rows.append(_told(row, options.listener))
    environments = await measure_environments(options.quick, options.listener)
    notes = (
        "the policy is scripted, no model: it takes each step from what the messages show, and its tokens are"
        " estimated at three bytes each; what is measured is the context",
        "a prompt that cannot hold what must stay ends a drive by `context`",
    )
    own = {name: metadata.version(name) for name in ("skillbank", "mcp")}
    return DriveBenchReport(
        quick=options.quick,
        rows=tuple(rows),
        environments=environments,
        versions={**{n: v for n, v in installed_versions().items() if "git" in n or "hash" in n}, **own},
        seconds=time.perf_counter() - started,
        notes=notes if options.live is not None else (*notes, "no model was driven: `--model` names one"),
    )


def _config(folder: Path) -> Path:
    document = demo_document(_SERVERS)
    own = document["skillbank"]
    document["skillbank"] = {**(own if isinstance(own, dict) else {}), "learning": "off"}
    path = folder / "config.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def _told(row: ContextRow, listener: ProgressListener) -> ContextRow:
    outcome = "right" if row.right else f"not right, ended by {row.ended}"
    listener(Progress("bench", f"{row.driver}, {row.template}, {row.window} tokens, {row.task}: {outcome}"))
    return row


async def _scripted(
    bank: Bank, task: _Task, template: Template, window: int, inputs: dict[str, JsonValue]
) -> ContextRow:
    backend = ScriptedBackend(scripted_policy(task.steps), name="scripted:policy", context_tokens=window)
    return await _driven(bank, backend, "scripted policy", task, template, window, inputs)


async def _driven(
    bank: Bank,
    backend: Wire,
    name: str,
    task: _Task,
    template: Template,
    window: int,
    inputs: dict[str, JsonValue],
) -> ContextRow:
    policy = ContextPolicy(template, budget_tokens=window - _ANSWER_TOKENS, summaries=True)
    drive = DriveOptions(steps=task.steps + 8, answer_tokens=_ANSWER_TOKENS, policy=policy)
    used = Bank(replace(bank.context, models=with_backend(backend)))
    request = SolveRequest(inputs=inputs, checks=task.checks, budget=_BUDGET, drive=drive)
    started = time.perf_counter()
    report = await used.solve(task.text, request)
    driven = report.drive
    prompts = [sum(estimate_tokens(m.text) for m in s.messages) for s in driven.snapshots] if driven else []
    finished = driven is not None and driven.ended == "finished"
    return ContextRow(
        driver=name,
        template=template,
        window=window,
        task=task.name,
        steps=task.steps,
        taken=driven.steps if driven else 0,
        right=finished and report.status == "verified",
        ended=driven.ended if driven else "no model",
        tokens=driven.tokens if driven else 0,
        largest_prompt=max(prompts, default=0),
        seconds=time.perf_counter() - started,
    )


def scripted_policy(steps: int) -> Callable[[Request], str]:
    """Return a policy for the task of that many steps, which knows nothing but what it is shown."""

    def say(request: Request) -> str:
        shown = "\n".join(message.text for message in request.messages if message.role != "assistant")
        if (asked := re.search(r"For each of ([r\d, ]+) say whether", shown)) is not None:
            decisions = [{"id": name.strip(), "action": "drop"} for name in asked[1].split(",")]
            return json.dumps({"decisions": decisions})
        return json.dumps(_next_step(shown, steps))

    return say


def _next_step(shown: str, steps: int) -> dict[str, Any]:
    done = max((int(number) for number in _NAMED.findall(shown)), default=0)
    if done == steps - 1:
        return _call("finish", author=f"$r{done}#/result")
    if done < steps - 2:
        number = done + 1
        if number % 2:
            return _call("git_log", repo_path="$inputs.repository", max_count=number)
        return _call("hash_sha256", data=f"$r{done}#/text")
    first = _FIRST_LOG.search(shown)
    author = re.search(r"Author: (\w+)", first[1]) if first else None
    if author is None:
        return _call("recall", result="r1", pointer="")
    return _call("hash_sha256", data=author[1])


def _call(tool: str, **arguments: JsonValue) -> dict[str, Any]:
    return {"thought": "on to the next", "tool": tool, "arguments": arguments}


async def measure(request: BenchRequest) -> Measured:
    """Measure what the command asks for."""
    from server.wiring import open_bank

    def nothing() -> Tape:
        return Tape(About(model="none"))

    async with answers_of(request, nothing) as (_, live):
        options = quick_drive_options() if request.quick else DriveBenchOptions()
        report = await run_drive_bench(replace(options, live=live, listener=show_progress), open_bank)
    return Measured(report, render_drive_report(report))
