"""Who waits for whom."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from skills_store.workflow.graph import (
    CycleFound,
    ancestors,
    cycles,
    dependencies,
    descendants,
    needed,
    reaching_inputs,
    unused,
    waves,
)
from skills_store.workflow.model import Workflow, parse_workflow
from tests.strategies import workflows


def chain(*nodes: tuple[str, dict[str, Any]], outputs: dict[str, Any], **more: Any) -> Workflow:
    tool = {"server": "s", "tool": "t"}
    planned = [{"id": node_id, "tool": tool, "arguments": {}, **fields} for node_id, fields in nodes]
    return parse_workflow({"name": "w", "inputs": {}, "nodes": planned, "outputs": outputs, **more})


def reads(*names: str) -> dict[str, Any]:
    return {"arguments": {name: f"$nodes.{name}.output" for name in names}}


DIAMOND = chain(
    ("end", reads("left", "right")),
    ("left", reads("start")),
    ("right", {"arguments": {"text": "about {$nodes.start.output#/x}"}}),
    ("start", {}),
    ("aside", {"after": ["end"]}),
    outputs={"o": "$nodes.end.output"},
)


def test_edges_are_references_and_after_in_document_order() -> None:
    assert dependencies(DIAMOND) == {
        "end": {"left", "right"},
        "left": {"start"},
        "right": {"start"},
        "start": set(),
        "aside": {"end"},
    }


def test_waves_keep_the_order_of_the_document() -> None:
    assert waves(DIAMOND) == [["start"], ["left", "right"], ["end"], ["aside"]]


def test_closures_do_not_hold_the_node_itself() -> None:
    assert ancestors(DIAMOND, "end") == {"left", "right", "start"}
    assert descendants(DIAMOND, "start") == {"left", "right", "end", "aside"}


def test_unknown_ids_and_unreadable_references_are_no_edges() -> None:
    workflow = chain(
        ("a", {"after": ["gone"], "arguments": {"x": "$nodes.gone.output", "y": "$bad"}}), outputs={}
    )
    assert dependencies(workflow) == {"a": set()}


@pytest.mark.parametrize(
    ("nodes", "more", "expected"),
    [
        pytest.param([("a", {}), ("b", {})], {}, {"a"}, id="read by an output"),
        pytest.param([("a", reads("b")), ("b", {})], {}, {"a", "b"}, id="data"),
        pytest.param([("a", {"after": ["b"]}), ("b", {})], {}, {"a", "b"}, id="order"),
        pytest.param([("a", {}), ("b", {"after": ["a"]})], {}, {"a"}, id="a follower is not needed"),
        pytest.param([("a", {"for_each": "$nodes.b.output"}), ("b", {})], {}, {"a", "b"}, id="for_each"),
        pytest.param([("a", {"when": "$nodes.b.output"}), ("b", {})], {}, {"a", "b"}, id="when"),
        pytest.param(
            [("a", {}), ("b", {})], {"expect": "nodes.b.output.x == `1`"}, {"a", "b"}, id="named by a check"
        ),
    ],
)
def test_needed_is_what_the_outputs_stand_on(
    nodes: list[tuple[str, dict[str, Any]]], more: dict[str, Any], expected: set[str]
) -> None:
    workflow = chain(*nodes, outputs={"o": "$nodes.a.output"}, **more)
    assert needed(workflow) == expected
    assert unused(workflow) == {"a", "b"} - expected


def test_a_cycle_names_its_nodes() -> None:
    workflow = chain(("a", reads("c")), ("b", reads("a")), ("c", reads("b")), ("d", {}), outputs={})
    with pytest.raises(CycleFound) as caught:
        waves(workflow)
    assert sorted(caught.value.nodes) == ["a", "b", "c"]
    assert cycles(workflow) == [("a", "b", "c")]


def test_every_cycle_is_found() -> None:
    workflow = chain(
        ("a", reads("b")),
        ("b", reads("a")),
        ("c", {"after": ["c"]}),
        ("d", reads("d")),
        ("e", reads("a")),
        outputs={},
    )
    assert cycles(workflow) == [("a", "b"), ("c",)]


@given(workflows())
def test_every_node_runs_after_all_it_waits_for(workflow: Workflow) -> None:
    wave_of = {node_id: index for index, wave in enumerate(waves(workflow)) for node_id in wave}
    assert set(wave_of) == {node.id for node in workflow.nodes}
    for node_id, before in dependencies(workflow).items():
        assert all(wave_of[other] < wave_of[node_id] for other in before)
        assert ancestors(workflow, node_id) == {
            other for other in wave_of if node_id in descendants(workflow, other)
        }


def test_inputs_reach_outputs_only_through_what_the_outputs_stand_on():
    planned = parse_workflow(
        {
            "name": "w",
            "inputs": {"type": "object", "properties": {name: {} for name in "abcd"}},
            "nodes": [
                {"id": "one", "tool": {"server": "s", "tool": "t"}, "arguments": {"x": "$inputs.a"}},
                {"id": "two", "tool": {"server": "s", "tool": "t"}, "arguments": {"x": "$nodes.one.output"}},
                {"id": "idle", "tool": {"server": "s", "tool": "t"}, "arguments": {"x": "$inputs.b"}},
            ],
            "outputs": {"o": "$nodes.two.output", "said": "{$inputs.c} of {$nodes.two.output}"},
        }
    )
    assert reaching_inputs(planned) == {"a", "c"}
