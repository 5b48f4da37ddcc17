"""The tasks of our own that benchmarks run: reference tasks, short ones to plan, longer ones to evolve."""

from __future__ import annotations

from importlib import resources

from server.provisioning.task_file import BenchTask, parse_tasks

__all__ = ["evolution_tasks", "planning_tasks", "reference_tasks"]


def reference_tasks() -> list[BenchTask]:
    """Return our own tasks, over the servers of `server.provisioning.demo_servers`."""
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
