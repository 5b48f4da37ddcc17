"""The references part of the drive benchmark: what reference solutions, and damaged ones, are worth.

Every task of the built-in environments is played twice by its reference: as it is, and without the last call
that counts. A run that changes nothing has none; it is damaged by a change that belongs to another task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import anyio
from pydantic import BaseModel, ConfigDict

from server.bench.drive_report import ReferencesRow
from server.bench.kept import Kept
from server.environments.definitions import BUILT_IN, built_in
from server.environments.instance import Instance, Played
from server.environments.instances import Instances, open_instances
from server.environments.limits import Limits
from server.environments.world import JsonObject
from server.progress import Progress, ProgressListener
from server.settings import read_settings

__all__ = ["damaged", "is_change", "measure_references"]

_AT_ONCE = 2
_QUICK = 2
"""Tasks of each environment in the quick size."""
_STEPS = 500
_CHANGES = ("book_", "cancel_", "update_", "exchange_", "modify_", "return_", "send_")
"""How tools of τ²-bench that change its databases are called."""

Turns = list[list[JsonObject]]


class _Worth(BaseModel):
    """One task: what its reference got, and the damaged one."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: str
    right: float | None
    damaged: float | None
    detail: str
    """What was said of the reference not worth 1, or else of the damaged one not worth 0."""


@dataclass(frozen=True, slots=True)
class _Played:
    reward: float | None
    detail: str


async def measure_references(
    quick: bool, kept: Kept, listener: ProgressListener, names: Sequence[str] = tuple(BUILT_IN)
) -> tuple[ReferencesRow, ...]:
    """Return a row for each environment; their packages are fetched where they are not there.

    Raises:
        BenchError: a package cannot be fetched.
    """
    with TemporaryDirectory(prefix="skillbank-bench-") as made:
        config = Path(made) / "config.json"
        config.write_text('{"mcpServers": {}}', encoding="utf-8")
        settings = read_settings(config=config, store=Path(made) / "store.db")
        definitions = {name: built_in(name, settings, listener) for name in names}
        async with open_instances(definitions, Limits(instances=_AT_ONCE, steps=_STEPS)) as pool:
            return tuple([await _environment(name, quick, kept, listener, pool) for name in names])


async def _environment(
    name: str, quick: bool, kept: Kept, listener: ProgressListener, pool: Instances
) -> ReferencesRow:
    tasks = {one: task for split in (await pool.tasks(name)).values() for one, task in split.items()}
    chosen = list(tasks)[:_QUICK] if quick else list(tasks)
    changes = _changes_of(tasks)
    found: dict[str, _Worth] = {}
    waiting = iter(chosen)

    async def play() -> None:
        instance = await pool.create(name)
        for task in waiting:
            found[task] = await kept.or_made(
                "references", f"{name}:{task}", _Worth, lambda task=task: _worth(instance, task, changes)
            )
            if len(found) % 50 == 0:
                listener(Progress("bench", f"references: {name}, {len(found)} of {len(chosen)}"))
        await pool.release(instance.id)

    async with anyio.create_task_group() as group:
        for _ in range(_AT_ONCE):
            group.start_soon(play)
    return _row(name, len(tasks), [found[task] for task in chosen])


def _row(name: str, tasks: int, worths: Sequence[_Worth]) -> ReferencesRow:
    wrong = [one for one in worths if one.right != 1.0 or one.damaged != 0.0]
    return ReferencesRow(
        environment=name,
        tasks=tasks,
        played=len(worths),
        right=sum(one.right == 1.0 for one in worths),
        damaged_wrong=sum(one.damaged == 0.0 for one in worths),
        exceptions=tuple(f"{one.task}: {one.right} and {one.damaged}, {one.detail}"[:300] for one in wrong),
    )


def _changes_of(tasks: Mapping[str, JsonObject]) -> list[tuple[str, JsonObject]]:
    """Return the first change of each reference, with its task; none where tasks hold no reference."""
    found: list[tuple[str, JsonObject]] = []
    for name, task in tasks.items():
        calls = cast("list[tuple[str, JsonObject]]", task.get("reference_calls") or [])
        made: list[JsonObject] = [{"tool_name": tool, "arguments": given} for tool, given in calls]
        if first := next((call for call in made if is_change(call)), None):
            found.append((name, first))
    return found


async def _worth(instance: Instance, task: str, changes: Sequence[tuple[str, JsonObject]]) -> _Worth:
    right, turns = await _play(instance, task, None)
    other = next((change for name, change in changes if name != task), None)
    wrong, _ = await _play(instance, task, damaged(turns, other))
    detail = right.detail if right.reward != 1.0 else "" if wrong.reward == 0.0 else wrong.detail
    return _Worth(task=task, right=right.reward, damaged=wrong.reward, detail=detail)


async def _play(instance: Instance, task: str, turns: Turns | None) -> tuple[_Played, Turns]:
    """Play a task by these turns, None: by its reference; return what it got, and the reference."""
    await instance.reset(task, seed=0)
    reference = cast("JsonObject", instance.state()["reference"])
    known = cast("Turns", reference.get("turns") or [[]])
    last: Played | None = None
    for turn in known if turns is None else turns:
        for call in turn:
            last = await instance.step({"type": "call_tool", **call})
        if last is None or not last.done:
            last = await instance.step({"type": "submit", "answer": reference.get("answer")})
    state = instance.state()
    reward = state["reward"]
    return _Played(float(reward) if isinstance(reward, int | float) else None, str(state["detail"])), known


def damaged(turns: Turns, other: JsonObject | None) -> Turns:
    """Return a run that is not right any more.

    Args:
        turns: of the reference.
        other: a change that another task's reference makes, None where changes are not known: the last call
            is left out. Else the last change is, and where the reference makes none, the other is added.
    """
    calls = [(place, number) for place, turn in enumerate(turns) for number in range(len(turn))]
    counting = calls if other is None else [one for one in calls if is_change(turns[one[0]][one[1]])]
    copied = [list(turn) for turn in turns]
    if counting:
        place, number = counting[-1]
        del copied[place][number]
    elif other is not None:
        copied[-1].append(other)
    return copied


def is_change(call: JsonObject) -> bool:
    """Return whether a call of τ²-bench changes its database."""
    return str(call.get("tool_name")).startswith(_CHANGES)
