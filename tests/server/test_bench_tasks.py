"""Benchmark tasks: the format others bring cases in, and our own reference tasks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from server.bench.tasks import reference_tasks
from server.provisioning.demo_files import FIXTURES
from server.provisioning.demo_servers import DEMO_SERVERS
from server.provisioning.errors import TasksRejected
from server.provisioning.task_file import load_tasks, parse_tasks, place_fixtures, tasks_schema
from skills_store.workflow.graph import waves

_TASKS = reference_tasks()
_SCHEMA = Path(__file__).parents[2] / "docs" / "schemas" / "bench_tasks.json"

_TASK = {
    "id": "double",
    "task": "Double 4.",
    "servers": ["calculator"],
    "inputs": {"n": 4},
    "workflow": {
        "name": "double",
        "inputs": {"type": "object", "properties": {"n": {"type": "number"}}},
        "nodes": [
            {
                "id": "twice",
                "tool": {"server": "calculator", "tool": "multiply"},
                "arguments": {"a": "$inputs.n", "b": 2},
            }
        ],
        "outputs": {"n": "$nodes.twice.output#/result"},
    },
    "assertions": ["output.n == `8`"],
}


def test_there_are_at_least_thirty_tasks_over_at_least_five_servers():
    assert len(_TASKS) >= 30
    assert len({server for task in _TASKS for server in task.servers}) >= 5


@pytest.mark.parametrize("task", _TASKS, ids=lambda task: task.id)
def test_a_reference_task_is_whole(task):
    called = {node.tool.server for node in task.reference.nodes if node.tool}

    assert called == set(task.servers) <= {server.name for server in DEMO_SERVERS}
    assert 2 <= len(task.reference.nodes) <= 8
    assert waves(task.reference)
    assert task.held_out
    assert all(set(held.inputs) == set(task.inputs) != {} for held in task.held_out)
    assert all(held.inputs != task.inputs for held in task.held_out)


@pytest.mark.parametrize("task", _TASKS, ids=lambda task: task.id)
def test_the_words_of_a_reference_task_say_its_scalar_inputs(task):
    words = task.task.casefold()
    said = [v for v in task.inputs.values() if isinstance(v, str) and FIXTURES not in v and ":" not in v]

    assert [value for value in said if value.casefold() not in words] == []


def test_the_reference_tasks_map_join_and_fan_out():
    nodes = [node for task in _TASKS for node in task.reference.nodes]

    assert sum(node.for_each is not None for node in nodes) >= 3
    assert sum(bool(node.after) for node in nodes) >= 10
    assert "regex_capture" in json.dumps([task.workflow for task in _TASKS])


def test_fixtures_are_placed_in_words_inputs_and_held_out_inputs():
    task = next(task for task in _TASKS if FIXTURES in task.task)

    placed = place_fixtures(task, Path("/somewhere")).model_dump_json()

    assert FIXTURES not in placed
    assert "/somewhere/" in placed


def test_one_assertion_may_be_given_as_text():
    [task] = parse_tasks(json.dumps([{**_TASK, "assertions": "output.n == `8`"}]))

    assert task.assertions == ("output.n == `8`",)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"workflow": None}, "needs 'workflow'"),
        ({"workflow": {"name": "x"}}, "workflow: /inputs: field 'inputs' is required"),
        ({"assertions": ["output.n =="]}, "assertion 'output.n =='"),
        ({"assertions": []}, "/0/assertions"),
        ({"assertion": "output.n == `8`"}, "/0/assertion: Extra inputs"),
        ({"servers": []}, "/0/servers"),
        ({"id": "a b"}, "/0/id"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else "",
)
def test_a_task_that_says_something_impossible_is_rejected_with_its_place(change, complaint):
    with pytest.raises(TasksRejected) as raised:
        parse_tasks(json.dumps([{**_TASK, **change}]), source="mine.json")

    assert "mine.json" in str(raised.value)
    assert complaint in str(raised.value)


def test_two_tasks_of_one_id_are_rejected():
    with pytest.raises(TasksRejected, match="not unique: double"):
        parse_tasks(json.dumps([_TASK, _TASK]))


def test_a_file_that_is_not_there_or_no_json_is_rejected_by_name(tmp_path):
    (tmp_path / "bad.json").write_text("[", encoding="utf-8")

    with pytest.raises(TasksRejected, match=r"none\.json: No such file"):
        load_tasks(tmp_path / "none.json")
    with pytest.raises(TasksRejected, match=r"bad\.json: not JSON"):
        load_tasks(tmp_path / "bad.json")


def test_the_published_schema_is_that_of_the_model():
    assert json.loads(_SCHEMA.read_text(encoding="utf-8")) == tasks_schema()


def test_the_documented_example_is_a_file_of_tasks():
    page = (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    example = page.partition("```json\n")[2].partition("```")[0]

    [task] = parse_tasks(example)

    assert task.broken is not None
    assert task.held_out
