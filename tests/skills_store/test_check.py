"""Static faults of workflows: each kind, its place, and nothing where nothing is certain."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from catalog.tools import Snapshot, Tool, ToolId
from skills_store.skill import Signature
from skills_store.workflow.check import Limits, check_inputs, check_workflow, similar_tools
from skills_store.workflow.faults import Fault, InvalidArgument, MissingArgument, UnexpectedArgument
from skills_store.workflow.model import Node, Workflow, parse_workflow
from tests.strategies import workflows

GOLDEN = Path(__file__).parents[1] / "golden"
FAULTS: dict[str, Any] = json.loads((GOLDEN / "faults.json").read_text(encoding="utf-8"))


def golden_snapshot() -> Snapshot:
    listed = json.loads((GOLDEN / "tools.json").read_text(encoding="utf-8"))
    return Snapshot.of(
        *(Tool(ToolId(t["server"], t["tool"]), t["inputSchema"], t["outputSchema"]) for t in listed)
    )


def tool(name: str, output: dict[str, Any] | None = None, **schema: Any) -> Tool:
    return Tool(ToolId("s", name), {"type": "object", **schema}, output)


NUMBER, TEXT, LIST = {"type": "number"}, {"type": "string"}, {"type": "array", "items": {"type": "number"}}
ITEM = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "tags": {"type": "array", "items": TEXT}},
    "required": ["id"],
}
SNAPSHOT = Snapshot.of(
    tool("take", properties={"n": NUMBER, "text": TEXT, "list": LIST, "item": ITEM}),
    tool("need", properties={"n": NUMBER, "text": TEXT}, required=["n"]),
    tool("open", properties={"n": NUMBER}, additionalProperties=True),
    tool("closed", properties={"n": NUMBER}, additionalProperties=False),
    tool("silent"),
    tool("none", properties={}),
    tool("optional", properties={"n": {"anyOf": [NUMBER, {"type": "null"}], "default": None}}),
    tool(
        "make",
        {
            "type": "object",
            "properties": {"n": NUMBER, "text": TEXT, "list": LIST, "rows": {"type": "array", "items": ITEM}},
            "additionalProperties": False,
        },
    ),
    tool("guess", {"type": "object", "properties": {"n": NUMBER}}),
    tool("broken", properties={"n": {"$ref": "https://example.org/schema"}}),
)
INPUTS = {
    "type": "object",
    "properties": {
        "n": NUMBER,
        "text": TEXT,
        "list": LIST,
        "yes": {"type": "boolean"},
        "any": {},
        "object": {"type": "object"},
    },
}


def checked(arguments: dict[str, Any], name: str = "take", **fields: Any) -> list[Fault]:
    nodes = [
        {"id": "made", "tool": {"server": "s", "tool": "make"}},
        {"id": "mapped", "tool": {"server": "s", "tool": "make"}, "for_each": "$inputs.list"},
        {"id": "untyped", "tool": {"server": "s", "tool": "silent"}},
        {"id": "guessed", "tool": {"server": "s", "tool": "guess"}},
        {"id": "never", "tool": {"server": "s", "tool": "make"}, "when": False},
        {"id": "it", "tool": {"server": "s", "tool": name}, "arguments": arguments, **fields},
    ]
    return check_workflow(whole(nodes, {"o": "$nodes.it.output"}), SNAPSHOT)


def whole(nodes: list[dict[str, Any]], outputs: dict[str, Any], **more: Any) -> Workflow:
    return parse_workflow({"name": "w", "inputs": INPUTS, "nodes": nodes, "outputs": outputs, **more})


def told(faults: list[Fault]) -> list[tuple[str, str]]:
    return [(fault.kind, fault.pointer) for fault in faults]


@pytest.mark.parametrize("name", sorted(FAULTS))
def test_faults_of_fixed_documents_never_change(name: str) -> None:
    workflow = parse_workflow((GOLDEN / "workflows" / f"{name}.json").read_text(encoding="utf-8"))
    found = check_workflow(workflow, golden_snapshot())
    assert [{**f.model_dump(mode="json", exclude_defaults=True), "kind": f.kind} for f in found] == FAULTS[
        name
    ]


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        pytest.param({"n": 5, "text": "x", "list": [1], "item": {"id": 1, "more": 2}}, "take", id="literals"),
        pytest.param({"n": "300"}, "take", id="exact text of a number"),
        pytest.param({"list": ["1", 2.5]}, "take", id="exact text inside a list"),
        pytest.param({"text": 5}, "take", id="a number as text"),
        pytest.param({"n": "$inputs.n"}, "take", id="reference of the right type"),
        pytest.param({"n": "$inputs.text"}, "take", id="text that may be a number"),
        pytest.param({"n": "$inputs.any"}, "take", id="untyped input"),
        pytest.param({"n": "$nodes.made.output#/n"}, "take", id="declared output"),
        pytest.param({"n": "$nodes.mapped.output#/0/n"}, "take", id="output of one item"),
        pytest.param({"n": "$nodes.untyped.output#/whatever"}, "take", id="undeclared output"),
        pytest.param({"n": "$nodes.guessed.output#/other"}, "take", id="place an open schema may have"),
        pytest.param({"item": {"id": "$nodes.made.output#/n"}}, "take", id="reference inside an object"),
        pytest.param({"item": "$nodes.made.output#/rows/0"}, "take", id="object from a list"),
        pytest.param({"n": "{$inputs.n}"}, "take", id="template that may be a number"),
        pytest.param({"text": "$$inputs.nope"}, "take", id="escaped reference"),
        pytest.param({"text": {"$literal": "$inputs.nope"}}, "take", id="quoted reference"),
        pytest.param(
            {"list": {"context": "$nodes.made.output", "selector": "rows[*].id", "type": "jmespath"}},
            "take",
            id="selector",
        ),
        pytest.param({"n": 1, "more": 2}, "open", id="an open tool takes more"),
        pytest.param({"whatever": 2}, "silent", id="a silent tool takes anything"),
        pytest.param({"n": None}, "optional", id="null where it is allowed"),
        pytest.param({"n": "$inputs.n"}, "optional", id="reference to a nullable argument"),
        pytest.param({"n": {}}, "broken", id="a schema that cannot be evaluated refuses nothing"),
    ],
)
def test_what_may_be_right_is_no_fault(arguments: dict[str, Any], name: str) -> None:
    assert checked(arguments, name) == []


@pytest.mark.parametrize(
    ("arguments", "name", "expected"),
    [
        pytest.param({}, "need", [("missing_argument", "")], id="missing"),
        pytest.param({"n": "many"}, "need", [("invalid_argument", "/n")], id="text that is no number"),
        pytest.param({"n": {"$literal": "$x"}}, "need", [("invalid_argument", "/n")], id="quoted text"),
        pytest.param({"list": [1, "x"]}, "take", [("invalid_argument", "/list/1")], id="inside a list"),
        pytest.param(
            {"item": {"id": 1.5}}, "take", [("invalid_argument", "/item/id")], id="inside an object"
        ),
        pytest.param(
            {"item": {"tags": []}}, "take", [("invalid_argument", "/item")], id="key missing inside"
        ),
        pytest.param(
            {"item": {"tags": ["$inputs.text"]}},
            "take",
            [("invalid_argument", "/item")],
            id="beside a reference",
        ),
        pytest.param({"m": 1}, "take", [("unexpected_argument", "/m")], id="unexpected"),
        pytest.param({"m": 1}, "closed", [("unexpected_argument", "/m")], id="unexpected and closed"),
        pytest.param({"m": 1}, "none", [("unexpected_argument", "/m")], id="a tool without arguments"),
        pytest.param(
            {"m": "$nodes.gone.output"},
            "need",
            [("dangling_reference", "/m"), ("unexpected_argument", "/m"), ("missing_argument", "")],
            id="everything at once, in order",
        ),
        pytest.param({"n": "$inputs.list"}, "take", [("invalid_argument", "/n")], id="list for a number"),
        pytest.param(
            {"list": "$nodes.made.output#/n"}, "take", [("invalid_argument", "/list")], id="number for a list"
        ),
        pytest.param(
            {"n": "$nodes.mapped.output"}, "take", [("invalid_argument", "/n")], id="mapped output is a list"
        ),
        pytest.param(
            {"list": "x {$inputs.n}"}, "take", [("invalid_argument", "/list")], id="template for a list"
        ),
        pytest.param({"n": "$inputs.m"}, "take", [("dangling_reference", "/n")], id="unknown input"),
        pytest.param({"n": "$inputs.n#/x"}, "take", [("dangling_reference", "/n")], id="inside a number"),
        pytest.param({"n": "$nodes.gone.output"}, "take", [("dangling_reference", "/n")], id="unknown node"),
        pytest.param({"n": "$nodes.it.output"}, "take", [("dangling_reference", "/n")], id="own output"),
        pytest.param({"n": "$nodes.never.output#/n"}, "take", [("dangling_reference", "/n")], id="never run"),
        pytest.param({"n": "$nodes.made.output#/m"}, "take", [("dangling_reference", "/n")], id="absent key"),
        pytest.param(
            {"n": "$nodes.mapped.output#/n"}, "take", [("dangling_reference", "/n")], id="key of a list"
        ),
        pytest.param(
            {"text": "a {$nodes.gone.output}"}, "take", [("dangling_reference", "/text")], id="in a template"
        ),
        pytest.param({"n": "$item"}, "take", [("dangling_reference", "/n")], id="item outside of for_each"),
        pytest.param({"n": "$input.n"}, "take", [("malformed", "/n")], id="unreadable reference"),
        pytest.param({"text": "a {$nodes.x}"}, "take", [("malformed", "/text")], id="unreadable template"),
        pytest.param(
            {"n": {"context": 1, "selector": "a[", "type": "jmespath"}},
            "take",
            [("malformed", "/n/selector")],
            id="unreadable selector",
        ),
        pytest.param(
            {"item": {"context": 1, "selector": "a", "type": "jsonpath"}},
            "take",
            [("malformed", "/item/type"), ("invalid_argument", "/item")],
            id="unknown type of selector",
        ),
        pytest.param(
            {"n": {"context": "$nodes.gone.output", "selector": "a", "type": "jmespath"}},
            "take",
            [("dangling_reference", "/n/context")],
            id="context of a selector",
        ),
    ],
)
def test_arguments_are_checked_against_their_schema(
    arguments: dict[str, Any], name: str, expected: list[tuple[str, str]]
) -> None:
    faults = checked(arguments, name)
    assert told(faults) == [(kind, f"/nodes/5/arguments{pointer}") for kind, pointer in expected]
    assert {fault.node for fault in faults} == {"it"}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param(
            {"for_each": "$inputs.n"}, [("invalid_argument", "/for_each")], id="for_each over a number"
        ),
        pytest.param({"for_each": [1]}, [("malformed", "/for_each")], id="for_each over a literal"),
        pytest.param({"for_each": "$item"}, [("dangling_reference", "/for_each")], id="item in for_each"),
        pytest.param(
            {"for_each": "$inputs.m"}, [("dangling_reference", "/for_each")], id="for_each over nothing"
        ),
        pytest.param({"when": "yes"}, [("malformed", "/when")], id="text as a condition"),
        pytest.param({"when": "$inputs.list"}, [("invalid_argument", "/when")], id="list as a condition"),
        pytest.param({"after": ["made", "gone"]}, [("dangling_reference", "/after/1")], id="after nothing"),
        pytest.param({"after": ["it"]}, [("cycle", "")], id="after itself"),
        pytest.param({"expect": ["output.n == "]}, [("malformed", "/expect/0")], id="unreadable check"),
        pytest.param(
            {"expect": ["frob(output)"]}, [("malformed", "/expect/0")], id="unknown function in a check"
        ),
        pytest.param({"for_each": "$inputs.list", "when": True}, [], id="a mapped node"),
        pytest.param({"when": "$inputs.yes", "after": ["made"]}, [], id="a guarded node"),
    ],
)
def test_the_other_fields_of_a_node_are_checked(
    fields: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert told(checked({}, "take", **fields)) == [(kind, f"/nodes/5{pointer}") for kind, pointer in expected]


@pytest.mark.parametrize(
    ("argument", "for_each", "expected"),
    [
        pytest.param({"n": "$item"}, "$inputs.list", [], id="item of the right type"),
        pytest.param({"list": "$item"}, "$inputs.list", ["invalid_argument"], id="item of the wrong type"),
        pytest.param({"n": "$item#/id"}, "$nodes.made.output#/rows", [], id="key of an item"),
        pytest.param({"n": "$item#/x"}, "$inputs.list", ["dangling_reference"], id="key of a number"),
        pytest.param({"n": "$item#/x"}, "$nodes.untyped.output", [], id="item of an unknown list"),
    ],
)
def test_an_item_has_the_type_of_the_list(
    argument: dict[str, Any], for_each: str, expected: list[str]
) -> None:
    assert [fault.kind for fault in checked(argument, "take", for_each=for_each)] == expected


def test_a_fault_carries_what_a_repair_needs() -> None:
    assert checked({}, "need")[0] == MissingArgument(
        message="argument 'n' is required", node="it", pointer="/nodes/5/arguments", argument="n"
    )
    assert checked({"m": 1})[0] == UnexpectedArgument(
        message="'m' is no argument; arguments: item, list, n, text",
        node="it",
        pointer="/nodes/5/arguments/m",
        argument="m",
        allowed=("item", "list", "n", "text"),
    )
    assert checked({"n": "$inputs.list"})[0] == InvalidArgument(
        message="$inputs.list is array, which 'n' (number) does not take",
        node="it",
        pointer="/nodes/5/arguments/n",
        argument="n",
        expected=NUMBER,
        found="$inputs.list",
    )


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        pytest.param({}, [("missing_output", "/outputs")], id="none"),
        pytest.param({"o": 5}, [("missing_output", "/outputs/o")], id="literal"),
        pytest.param({"o": "$inputs.n"}, [("missing_output", "/outputs/o")], id="input only"),
        pytest.param(
            {"a/b": {"x": ["$inputs.n"]}}, [("missing_output", "/outputs/a~1b")], id="inputs only, inside"
        ),
        pytest.param({"o": "$nodes.gone.output"}, [("dangling_reference", "/outputs/o")], id="unknown node"),
        pytest.param({"o": "$item"}, [("dangling_reference", "/outputs/o")], id="item"),
        pytest.param({"o": "$node.a.output"}, [("malformed", "/outputs/o")], id="unreadable"),
        pytest.param({"o": "$nodes.a.output#/m"}, [("dangling_reference", "/outputs/o")], id="absent key"),
        pytest.param({"o": "n is {$nodes.a.output#/n}"}, [], id="template of an output"),
        pytest.param({"o": {"n": "$nodes.a.output#/n", "unit": "km"}}, [], id="object with an output"),
    ],
)
def test_outputs_are_fed_by_a_tool(outputs: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    nodes = [{"id": "a", "tool": {"server": "s", "tool": "make"}}]
    assert told(check_workflow(whole(nodes, outputs), SNAPSHOT)) == expected


def test_an_unknown_tool_names_the_same_tool_elsewhere_first() -> None:
    snapshot = Snapshot.of(
        *(
            Tool(ToolId(server, name), {})
            for server, name in [
                ("a", "convert_units"),
                ("a", "convert_time"),
                ("b", "convert"),
                ("b", "frobnicate"),
                ("c", "convert"),
            ]
        )
    )
    similar = similar_tools(ToolId("a", "convert"), snapshot)
    assert similar[:2] == (ToolId("b", "convert"), ToolId("c", "convert"))
    assert ToolId("b", "frobnicate") not in similar
    assert len(similar) <= 5


def test_skill_nodes_are_checked_by_their_signature() -> None:
    nodes = [
        {"id": "a", "skill": {"name": "trip", "version": 2}, "arguments": {"km": "far"}},
        {"id": "b", "skill": {"name": "gone", "version": 1}},
    ]
    workflow = whole(nodes, {"o": "$nodes.a.output#/litres"})
    signature = Signature(
        input_schema={"type": "object", "properties": {"km": NUMBER}, "required": ["km"]},
        output_schema={"type": "object", "properties": {"liters": NUMBER}, "additionalProperties": False},
    )
    for key in ("trip", "trip@2"):
        assert told(check_workflow(workflow, SNAPSHOT, skills={key: signature})) == [
            ("invalid_argument", "/nodes/0/arguments/km"),
            ("dangling_reference", "/nodes/1/skill"),
            ("dangling_reference", "/outputs/o"),
        ]


@pytest.mark.parametrize(
    ("inputs", "pointer"),
    [
        pytest.param(
            {"type": "object", "properties": {"n": {"type": "nubmer"}}}, "/inputs", id="unknown type"
        ),
        pytest.param({"$ref": "https://example.org/s"}, "/inputs", id="remote reference"),
        pytest.param({"type": "array"}, "/inputs/type", id="no object"),
    ],
)
def test_the_inputs_schema_is_checked(inputs: dict[str, Any], pointer: str) -> None:
    document = {
        "name": "w",
        "inputs": inputs,
        "nodes": [{"id": "a", "tool": {"server": "s", "tool": "make"}}],
        "outputs": {"o": "$nodes.a.output"},
    }
    assert told(check_workflow(parse_workflow(document), SNAPSHOT)) == [("malformed", pointer)]


def test_limits_are_faults_and_stop_the_check() -> None:
    nodes = [{"id": f"n{i}", "tool": {"server": "s", "tool": "gone"}} for i in range(3)]
    workflow = whole(nodes, {"o": "x" * 100})
    assert told(check_workflow(workflow, SNAPSHOT, limits=Limits(max_nodes=2))) == [("over_limit", "/nodes")]
    assert told(check_workflow(workflow, SNAPSHOT, limits=Limits(max_bytes=50))) == [("over_limit", "")]


def test_deep_and_infinite_values_are_faults() -> None:
    deep: Any = 1
    for _ in range(10_000):
        deep = [deep]
    node = Node.model_construct(
        id="a",
        tool=ToolId("s", "make"),
        skill=None,
        arguments={"x": deep, "y": float("nan")},
        for_each=None,
        when=None,
        after=(),
        expect=(),
        timeout_seconds=None,
    )
    workflow = whole([{"id": "a", "tool": {"server": "s", "tool": "make"}}], {"o": "$nodes.a.output"})
    faults = check_workflow(workflow.model_copy(update={"nodes": (node,)}), SNAPSHOT)
    assert sorted({fault.kind for fault in faults}) == ["malformed", "over_limit"]


def test_every_cycle_is_told_at_its_first_node() -> None:
    nodes = [
        {"id": name, "tool": {"server": "s", "tool": "silent"}, "arguments": {"x": f"$nodes.{read}.output"}}
        for name, read in [("a", "b"), ("b", "a"), ("c", "d"), ("d", "c")]
    ]
    faults = check_workflow(whole(nodes, {"o": "$nodes.a.output"}), SNAPSHOT)
    assert told(faults) == [("cycle", "/nodes/0"), ("cycle", "/nodes/2")]


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        pytest.param({"n": 1, "text": "x"}, [], id="right"),
        pytest.param({"n": "5"}, [], id="exact text"),
        pytest.param({"text": "$inputs.n"}, [], id="input values are no references"),
        pytest.param({"n": "x"}, [("invalid_argument", "/inputs/n")], id="wrong type"),
        pytest.param({"list": [1, "x"]}, [("invalid_argument", "/inputs/list/1")], id="inside"),
        pytest.param({"m": 1}, [("unexpected_argument", "/inputs/m")], id="unknown"),
    ],
)
def test_input_values_are_checked(inputs: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    nodes = [{"id": "a", "tool": {"server": "s", "tool": "make"}}]
    assert told(check_inputs(whole(nodes, {"o": "$nodes.a.output"}), inputs)) == expected


def test_a_missing_input_is_told() -> None:
    document = {
        "name": "w",
        "inputs": {**INPUTS, "required": ["n"]},
        "nodes": [{"id": "a", "tool": {"server": "s", "tool": "make"}}],
        "outputs": {"o": "$nodes.a.output"},
    }
    (fault,) = check_inputs(parse_workflow(document), {})
    assert isinstance(fault, MissingArgument)
    assert (fault.argument, fault.pointer) == ("n", "/inputs")


@given(workflows())
def test_a_check_never_raises_and_always_says_the_same(workflow: Workflow) -> None:
    empty = Snapshot.of()
    faults = check_workflow(workflow, empty)
    assert faults == check_workflow(workflow, empty)
    assert [f.node for f in faults if f.kind == "unknown_tool"] == [node.id for node in workflow.nodes]
    assert not any(f.kind in ("cycle", "malformed", "missing_output") for f in faults)
