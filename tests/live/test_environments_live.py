"""Environments of other packages, played by OpenEnv's own client and judged by their own checkers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from server.progress import ignore_progress
from server.provisioning.errors import ProvisioningError
from server.provisioning.fetched import fetch_environment

pytestmark = pytest.mark.live

_CLIENT = """
import asyncio, json, sys
from openenv.core.generic_client import GenericEnvClient

async def play(url, task, seed, damaged):
    async with GenericEnvClient(base_url=url, message_timeout_s=120) as env:
        result = await env.reset(task_id=task, seed=seed)
        assert result.reward is None and not result.done
        reference = (await env.state())["reference"]
        turns = reference.get("turns", [[]])
        if damaged:
            turns = [*turns[:-1], turns[-1][:-1]]
        for turn in turns:
            for call in turn:
                result = await env.step({"type": "call_tool", **call})
            if not result.done:
                answer = None if damaged else reference.get("answer")
                result = await env.step({"type": "submit", "answer": answer})
        assert result.done
        return result.reward

async def main(url, cases):
    print(json.dumps([await play(url + path, *rest) for path, *rest in cases]))

asyncio.run(main(sys.argv[1], json.loads(sys.argv[2])))
"""


@pytest.fixture(scope="module")
def openenv() -> Path:
    """The interpreter of an environment that has OpenEnv alone."""
    try:
        return fetch_environment("openenv", ["openenv==0.10.0"], ignore_progress)
    except ProvisioningError as error:
        pytest.skip(f"OpenEnv cannot be installed: {error}")


@contextmanager
def serving(folder: Path, *arguments: str) -> Iterator[str]:
    """Serve environments as the command line does; yields the address."""
    config = folder / "servers.json"
    if not config.exists():
        config.write_text('{"mcpServers": {}}')
    program = [sys.executable, "-m", "server.cli", "envs", "serve", *arguments]
    options = ["--http", "127.0.0.1:0", "--config", str(config), "--store", str(folder / "store.db")]
    with subprocess.Popen([*program, *options], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said: list[str] = []
        try:
            for line in process.stderr:
                said.append(line)
                if line.startswith("environments at "):
                    yield line.split()[2].rstrip(":")
                    break
            else:
                pytest.fail("".join(said))
        finally:
            process.terminate()
            process.stderr.read()
            process.wait(30)


def rewards(openenv: Path, url: str, cases: list[tuple[str, str, int | None, bool]]) -> list[float | None]:
    command = [str(openenv), "-c", _CLIENT, url, json.dumps(cases)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_openenv_finds_the_wire_valid_and_its_client_plays_our_tasks_to_reward_1(
    openenv: Path, tmp_path: Path
) -> None:
    scenario, tasks = tmp_path / "scenario.json", tmp_path / "tasks.jsonl"
    scenario.write_text(json.dumps({"tools": [{"name": "price", "answers": [{"total": 42.5}]}]}))
    launch = {"command": sys.executable, "args": ["-m", "catalog.testing", str(scenario)]}
    own = {"effects": {"shop": {"*": "read"}}}
    (tmp_path / "servers.json").write_text(json.dumps({"mcpServers": {"shop": launch}, "skillbank": own}))
    task = {
        "id": "total",
        "task": "What is the total?",
        "servers": ["shop"],
        "inputs": {},
        "workflow": {"nodes": []},
        "assertions": ["output.total == `42.5`"],
        "answer": {"total": 42.5},
    }
    tasks.write_text(json.dumps(task))
    with serving(tmp_path, "--tasks", f"shop={tasks}") as url:
        validator = [str(openenv.parent / "openenv"), "validate", "--url", url]
        done = subprocess.run(validator, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Verdict: PASS" in done.stdout
        cases = [("/shop", "total", None, damaged) for damaged in (False, True)]
        assert rewards(openenv, url, cases) == [1.0, 0.0]


def test_reference_solutions_of_bfcl_and_textworld_are_worth_1_and_damaged_ones_0(
    openenv: Path, tmp_path: Path
) -> None:
    plays = [
        ("/bfcl", "multi_turn_base_0", None),
        ("/bfcl", "multi_turn_long_context_3", None),
        ("/textworld", "quest-2", 7),
    ]
    cases = [(*play, damaged) for play in plays for damaged in (False, True)]
    with serving(tmp_path, "bfcl", "textworld") as url:
        assert rewards(openenv, url, cases) == [1.0, 0.0] * len(plays)


def test_the_reference_run_of_a_tau_task_is_worth_1_and_one_without_its_last_write_0(
    openenv: Path, tmp_path: Path
) -> None:
    from server.environments.tasks import tau_tasks

    with serving(tmp_path, "tau-airline") as url:
        writing = [
            task.id
            for task in tau_tasks("airline")
            if task.reference_calls
            and task.reference_calls[-1][0].startswith(("book_", "cancel_", "update_"))
        ]
        cases = [("/tau-airline", writing[0], None, damaged) for damaged in (False, True)]
        assert rewards(openenv, url, cases) == [1.0, 0.0]
