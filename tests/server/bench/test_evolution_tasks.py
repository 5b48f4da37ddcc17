"""Tasks of the evolution benchmark: enough of them, of every shape, each among ten other servers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from catalog.tools import ToolId
from server.bench.evolution_families import (
    AnsweredFamily,
    family_task,
    family_workflow,
    parse_task_families,
    task_families,
)
from server.bench.evolution_world import DISTRACTORS, WORLD_SERVERS, distractors, part_of
from server.bench.tasks import evolution_tasks
from server.provisioning.errors import TasksRejected
from skills_store.workflow.model import parse_workflow
from skills_store.workflow.references import Scope, resolve

TASKS = evolution_tasks()
FAMILY: dict[str, Any] = {
    "family": {
        "id": "doubled_trips",
        "task": "Double each of {legs} and name the {label} of item {wanted}.",
        "steps": [
            {"tool": "sums/double", "arguments": {"n": {"item": True}}, "each": {"given": "legs"}},
            {"tool": "sums/mean", "arguments": {"data": {"all": 1, "read": "value"}}},
            {
                "tool": "texts/say",
                "arguments": {"text": {"join": [{"given": "label"}, "=", {"from": 2, "read": "value"}]}},
            },
        ],
        "instances": [
            {"legs": [1, 2], "label": "mean", "wanted": "b"},
            {"legs": [4, 6, 8], "label": "middle", "wanted": "a"},
            {"legs": [10], "label": "only", "wanted": "b"},
        ],
    },
    "answer": {
        "mean": {"from": 2, "read": "value"},
        "said": {"from": 3, "read": "text"},
        "number": {"from": 3, "read": "text", "match": "=([0-9.]+)", "number": True},
        "found": {"from": 3, "read": "items[?name=='{wanted}'].size | [0]"},
        "each": {"all": 1, "read": "value"},
    },
}


async def answering(tool: ToolId, arguments: dict[str, Any]) -> Any:
    match tool.tool:
        case "double":
            return {"value": 2 * arguments["n"]}
        case "mean":
            return {"value": sum(arguments["data"]) / len(arguments["data"])}
        case _:
            sizes = [{"name": "a", "size": 3}, {"name": "b", "size": 5}]
            return {"text": arguments["text"], "items": sizes}


def test_there_are_at_least_120_tasks_of_two_to_eight_steps_with_checks_and_held_out_inputs():
    assert len(TASKS) >= 120
    assert len({task.id for task in TASKS}) == len(TASKS)
    assert {len(task.reference.nodes) for task in TASKS} == {2, 3, 4, 5, 6, 7, 8}
    assert all(task.assertions for task in TASKS)
    assert sum(bool(task.held_out) for task in TASKS) == len(TASKS)


def test_they_have_every_shape():
    nodes = [task.reference.nodes for task in TASKS]
    assert sum(any(node.for_each is not None for node in of_one) for of_one in nodes) >= 15
    stateful = [task for task in TASKS if "sqlite" in task.servers]
    assert len(stateful) >= 8
    assert len({server for task in TASKS for server in task.servers}) >= 15


def test_both_parts_are_there_and_near_the_papers_shares():
    search = sum(part_of(task.id) == "search" for task in TASKS)
    assert 0.5 < search / len(TASKS) < 0.68
    assert part_of("double_digest") == part_of("double_digest")


def test_each_stands_among_ten_other_servers():
    for task in TASKS:
        others = distractors(task)
        assert len(set(others)) == DISTRACTORS, task.id
        assert set(others) <= set(WORLD_SERVERS) - set(task.servers), task.id


def test_tasks_differ_in_their_distraction_servers():
    assert len({distractors(task) for task in TASKS}) > len(TASKS) / 2


def test_a_family_becomes_a_workflow_in_references_selectors_and_templates():
    workflow = family_workflow(AnsweredFamily.model_validate(FAMILY))
    assert parse_workflow(workflow).to_json()["nodes"] == workflow["nodes"]
    nodes: Any = workflow["nodes"]
    assert nodes[0]["for_each"] == "$inputs.legs"
    assert nodes[0]["arguments"] == {"n": "$item"}
    assert nodes[1]["arguments"]["data"]["selector"] == "[*].value"
    assert nodes[2]["arguments"] == {"text": "{$inputs.label}={$nodes.s2.output#/value}"}


@pytest.mark.anyio
async def test_what_a_family_expects_is_what_its_workflow_reads():
    answered = AnsweredFamily.model_validate(FAMILY)
    task = await family_task(answered, answering)
    text: dict[str, Any] = {
        "text": "middle=12.0",
        "items": [{"name": "a", "size": 3}, {"name": "b", "size": 5}],
    }
    scope = Scope(
        inputs={"legs": [4, 6, 8], "label": "middle", "wanted": "a"},
        outputs={"s1": [{"value": 8}, {"value": 12}, {"value": 16}], "s2": {"value": 12.0}, "s3": text},
    )
    read = {name: resolve(value, scope) for name, value in task.reference.outputs.items()}
    assert read == {"mean": 12.0, "said": "middle=12.0", "number": 12.0, "found": 3, "each": [8, 12, 16]}
    held = task.held_out[0]
    assert held.inputs["label"] == "middle"
    assert 'output.said == `"middle=12.0"`' in held.assertions
    assert "output.found" in " ".join(held.assertions)


def test_every_family_names_existing_forms():
    families = task_families("/fixtures")
    assert len(families) >= 80
    assert all(parse_workflow(family_workflow(one)) for one in families)


def test_an_answer_for_no_family_is_refused():
    text = json.dumps({"answers": {"nobody": {"a": {"from": 1, "read": "b"}}}, "families": []})
    with pytest.raises(TasksRejected, match="no compile family nobody"):
        parse_task_families(text, [])
    with pytest.raises(TasksRejected, match="families"):
        parse_task_families("[]", [])
