"""Tasks that an exploration came up with, and their file: JSON lines, one task each."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from server.exploration.errors import TaskFileRejected
from server.exploration.options import Difficulty
from skills_store.workflow.model import Workflow, parse_workflow

__all__ = ["ExploredTask", "HeldOutInstance", "read_tasks", "render_tasks"]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class HeldOutInstance(_Record):
    """The task with other values: in words, as inputs, and how its answer is checked."""

    task: str
    inputs: dict[str, JsonValue]
    assertions: tuple[str, ...] = Field(min_length=1)


class ExploredTask(_Record):
    """One task with a solution that was run and a check that was derived from its runs.

    `workflow` solves it: run twice in fresh processes it gave the same answers. The fields that a
    benchmark task has mean the same there (`docs/schemas/bench_tasks.json`).
    """

    id: str
    task: str
    """In a person's words, with the concrete values."""
    servers: tuple[str, ...]
    inputs: dict[str, JsonValue]
    workflow: dict[str, JsonValue]
    check: Literal["assertions", "judge"] = "assertions"
    """`judge`: its answers are volatile, so that only a model with the reference answer can tell."""
    assertions: tuple[str, ...] = ()
    """jmespath over `output`; all must hold. Empty for a task that needs a judge."""
    answer: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    """The declared outputs of the reference run."""
    volatile: tuple[str, ...] = ()
    """Pointers into a node's answers that differed between equal runs, left out of the check."""
    held_out: tuple[HeldOutInstance, ...] = ()
    difficulty: Difficulty = 1
    worded_by: Literal["template", "model"] = "template"
    solvers: tuple[str, ...] = ()
    """Tools of the reference, in order."""

    @property
    def reference(self) -> Workflow:
        """The workflow that solves it."""
        return parse_workflow(self.workflow)

    @property
    def instances(self) -> tuple[HeldOutInstance, ...]:
        """The task with its own values, then with each held-out set; none where only a judge can tell."""
        if not self.assertions:
            return ()
        own = HeldOutInstance(task=self.task, inputs=self.inputs, assertions=self.assertions)
        return (own, *self.held_out)


def render_tasks(tasks: Iterable[ExploredTask]) -> str:
    """Return the text of a task file."""
    lines = (json.dumps(task.model_dump(mode="json"), ensure_ascii=False) for task in tasks)
    return "".join(f"{line}\n" for line in lines)


def read_tasks(path: Path) -> list[ExploredTask]:
    """Return the tasks of a file.

    Raises:
        TaskFileRejected: it cannot be read, or a line is no task; names the line.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise TaskFileRejected(f"{path}: {error}") from error
    return [_task(line, path, number) for number, line in enumerate(lines, 1) if line.strip()]


def _task(line: str, path: Path, number: int) -> ExploredTask:
    try:
        return ExploredTask.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = "/".join(str(part) for part in first["loc"])
        raise TaskFileRejected(f"{path}:{number}: {place or 'the line'}: {first['msg']}") from error
