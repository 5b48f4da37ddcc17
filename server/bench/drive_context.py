"""The context part of the drive benchmark: long tasks over real servers, under each template in two windows.

The scripted policy acts only on what it is shown, so a template that loses what a task needs fails it: each
task reads many logs of a repository, hashes each, and at its end needs a name that stood in the first one.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from pydantic import JsonValue

from server.backends.backend import Request, Wire
from server.backends.estimate import estimate_tokens
from server.backends.roles import with_backend
from server.backends.scripted import ScriptedBackend
from server.bank import Bank
from server.bench.drive_report import ContextRow
from server.bench.kept import Kept
from server.context.policy import ContextPolicy, Template
from server.driving.options import DriveOptions
from server.progress import Progress, ProgressListener
from server.provisioning.demo_files import REPOSITORY, build_fixtures
from server.provisioning.demo_servers import demo_document
from server.requests import Budget, SolveRequest
from server.settings import Settings, read_settings
from server.verification import Checks

__all__ = [
    "Contexts",
    "Drives",
    "OpenBank",
    "measure_contexts",
    "measure_model",
    "open_drives",
    "scripted_policy",
]

_SERVERS = ("git", "hashlib")
_AUTHOR = "Alan"
"""Who made the newest commit of the fixture's repository."""
_ANSWER_TOKENS = 400
_SPARE, _SPARE_OF_MODELS = 8, 2
"""Steps over those that a task needs."""
_BUDGET = Budget(seconds=600, calls=100, candidates=1, tokens=2_000_000)
_NAMED = re.compile(r"(?m)(?:^|\[result |gave )r(\d+)\b")
_FIRST_LOG = re.compile(r"(?m)^r1: (.*)$")


class OpenBank(Protocol):
    """Opens the bank whose servers are called (`server.wiring.open_bank`)."""

    def __call__(self, settings: Settings) -> AbstractAsyncContextManager[Bank]: ...


@dataclass(frozen=True, slots=True)
class _Task:
    name: str
    text: str
    steps: int
    checks: Checks
    takes_inputs: bool = False


def _long_task(steps: int) -> _Task:
    right = hashlib.sha256(_AUTHOR.encode()).hexdigest()
    text = (
        f"Read the log of the repository {steps // 2 - 1} times, each time with one more commit, hash each"
        " with SHA-256, and at the end hash the name of the newest commit's author."
    )
    return _Task(f"logs_{steps}", text, steps, Checks((f"output.author == '{right}'",)), takes_inputs=True)


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


@dataclass(frozen=True, slots=True)
class Contexts:
    """What is driven: tasks of so many steps, in each window under each template."""

    lengths: tuple[int, ...]
    windows: tuple[int, ...]
    templates: tuple[Template, ...]


@dataclass(frozen=True, slots=True)
class Drives:
    """The bank that drives, and what every task of it is given."""

    bank: Bank
    inputs: dict[str, JsonValue]


@asynccontextmanager
async def open_drives(open_bank: OpenBank) -> AsyncGenerator[Drives]:
    """Yield a bank with the real servers and a repository made for this.

    Raises:
        DemoServersMissing: the demo's servers are not installed.
    """
    with TemporaryDirectory(prefix="skillbank-bench-") as made:
        folder = Path(made)
        (folder / "fixtures").mkdir()
        build_fixtures(folder / "fixtures")
        settings = read_settings(config=_config(folder), store=folder / "store.db")
        async with open_bank(settings) as bank:
            yield Drives(bank, {"repository": str(folder / "fixtures" / REPOSITORY)})


async def measure_contexts(
    drives: Drives, contexts: Contexts, listener: ProgressListener
) -> tuple[ContextRow, ...]:
    """Return how far the scripted policy gets."""
    rows: list[ContextRow] = []
    for window in contexts.windows:
        for template in contexts.templates:
            for steps in contexts.lengths:
                policy = scripted_policy(steps)
                backend = ScriptedBackend(policy, name="scripted:policy", context_tokens=window)
                task = _long_task(steps)
                row = await _driven(drives, backend, "scripted policy", task, template, window)
                rows.append(_told(row, listener))
    return tuple(rows)


async def measure_model(
    drives: Drives, model: Wire, contexts: Contexts, kept: Kept, listener: ProgressListener
) -> tuple[ContextRow, ...]:
    """Return how far a model gets with tasks within its reach, in the smallest window.

    A model on this machine needs seconds for each answer, so that finished rows are kept.
    """
    window = min(contexts.windows)
    rows: list[ContextRow] = []
    for template in contexts.templates:
        for task in _SHORT:

            async def make(template: Template = template, task: _Task = task) -> ContextRow:
                return await _driven(drives, model, model.name, task, template, window)

            key = f"{model.name}:{template}:{window}:{task.name}"
            rows.append(_told(await kept.or_made("model", key, ContextRow, make), listener))
    return tuple(rows)


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


async def _driven(
    drives: Drives, backend: Wire, name: str, task: _Task, template: Template, window: int
) -> ContextRow:
    policy = ContextPolicy(template, budget_tokens=window - _ANSWER_TOKENS, summaries=True)
    spare = _SPARE if task.takes_inputs else _SPARE_OF_MODELS
    drive = DriveOptions(
        steps=task.steps + spare,
        answer_tokens=_ANSWER_TOKENS,
        policy=policy,
    )
    used = Bank(replace(drives.bank.context, models=with_backend(backend)))
    inputs = drives.inputs if task.takes_inputs else {}
    # From scratch: what one drive teaches is not to be told to the next, which is compared with it.
    request = SolveRequest(inputs=inputs, checks=task.checks, budget=_BUDGET, drive=drive, route="dynamic")
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
        verified=report.status == "verified",
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
