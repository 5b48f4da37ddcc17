"""Tasks that a bank practises on: those that exploring made, and a user's own from a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from server.exploration.errors import TaskFileRejected
from server.exploration.tasks import ExploredTask
from skills_store.workflow.assertions import assertion_problem

__all__ = ["Instance", "PracticeTask", "practice_of", "read_user_tasks"]


@dataclass(frozen=True, slots=True)
class Instance:
    """A task in words with its values, and what makes an answer right."""

    task: str
    assertions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PracticeTask:
    """One task with the instances that may be practised, and one that is kept to examine with."""

    id: str
    practised: tuple[Instance, ...]
    exam: Instance | None
    """Never practised and never taught; None where the task has one instance only."""
    reference: ExploredTask | None
    """The explored task that can be taught; None for a user's."""

    @property
    def is_synthetic(self) -> bool:
        return self.reference is not None


class _Held(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    task: str = ""
    assertions: tuple[str, ...] = ()


class _UserTask(BaseModel):
    """What practising needs; other fields that explored and benchmark tasks have are passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str = ""
    task: str = Field(min_length=1)
    assertions: tuple[str, ...] = Field(min_length=1)
    held_out: tuple[_Held, ...] = ()


def practice_of(task: ExploredTask) -> PracticeTask:
    """Return an explored task to practise on; its last instance is for examining where there are two.

    One that only a judge can tell has one instance, without assertions.
    """
    instances = [Instance(one.task, one.assertions) for one in task.instances] or [Instance(task.task, ())]
    return PracticeTask(task.id, *_divided(instances), reference=task)


def _divided(instances: list[Instance]) -> tuple[tuple[Instance, ...], Instance | None]:
    if len(instances) < 2:
        return tuple(instances), None
    return tuple(instances[:-1]), instances[-1]


def read_user_tasks(path: Path) -> list[PracticeTask]:
    """Return the tasks of a file: JSON lines or one JSON list of `task`, `assertions`, `held_out`.

    Explored tasks and benchmark tasks have these fields. Of `held_out` those with words of their own
    are instances.

    Raises:
        TaskFileRejected: it cannot be read, an entry is no task, an assertion is none, or an id comes twice.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskFileRejected(f"{path}: {error}") from error
    tasks = [
        _user_task(entry, place, number) for number, (entry, place) in enumerate(_entries(text, path), 1)
    ]
    if not tasks:
        raise TaskFileRejected(f"{path}: it has no task")
    ids = [task.id for task in tasks]
    if twice := sorted({one for one in ids if ids.count(one) > 1}):
        raise TaskFileRejected(f"{path}: task ids are not unique: {', '.join(twice)}")
    return tasks


def _entries(text: str, path: Path) -> Iterator[tuple[JsonValue, str]]:
    """Yield each entry of a file with its place."""
    if text.lstrip().startswith("["):
        listed = _json(text, f"{path}")
        for number, entry in enumerate(cast("list[JsonValue]", listed), 1):
            yield entry, f"{path}: task {number}"
        return
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield _json(line, f"{path}:{number}"), f"{path}:{number}"


def _json(text: str, place: str) -> JsonValue:
    try:
        return cast("JsonValue", json.loads(text))
    except ValueError as error:
        raise TaskFileRejected(f"{place}: no JSON: {error}") from error


def _user_task(entry: JsonValue, place: str, number: int) -> PracticeTask:
    try:
        read = _UserTask.model_validate(entry)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = "/".join(map(str, first["loc"])) or "the entry"
        raise TaskFileRejected(f"{place}: {field}: {first['msg']}") from error
    held = [one for one in read.held_out if one.task and one.assertions]
    instances = [Instance(one.task, one.assertions) for one in (read, *held)]
    for text in (text for one in instances for text in one.assertions):
        if problem := assertion_problem(text):
            raise TaskFileRejected(f"{place}: assertion {text!r}: {problem}")
    return PracticeTask(read.id or f"user-{number:02d}", *_divided(instances), reference=None)
