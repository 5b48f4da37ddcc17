"""Identity and family of workflows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.canonical import canonical_json
from skills_store.workflow.bounds import json_type
from skills_store.workflow.hashing import content_hash, shape_hash
from skills_store.workflow.model import Workflow, parse_workflow
from tests.strategies import INPUTS, NAMES, json_values, renamed, workflows

GOLDEN = Path(__file__).parents[1] / "golden"
HASHES: dict[str, Any] = json.loads((GOLDEN / "hashes.json").read_text(encoding="utf-8"))
CANONICAL: list[Any] = json.loads((GOLDEN / "canonical.json").read_text(encoding="utf-8"))


def document(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "name": "fuel",
        "inputs": {"type": "object", "properties": {"km": {"type": "number"}}},
        "nodes": [
            {
                "id": "convert",
                "tool": {"server": "units", "tool": "convert"},
                "arguments": {"value": "$inputs.km", "to_unit": "mi"},
            }
        ],
        "outputs": {"miles": "$nodes.convert.output#/value"},
    }
    return {**base, **changes}


@pytest.mark.parametrize("name", sorted(HASHES))
def test_hashes_of_fixed_documents_never_change(name: str) -> None:
    workflow = parse_workflow((GOLDEN / "workflows" / f"{name}.json").read_text(encoding="utf-8"))
    assert {"content_hash": content_hash(workflow), "shape_hash": shape_hash(workflow)} == HASHES[name]


@pytest.mark.parametrize("case", CANONICAL, ids=lambda case: case["canonical"][:40])
def test_canonical_bytes_never_change(case: dict[str, Any]) -> None:
    assert canonical_json(case["value"]) == case["canonical"].encode()


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"name": "other"}, id="name"),
        pytest.param({"description": "words"}, id="description"),
        pytest.param(
            {
                "inputs": {
                    "title": "t",
                    "type": "object",
                    "properties": {"km": {"type": "number", "description": "d", "examples": [1]}},
                }
            },
            id="prose in the inputs' schema",
        ),
    ],
)
def test_content_hash_ignores_names_and_prose(changes: dict[str, Any]) -> None:
    assert content_hash(parse_workflow(document(**changes))) == content_hash(parse_workflow(document()))


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"outputs": {"miles": "$nodes.convert.output"}}, id="output source"),
        pytest.param({"expect": "output.miles > `0`"}, id="check"),
        pytest.param(
            {"inputs": {"type": "object", "properties": {"km": {"type": "integer"}}}}, id="input type"
        ),
        pytest.param(
            {"inputs": {"type": "object", "properties": {"km": {"type": "number"}, "title": {}}}},
            id="an input that is called title",
        ),
    ],
)
def test_content_hash_sees_what_the_workflow_does(changes: dict[str, Any]) -> None:
    assert content_hash(parse_workflow(document(**changes))) != content_hash(parse_workflow(document()))


@given(workflows(), st.permutations(NAMES), st.permutations(INPUTS))
def test_shape_hash_does_not_see_names_of_nodes_and_inputs(
    workflow: Workflow, names: list[str], inputs: list[str]
) -> None:
    other = renamed(workflow, dict(zip(NAMES, names, strict=True)), dict(zip(INPUTS, inputs, strict=True)))
    assert shape_hash(other) == shape_hash(workflow)


@given(st.data())
def test_shape_hash_does_not_see_the_order_of_the_document(data: st.DataObject) -> None:
    workflow = data.draw(workflows())
    shuffled = workflow.model_copy(update={"nodes": tuple(data.draw(st.permutations(workflow.nodes)))})
    assert shape_hash(shuffled) == shape_hash(workflow)


@given(workflows(), json_values, json_values)
def test_a_changed_literal_keeps_the_shape_and_changes_the_content(
    workflow: Workflow, one: Any, other: Any
) -> None:
    def with_literal(value: Any) -> Workflow:
        node = workflow.nodes[0]
        arguments = {**node.arguments, "literal": {"$literal": value}}
        return workflow.replacing(node.model_copy(update={"arguments": arguments}))

    before, after = with_literal(one), with_literal(other)
    same_value = content_hash(before) == content_hash(after)
    assert (shape_hash(before) == shape_hash(after)) is (json_type(one) == json_type(other))
    assert same_value is (canonical_json(one) == canonical_json(other))


def test_shape_tells_twins_apart_by_who_reads_them() -> None:
    def twins(left: str, right: str) -> Workflow:
        tool = {"server": "s", "tool": "t"}
        leaves = [{"id": name, "tool": tool, "arguments": {"x": 1}} for name in ("a", "b")]
        middle = [
            {"id": f"m{name}", "tool": tool, "arguments": {"y": f"$nodes.{name}.output"}}
            for name in ("a", "b")
        ]
        end = {
            "id": "end",
            "tool": tool,
            "arguments": {"l": f"$nodes.{left}.output", "r": f"$nodes.{right}.output"},
        }
        return parse_workflow(
            {
                "name": "w",
                "inputs": {},
                "nodes": [*leaves, *middle, end],
                "outputs": {"o": "$nodes.end.output"},
            }
        )

    assert shape_hash(twins("a", "ma")) == shape_hash(twins("b", "mb"))
    assert shape_hash(twins("a", "ma")) != shape_hash(twins("a", "mb"))


def test_a_cyclic_workflow_has_a_shape() -> None:
    tool = {"server": "s", "tool": "t"}
    nodes = [
        {"id": "a", "tool": tool, "arguments": {"x": "$nodes.b.output"}},
        {"id": "b", "tool": tool, "arguments": {"x": "$nodes.a.output"}},
    ]
    workflow = parse_workflow(
        {"name": "w", "inputs": {}, "nodes": nodes, "outputs": {"o": "$nodes.a.output"}}
    )
    assert shape_hash(workflow) == shape_hash(renamed(workflow, {"a": "b", "b": "a"}, {}))
