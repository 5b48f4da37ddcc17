"""Benchmark tasks: the format that others can bring cases in, and the reference tasks of our own.

A file is a JSON list of tasks; its JSON Schema is `docs/schemas/bench_tasks.json`. Breaking a
task's reference workflow is `server.bench.damage`, running a task `server.bench.repair_bench`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Annotated, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from server.bench.errors import TasksRejected
from server.bench.fixtures import FIXTURES
from skills_store.errors import MalformedWorkflow
from skills_store.workflow.assertions import assertion_problem
from skills_store.workflow.model import Workflow, parse_workflow

__all__ = [
    "BenchTask",
    "HeldOut",
    "evolution_tasks",
    "load_tasks",
    "parse_tasks",
    "place_fixtures",
    "planning_tasks",
    "reference_tasks",
    "tasks_schema",
]


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


Assertions = Annotated[tuple[str, ...], BeforeValidator(_as_list), Field(min_length=1)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class HeldOut(_Model):
    """Other inputs, on which a right repair is right as well. The repair never sees them."""

    inputs: dict[str, JsonValue]
    assertions: Assertions


class BenchTask(_Model):
    """One task: words, inputs, and how to tell whether a workflow does it.

    Exactly what a repair is given: `task`, `inputs` and the broken workflow. It is judged by
    `assertions` and afterwards by `held_out`. `${FIXTURES}` in any text stands for the folder of
    fixture files.
    """

    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=128)
    task: str = Field(min_length=1)
    """What is wanted, in a person's words, with the concrete values."""
    servers: tuple[str, ...] = Field(min_length=1)
    """Names of the configured tool servers that take part."""
    inputs: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    workflow: dict[str, JsonValue] | None = None
    """The reference workflow, to be damaged. Not needed where `broken` is given."""
    broken: dict[str, JsonValue] | None = None
    """A workflow to be repaired as it is."""
    kinds: tuple[str, ...] = ()
    """What is wrong with `broken`, for the table; empty when unknown."""
    assertions: Assertions
    """jmespath over `output`, `inputs` and `nodes`; all must hold."""
    held_out: tuple[HeldOut, ...] = ()

    @model_validator(mode="after")
    def _has_a_workflow(self) -> BenchTask:
        if self.workflow is None and self.broken is None:
            raise ValueError("a task needs 'workflow' (to be damaged) or 'broken' (to be repaired)")
        if self.workflow is not None:
            _check_reference(self.workflow)
        for expression in (*self.assertions, *(a for held in self.held_out for a in held.assertions)):
            if problem := assertion_problem(expression):
                raise ValueError(f"assertion {expression!r}: {problem}")
        return self

    @property
    def reference(self) -> Workflow:
        """The reference workflow.

        Raises:
            ValueError: the task has none.
        """
        if self.workflow is None:
            raise ValueError(f"task {self.id!r} has no reference workflow")
        return parse_workflow(self.workflow)


def _check_reference(document: dict[str, JsonValue]) -> None:
    try:
        parse_workflow(document)
    except MalformedWorkflow as error:
        raise ValueError(f"workflow: {error}") from error


_TASKS: TypeAdapter[list[BenchTask]] = TypeAdapter(list[BenchTask])


def parse_tasks(text: str | bytes, *, source: str = "tasks") -> list[BenchTask]:
    """Return the tasks of a JSON document.

    Raises:
        TasksRejected: naming the source, the task and the field.
    """
    try:
        document: object = json.loads(text)
    except ValueError as error:
        raise TasksRejected(f"{source}: not JSON: {error}") from error
    try:
        tasks = _TASKS.validate_python(document)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        place = "/".join(str(part) for part in problem["loc"])
        raise TasksRejected(f"{source}: at /{place}: {problem['msg']}") from error
    if twice := _repeated(task.id for task in tasks):
        raise TasksRejected(f"{source}: task ids are not unique: {', '.join(twice)}")
    return tasks


def load_tasks(path: Path) -> list[BenchTask]:
    """Return the tasks of a file.

    Raises:
        TasksRejected: it cannot be read, or names the task and field that is wrong.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise TasksRejected(f"{path}: {error.strerror}") from error
    return parse_tasks(text, source=str(path))


def reference_tasks() -> list[BenchTask]:
    """Return our own tasks, over the servers of `server.bench.servers`."""
    data = resources.files("server.bench").joinpath("data", "tasks.json")
    return parse_tasks(data.read_bytes(), source="reference tasks")


def planning_tasks() -> list[BenchTask]:
    """Return the tasks that plans are made for: the reference tasks, and short ones besides."""
    data = resources.files("server.bench").joinpath("data", "planning_tasks.json")
    return [*parse_tasks(data.read_bytes(), source="planning tasks"), *reference_tasks()]


def evolution_tasks() -> list[BenchTask]:
    """Return the tasks of two to eight steps: of the planning benchmark, and others made of families."""
    data = resources.files("server.bench").joinpath("data", "evolution_tasks.json")
    more = parse_tasks(data.read_bytes(), source="evolution tasks")
    return [*(task for task in planning_tasks() if len(task.reference.nodes) > 1), *more]


def place_fixtures(task: BenchTask, folder: Path) -> BenchTask:
    """Return the task with `${FIXTURES}` replaced by the folder that holds the files."""
    placed = _replaced(cast("JsonValue", task.model_dump(mode="json")), str(folder))
    return BenchTask.model_validate(placed)


def tasks_schema() -> dict[str, JsonValue]:
    """Return the JSON Schema of a file of tasks."""
    return _TASKS.json_schema()


def _replaced(value: JsonValue, folder: str) -> JsonValue:
    match value:
        case str():
            return value.replace(FIXTURES, folder)
        case dict():
            return {key: _replaced(item, folder) for key, item in value.items()}
        case list():
            return [_replaced(item, folder) for item in value]
        case _:
            return value


def _repeated(ids: Iterable[str]) -> list[str]:
    listed = list(ids)
    return sorted({i for i in listed if listed.count(i) > 1})
