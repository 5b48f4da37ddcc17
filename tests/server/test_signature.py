"""Signatures: constraints of every slot an input feeds, outputs by declaration, else as seen."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.schema import lint_schema
from catalog.tools import Snapshot, Tool, ToolId
from server.compilation.signature import compile_signature
from skills_store.workflow.model import parse_workflow


def tool(name: str, output: Any = None, **properties: Any) -> Tool:
    return Tool(ToolId("s", name), {"type": "object", "properties": properties}, output)


def node(node_id: str, name: str, arguments: Any, **more: Any) -> dict[str, Any]:
    return {"id": node_id, "tool": {"server": "s", "tool": name}, "arguments": arguments, **more}


def compiled(snapshot, nodes, outputs=None, inputs=None, seen=None):
    workflow = parse_workflow(
        {
            "name": "w",
            "inputs": {"type": "object", "properties": inputs or {"x": {}}, "required": ["x"]},
            "nodes": nodes,
            "outputs": outputs or {"out": f"$nodes.{nodes[-1]['id']}.output"},
        }
    )
    return compile_signature(workflow, seen or {}, snapshot)


def input_of(signature, name="x"):
    return signature.input_schema["properties"][name]


def output_of(signature, name="out"):
    return signature.output_schema["properties"][name]


@pytest.mark.parametrize(
    ("first", "second", "narrowed"),
    [
        pytest.param({"enum": ["m", "km", "mi"]}, {"enum": ["mi", "m"]}, {"enum": ["m", "mi"]}, id="enum"),
        pytest.param({"minimum": 0}, {"minimum": 5, "maximum": 9}, {"minimum": 5, "maximum": 9}, id="bounds"),
        pytest.param({"maxLength": 9}, {"maxLength": 4}, {"maxLength": 4}, id="length"),
        pytest.param({"format": "date"}, {"format": "date"}, {"format": "date"}, id="same-format"),
        pytest.param({"pattern": "^a"}, {"pattern": "b$"}, {}, id="two-patterns"),
        pytest.param({"enum": ["a"]}, {"enum": ["b"]}, {}, id="nothing-in-common"),
    ],
)
def test_an_input_takes_what_all_its_slots_allow(first, second, narrowed):
    snapshot = Snapshot.of(
        tool("one", a={"type": "string", **first}), tool("two", b={"type": "string", **second})
    )
    nodes = [node("n1", "one", {"a": "$inputs.x"}), node("n2", "two", {"b": "$inputs.x"})]
    found = input_of(compiled(snapshot, nodes))
    assert {k: v for k, v in found.items() if k not in ("type", "description")} == narrowed
    assert found["type"] == "string"


def test_a_slot_that_may_not_run_constrains_nothing():
    snapshot = Snapshot.of(tool("one", a={"type": "string", "enum": ["a"]}))
    found = input_of(compiled(snapshot, [node("n", "one", {"a": "$inputs.x"}, when=False)]))
    assert "enum" not in found


def test_what_the_author_declared_is_kept_and_narrowed():
    snapshot = Snapshot.of(tool("one", a={"type": "integer", "minimum": 1, "description": "Of the tool."}))
    declared = {"x": {"type": "integer", "minimum": 0, "maximum": 9, "description": "Of the author."}}
    found = compiled(snapshot, [node("n", "one", {"a": "$inputs.x"})], inputs=declared)
    assert input_of(found) == {"type": "integer", "minimum": 1, "maximum": 9, "description": "Of the author."}
    assert found.input_schema["required"] == ["x"]
    assert found.input_schema["additionalProperties"] is False


@pytest.mark.parametrize("slot", ["integer", "number"])
def test_a_number_is_a_whole_one_only_where_its_slot_takes_no_other(slot):
    snapshot = Snapshot.of(tool("one", a={"type": slot}))
    found = compiled(snapshot, [node("n", "one", {"a": "$inputs.x"})], inputs={"x": {"type": "number"}})
    assert input_of(found)["type"] == slot


def test_references_in_a_tools_schema_are_resolved():
    unit = {"type": "string", "enum": ["m", "km"]}
    base = tool("one", a={"$ref": "#/$defs/Unit"})
    referring = Tool(base.id, {**base.input_schema, "$defs": {"Unit": unit}})
    found = compiled(Snapshot.of(referring), [node("n", "one", {"a": "$inputs.x"})])
    assert input_of(found)["enum"] == ["m", "km"]
    assert lint_schema(found.input_schema) == []


OBJECT = {"type": "object", "properties": {"n": {"type": "integer", "description": "How many."}}}


@pytest.mark.parametrize(
    ("more", "output", "kind"),
    [
        pytest.param({}, "$nodes.n.output#/n", "integer", id="declared"),
        pytest.param({"when": True}, "$nodes.n.output#/n", "number", id="conditional"),
        pytest.param({}, "$nodes.n.output#/other", "number", id="undeclared-place"),
    ],
)
def test_an_output_has_its_declared_type_where_it_surely_is_there(more, output, kind):
    snapshot = Snapshot.of(tool("one", OBJECT))
    found = compiled(snapshot, [node("n", "one", {}, **more)], {"out": output}, seen={"out": 3})
    assert output_of(found)["type"] == kind


@pytest.mark.parametrize(
    ("seen", "schema"),
    [
        pytest.param(3, {"type": "number"}, id="whole-number-may-have-digits-next-time"),
        pytest.param(True, {"type": "boolean"}, id="boolean"),
        pytest.param("x", {"type": "string"}, id="text"),
        pytest.param([1, 2.5], {"type": "array", "items": {"type": "number"}}, id="numbers"),
        pytest.param([1, "x"], {"type": "array", "items": {}}, id="mixed-list"),
        pytest.param({"a": 1}, {"type": "object"}, id="object"),
        pytest.param(None, {}, id="nothing-seen"),
    ],
)
def test_an_output_that_nothing_declares_is_typed_by_what_was_seen(seen, schema):
    found = output_of(compiled(Snapshot.of(tool("one")), [node("n", "one", {})], seen={"out": seen}))
    assert {key: value for key, value in found.items() if key != "description"} == schema


def test_signatures_are_portable():
    union = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    snapshot = Snapshot.of(tool("one", {"type": "object"}, a=union))
    found = compiled(snapshot, [node("n", "one", {"a": "$inputs.x"})])
    assert lint_schema(found.input_schema) == lint_schema(found.output_schema) == []
