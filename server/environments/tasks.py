"""Tasks of environments over tool servers, read from files of explored or of benchmark tasks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from server.environments.task import EnvironmentTask
from server.exploration.tasks import read_tasks
from server.provisioning.errors import ProvisioningError, TasksRejected
from server.provisioning.fetched import cache_folder
from server.provisioning.task_file import load_tasks
from server.provisioning.tau_tasks import reference_runs

__all__ = ["read_task_file", "tau_tasks"]


def read_task_file(path: Path) -> list[EnvironmentTask]:
    """Return the tasks of a file: JSON lines of explored tasks, or a JSON list of benchmark tasks.

    Raises:
        TasksRejected: it is neither; names the task and field that is wrong.
        TaskFileRejected: a line is no explored task; names the line.
    """
    try:
        is_list = path.read_text(encoding="utf-8").lstrip().startswith("[")
    except (OSError, UnicodeDecodeError) as error:
        raise TasksRejected(f"{path}: {error}") from error
    tasks = _of_bench(path) if is_list else _of_exploration(path)
    ids = [task.id for task in tasks]
    if twice := sorted({i for i in ids if ids.count(i) > 1}):
        raise TasksRejected(f"{path}: task ids are not unique: {', '.join(twice)}")
    if not tasks:
        raise TasksRejected(f"{path}: it has no task")
    return tasks


def _of_exploration(path: Path) -> list[EnvironmentTask]:
    return [
        EnvironmentTask(
            id=one.id,
            task=one.task,
            servers=one.servers,
            inputs=one.inputs,
            check=one.check,
            assertions=one.assertions,
            answer=one.answer,
            workflow=one.workflow,
        )
        for one in read_tasks(path)
    ]


def _of_bench(path: Path) -> list[EnvironmentTask]:
    return [
        EnvironmentTask(
            id=one.id,
            task=one.task,
            servers=one.servers,
            inputs=one.inputs,
            assertions=one.assertions,
            workflow=one.workflow or {},
        )
        for one in load_tasks(path)
    ]


def tau_tasks(domain: str) -> list[EnvironmentTask]:
    """Return the tasks of a τ²-bench domain that a fetched server brings along.

    Raises:
        ProvisioningError: the server is not there.
    """
    said = _communicated(domain)
    return [
        EnvironmentTask(
            id=run.id,
            task=run.task,
            servers=(domain,),
            check="state",
            reference_calls=run.calls,
            communicate=tuple(said.get(run.id, ())),
        )
        for run in reference_runs(domain)
    ]


def _communicated(domain: str) -> dict[str, Sequence[str]]:
    pattern = f"older/lib/python3*/site-packages/tau2_{domain}_mcp/data/tau2/domains/{domain}/tasks.json"
    files = sorted(cache_folder().glob(pattern))
    if not files:
        raise ProvisioningError(f"no tasks of τ²-bench {domain}: its server is not fetched")
    tasks = cast("list[dict[str, Any]]", json.loads(files[0].read_text(encoding="utf-8")))
    return {str(task["id"]): task["evaluation_criteria"].get("communicate_info") or () for task in tasks}
