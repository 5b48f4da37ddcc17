"""The part "environments" of the driver's benchmark: resets and steps per second, sixteen at once, a kill.

Measured on a scripted tool server, whose answers cost nothing: what is measured is the service.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
from pydantic import BaseModel, ConfigDict

from server.environments.definitions import Definition, of_task_file
from server.environments.errors import WorkerFailed
from server.environments.instance import Instance
from server.environments.instances import open_instances
from server.environments.world import JsonObject
from server.settings import read_settings

__all__ = ["EnvironmentsPart", "run"]

_CALL: JsonObject = {"type": "call_tool", "tool_name": "price", "arguments": {}}


class EnvironmentsPart(BaseModel):
    """What was measured."""

    model_config = ConfigDict(frozen=True)

    instances: int
    """At once."""
    resets_per_second: float
    """Over all of them, each reset a fresh process of its tool server."""
    steps_per_second: float
    """Over all of them, each step a call of a tool."""
    others_played_on: int
    """Of the instances whose worker was not killed, how many ended their episode with reward 1."""
    killed_told: bool
    """Whether the one that was killed said so."""


async def run(quick: bool) -> EnvironmentsPart:
    """Return the figures.

    Args:
        quick: four instances rather than sixteen.
    """
    number, resets, steps = (4, 2, 10) if quick else (16, 5, 100)
    with TemporaryDirectory(prefix="skillbank-bench-") as made:
        async with open_instances({"shop": _definition(Path(made))}) as pool:
            held = [await pool.create("shop") for _ in range(number)]
            await _all(held, 1, 0)  # the processes of the workers start here
            resetting = await _all(held, resets, 0)
            stepping = await _all(held, 0, steps)
            told, played = await _killed(held)
    return EnvironmentsPart(
        instances=number,
        resets_per_second=number * resets / resetting,
        steps_per_second=number * steps / stepping,
        others_played_on=played,
        killed_told=told,
    )


async def _all(held: list[Instance], resets: int, steps: int) -> float:
    """Return how many seconds all of them need, at the same time."""

    async def play(instance: Instance) -> None:
        for _ in range(resets):
            await instance.reset("total")
        for _ in range(steps):
            await instance.step(_CALL)

    started = anyio.current_time()
    async with anyio.create_task_group() as group:
        for instance in held:
            group.start_soon(play, instance)
    return anyio.current_time() - started


async def _killed(held: list[Instance]) -> tuple[bool, int]:
    victim, *others = held
    if victim.pid is None:
        raise RuntimeError("an instance that was reset has no process")
    os.kill(victim.pid, signal.SIGKILL)
    told = False
    try:
        await victim.step(_CALL)
    except WorkerFailed:
        told = True
    rewards = [(await one.step({"type": "submit", "answer": {"total": 42.5}})).reward for one in others]
    return told, rewards.count(1.0)


def _definition(folder: Path) -> Definition:
    scenario, config, tasks = (folder / name for name in ("scenario.json", "config.json", "tasks.json"))
    scenario.write_text(json.dumps({"tools": [{"name": "price", "answers": [{"total": 42.5}]}]}))
    launch = {"command": sys.executable, "args": ["-m", "catalog.testing", str(scenario)]}
    own = {"effects": {"shop": {"*": "read"}}}
    config.write_text(json.dumps({"mcpServers": {"shop": launch}, "skillbank": own}))
    task: JsonObject = {
        "id": "total",
        "task": "What is the total?",
        "servers": ["shop"],
        "inputs": {},
        "workflow": {"nodes": []},
        "assertions": ["output.total == `42.5`"],
    }
    tasks.write_text(json.dumps(task))
    return of_task_file("shop", tasks, read_settings(config=config, store=folder / "store.db"))
