"""All 190 recorded plans of compact models through parser, checks, pruning and deterministic repair."""

from __future__ import annotations

from collections import Counter

from inline_snapshot import snapshot as expected

from catalog.tools import Snapshot
from server.evolution.propose import propose
from server.planning.needless import without_needless
from server.planning.view import View
from skills_store.workflow.check import check_workflow
from skills_store.workflow.edits import EditRefused, apply_edit
from skills_store.workflow.graph import data_dependencies
from skills_store.workflow.model import Workflow
from tests.server.compact_plans import Recorded, read, recorded, snapshot, world

ARGUMENT_FAULTS = {"missing_argument", "unexpected_argument", "invalid_argument"}


def family(plan: Recorded) -> str:
    model = {
        "q15": "Qwen 1.5B",
        "q05": "Qwen 0.5B",
        "smol135": "SmolLM2 135M",
        "gemma270base": "Gemma 270M base",
    }
    return model[plan.run.split("_")[0]] + (" free" if "free" in plan.run else " constrained")


def calls_and_edges_are_right(workflow: Workflow, plan: Recorded) -> bool:
    """Whether the very tools of the task are called and read one another; values are not looked at."""
    called = {node.id: node.tool.tool for node in workflow.nodes if node.tool}
    edges = {(called[a], called[b]) for b, before in data_dependencies(workflow).items() for a in before}
    return sorted(called.values()) == sorted(plan.task["tools"]) and all(
        tuple(edge) in edges for edge in plan.task["edges"]
    )


def repaired(workflow: Workflow, task: str, tools: Snapshot) -> Workflow:
    """Return the workflow after the cheapest edits that lead to fewer static faults, without a run."""
    for _ in range(6):
        faults = check_workflow(workflow, tools)
        if not faults:
            break
        for proposal in propose(View(world(task), workflow, faults=tuple(faults)))[:40]:
            better = workflow
            try:
                for edit in proposal.edits:
                    better = apply_edit(better, edit)
            except EditRefused:
                continue
            if len(check_workflow(better, tools)) < len(faults):
                workflow = better
                break
        else:
            break
    return workflow


def test_what_becomes_of_every_recorded_plan():
    tallies: dict[str, Counter[str]] = {}
    for plan in recorded():
        tally = tallies.setdefault(family(plan), Counter())
        tally["plans"] += 1
        tally["right in full, as judged then"] += plan.right
        reading = read(plan)
        if reading.workflow is None:
            tally["not readable"] += 1
            assert all(fault.message for fault in reading.faults)
            continue
        faults = {fault.kind for fault in check_workflow(reading.workflow, snapshot())}
        tally["existing tools"] += "unknown_tool" not in faults
        tally["valid arguments"] += not faults & (ARGUMENT_FAULTS | {"unknown_tool"})
        tally["sound"] += not faults
        tally["right calls and edges"] += calls_and_edges_are_right(reading.workflow, plan)
        pruned = without_needless(reading.workflow, world(plan.task["task"]))
        tally["right calls and edges, pruned"] += calls_and_edges_are_right(pruned, plan)
        mended = repaired(pruned, plan.task["task"], snapshot())
        tally["sound, pruned and repaired"] += not check_workflow(mended, snapshot())
    assert {name: dict(tally) for name, tally in tallies.items()} == expected(
        {
            "Gemma 270M base free": {
                "plans": 10,
                "right in full, as judged then": 0,
                "not readable": 5,
                "existing tools": 5,
                "valid arguments": 5,
                "sound": 0,
                "right calls and edges": 0,
                "right calls and edges, pruned": 0,
                "sound, pruned and repaired": 5,
            },
            "Gemma 270M base constrained": {
                "plans": 10,
                "right in full, as judged then": 0,
                "existing tools": 10,
                "valid arguments": 10,
                "sound": 1,
                "right calls and edges": 0,
                "right calls and edges, pruned": 0,
                "sound, pruned and repaired": 10,
            },
            "Qwen 0.5B free": {
                "plans": 10,
                "right in full, as judged then": 4,
                "existing tools": 10,
                "valid arguments": 8,
                "sound": 8,
                "right calls and edges": 6,
                "right calls and edges, pruned": 7,
                "sound, pruned and repaired": 10,
            },
            "Qwen 0.5B constrained": {
                "plans": 10,
                "right in full, as judged then": 4,
                "existing tools": 10,
                "valid arguments": 10,
                "sound": 10,
                "right calls and edges": 5,
                "right calls and edges, pruned": 6,
                "sound, pruned and repaired": 10,
            },
            "Qwen 1.5B free": {
                "plans": 40,
                "right in full, as judged then": 16,
                "existing tools": 39,
                "valid arguments": 39,
                "sound": 39,
                "right calls and edges": 21,
                "right calls and edges, pruned": 27,
                "sound, pruned and repaired": 39,
                "not readable": 1,
            },
            "Qwen 1.5B constrained": {
                "plans": 90,
                "right in full, as judged then": 35,
                "existing tools": 90,
                "valid arguments": 79,
                "sound": 79,
                "right calls and edges": 52,
                "right calls and edges, pruned": 67,
                "sound, pruned and repaired": 90,
            },
            "SmolLM2 135M free": {
                "plans": 10,
                "right in full, as judged then": 0,
                "existing tools": 1,
                "valid arguments": 1,
                "sound": 0,
                "right calls and edges": 0,
                "right calls and edges, pruned": 0,
                "sound, pruned and repaired": 3,
                "not readable": 7,
            },
            "SmolLM2 135M constrained": {
                "plans": 10,
                "right in full, as judged then": 0,
                "existing tools": 9,
                "valid arguments": 9,
                "sound": 3,
                "right calls and edges": 0,
                "right calls and edges, pruned": 0,
                "sound, pruned and repaired": 9,
                "not readable": 1,
            },
        }
    )


def test_pruning_never_takes_what_a_right_plan_needs():
    for plan in recorded():
        reading = read(plan)
        if plan.right and reading.workflow is not None:
            pruned = without_needless(reading.workflow, world(plan.task["task"]))
            assert [n.id for n in pruned.nodes] == [n.id for n in reading.workflow.nodes], plan.text
