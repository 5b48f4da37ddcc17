"""Typed edits: what they do, what they refuse, and what takes them back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from catalog.tools import ToolId
from skills_store.workflow.edits import (
    Edit,
    EditParameter,
    EditRefused,
    InsertNode,
    RemoveNode,
    Reorder,
    SwapTool,
    apply_edit,
    edit_identity,
    invert_edit,
    render_edit,
)
from skills_store.workflow.hashing import content_hash
from skills_store.workflow.model import Node, Workflow, parse_workflow
from tests.strategies import edits, workflows

EDITS: TypeAdapter[Edit] = TypeAdapter(Edit)


def node(node_id: str, **fields: Any) -> dict[str, Any]:
    return {"id": node_id, "tool": {"server": "units", "tool": "convert"}, "arguments": {}, **fields}


TRIP = parse_workflow(
    {
        "name": "trip",
        "inputs": {"type": "object", "properties": {"city": {}, "cities": {}}},
        "nodes": [
            node("db", arguments={"path": "x.db"}),
            node(
                "distance",
                arguments={"from": "$inputs.city", "opts": {"unit": "l", "tags": ["a", "b"]}},
                after=["db"],
                for_each="$inputs.cities",
                when="$inputs.city",
                timeout_seconds=3,
            ),
            node("fuel", arguments={"km": "$nodes.distance.output#/km", "note": "for {$nodes.db.output}"}),
            node("close", after=["db", "fuel"], expect="output.closed == `true`"),
            node("aside", after=["distance"]),
            node("mapped", for_each="$nodes.aside.output", arguments={"x": "$item"}),
        ],
        "outputs": {"liters": "$nodes.fuel.output#/l", "all": {"km": "$nodes.distance.output", "unit": "km"}},
        "expect": "nodes.db.output.ok == `true`",
    }
)


def set_to(pointer: str, value: Any, node_id: str | None = "distance", **more: Any) -> EditParameter:
    return EditParameter(node=node_id, pointer=pointer, value=value, **more)


def arguments_after(edit: Edit, node_id: str = "distance") -> dict[str, Any]:
    changed = apply_edit(TRIP, edit).node(node_id)
    assert changed is not None
    return changed.arguments


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        pytest.param(
            set_to("/from", "Oslo"),
            {"from": "Oslo", "opts": {"unit": "l", "tags": ["a", "b"]}},
            id="sets",
        ),
        pytest.param(
            set_to("/opts/unit", "L"),
            {"from": "$inputs.city", "opts": {"unit": "L", "tags": ["a", "b"]}},
            id="sets inside",
        ),
        pytest.param(
            set_to("/opts/tags/1", 5),
            {"from": "$inputs.city", "opts": {"unit": "l", "tags": ["a", 5]}},
            id="sets in a list",
        ),
        pytest.param(
            set_to("/opts/tags/-", 5),
            {"from": "$inputs.city", "opts": {"unit": "l", "tags": ["a", "b", 5]}},
            id="adds to a list",
        ),
        pytest.param(
            set_to("/to", None),
            {"from": "$inputs.city", "opts": {"unit": "l", "tags": ["a", "b"]}, "to": None},
            id="adds a null",
        ),
        pytest.param(
            EditParameter(node="distance", pointer="/opts/tags/0", remove=True),
            {"from": "$inputs.city", "opts": {"unit": "l", "tags": ["b"]}},
            id="removes from a list",
        ),
        pytest.param(
            set_to("/from_unit", "$inputs.city", renamed_from="/from"),
            {"from_unit": "$inputs.city", "opts": {"unit": "l", "tags": ["a", "b"]}},
            id="renames",
        ),
    ],
)
def test_edit_parameter_changes_one_place(edit: EditParameter, expected: dict[str, Any]) -> None:
    before = content_hash(TRIP)
    assert arguments_after(edit) == expected
    assert content_hash(TRIP) == before


def test_swap_tool_keeps_everything_but_tool_and_arguments() -> None:
    swapped = apply_edit(TRIP, SwapTool(node="distance", tool=ToolId("maps", "route"), arguments={"a": 1}))
    old, new = TRIP.node("distance"), swapped.node("distance")
    assert old is not None
    assert new == old.model_copy(update={"tool": ToolId("maps", "route"), "arguments": {"a": 1}})


def test_removing_heals_order_and_rewires_data() -> None:
    edit = RemoveNode(
        node="distance",
        rewired={
            "$nodes.distance.output#/km": "$inputs.city",
            "$nodes.distance.output": "$nodes.fuel.output#/km",
        },
    )
    changed = apply_edit(TRIP, edit)
    assert [n.id for n in changed.nodes] == ["db", "fuel", "close", "aside", "mapped"]
    assert changed.nodes[1].arguments["km"] == "$inputs.city"
    assert changed.outputs["all"] == {"km": "$nodes.fuel.output#/km", "unit": "km"}
    assert changed.nodes[3].after == ("db",)


REFUSALS = [
    pytest.param(set_to("/a/b", 1), "nothing is at /a", id="missing parent"),
    pytest.param(set_to("/from/b", 1), "/from holds no values inside", id="inside a text"),
    pytest.param(set_to("", {}), "points at no value", id="the whole"),
    pytest.param(set_to("/opts/tags/7", 1), "the list there has 2 elements", id="past a list"),
    pytest.param(set_to("/x", 1, renamed_from="/nope"), "nothing is at /nope", id="rename of nothing"),
    pytest.param(set_to("/x", 1, "nope"), "no node 'nope'", id="unknown node"),
    pytest.param(set_to("/liters", 5, None), "no longer be fed", id="output as a literal"),
    pytest.param(set_to("/liters", "$inputs.city", None), "no longer be fed", id="output as an input"),
    pytest.param(set_to("/liters", "$nodes.gone.output", None), "no longer be fed", id="output from nowhere"),
    pytest.param(set_to("/all/km", 5, None), "no longer be fed", id="part of an output as a literal"),
    pytest.param(set_to("/new", "$nodes.fuel.output", None), "nothing is at /new", id="new output"),
    pytest.param(
        EditParameter(node=None, pointer="/liters", remove=True), "neither removed", id="removed output"
    ),
    pytest.param(
        set_to("/litres", "$nodes.fuel.output", None, renamed_from="/liters"),
        "nor renamed",
        id="renamed output",
    ),
    pytest.param(
        InsertNode(planned=Node(id="fuel", tool=ToolId("a", "b")), position=0), "already is", id="taken id"
    ),
    pytest.param(
        InsertNode(planned=Node(id="new", tool=ToolId("a", "b")), position=7), "past the 6", id="position"
    ),
    pytest.param(
        InsertNode(planned=Node(id="new", tool=ToolId("a", "b"), expect=("`true`",)), position=0),
        "no checks",
        id="inserted check",
    ),
    pytest.param(RemoveNode(node="close"), "carries a check", id="removes a check"),
    pytest.param(RemoveNode(node="db"), "a check names db", id="removes what a check names"),
    pytest.param(RemoveNode(node="fuel"), "nothing stands in", id="an output stands on it"),
    pytest.param(
        RemoveNode(node="fuel", rewired={"$nodes.fuel.output#/l": "$inputs.city"}),
        "must be fed by a node",
        id="output rewired to an input",
    ),
    pytest.param(
        RemoveNode(node="aside", rewired={"$nodes.aside.output": "$inputs.nope"}),
        "is not there to stand in",
        id="undeclared stand-in",
    ),
    pytest.param(
        RemoveNode(node="aside", rewired={"$nodes.fuel.output": "$inputs.city"}),
        "is no reference to aside",
        id="rewires another node",
    ),
    pytest.param(
        RemoveNode(node="aside", rewired={"$nodes.aside.output": "$item"}),
        "has no $item",
        id="item in for_each",
    ),
    pytest.param(
        RemoveNode(node="mapped", rewired={"$nodes.mapped.output": "$inputs.city"}),
        "nothing reads",
        id="unread rewiring",
    ),
    pytest.param(Reorder(node="db", after=("gone",)), "no node gone", id="after nothing"),
    pytest.param(Reorder(node="db", after=("fuel",)), "would wait for itself", id="cycle"),
    pytest.param(Reorder(node="db", after=("db",)), "would wait for itself", id="after itself"),
    pytest.param(Reorder(node="close", after=("db", "db")), "twice", id="twice"),
]


@pytest.mark.parametrize(("edit", "reason"), REFUSALS)
def test_an_edit_that_may_not_be_made_is_refused_with_its_reason(edit: Edit, reason: str) -> None:
    with pytest.raises(EditRefused, match=reason.replace("$", r"\$")):
        apply_edit(TRIP, edit)


def test_rewiring_a_condition_is_refused() -> None:
    guarded = apply_edit(
        TRIP, InsertNode(planned=Node(id="g", tool=ToolId("a", "b"), when="$nodes.mapped.output"), position=0)
    )
    with pytest.raises(EditRefused, match="no edit touches it"):
        apply_edit(guarded, RemoveNode(node="mapped", rewired={"$nodes.mapped.output": "$inputs.city"}))


def test_rewiring_a_mapped_list_is_taken_back() -> None:
    edit = RemoveNode(node="aside", rewired={"$nodes.aside.output": "$inputs.cities"})
    changed = apply_edit(TRIP, edit)
    assert changed.nodes[4].for_each == "$inputs.cities"
    for step in invert_edit(TRIP, edit):
        changed = apply_edit(changed, step)
    assert content_hash(changed) == content_hash(TRIP)


@given(st.data())
def test_what_is_made_can_be_taken_back(data: st.DataObject) -> None:
    workflow = data.draw(workflows())
    edit = data.draw(edits(workflow))
    try:
        changed = apply_edit(workflow, edit)
        inverse = invert_edit(workflow, edit)
    except EditRefused:
        return
    for step in inverse:
        changed = apply_edit(changed, step)
    assert content_hash(changed) == content_hash(workflow)


@given(st.data())
def test_no_edit_changes_checks_or_the_names_of_outputs(data: st.DataObject) -> None:
    workflow = data.draw(workflows()).model_copy(update={"expect": ("output.total == `1`",)})
    try:
        changed = apply_edit(workflow, data.draw(edits(workflow)))
    except EditRefused:
        return
    assert changed.expect == workflow.expect
    assert changed.outputs.keys() == workflow.outputs.keys()
    for before in workflow.nodes:
        after = changed.node(before.id)
        assert after is None or (after.when, after.expect) == (before.when, before.expect)


@given(st.data())
def test_edits_survive_json(data: st.DataObject) -> None:
    edit = data.draw(edits(data.draw(workflows())))
    again = EDITS.validate_json(EDITS.dump_json(edit))
    assert edit_identity(again) == edit_identity(edit)


def test_the_reason_is_no_part_of_an_edits_identity() -> None:
    told = set_to("/from", 1, because="it said so")
    assert edit_identity(told) == edit_identity(set_to("/from", 1))
    assert edit_identity(told) != edit_identity(set_to("/from", 2))


@pytest.mark.parametrize(
    ("edit", "line"),
    [
        pytest.param(set_to("/opts/unit", "L"), 'distance: opts/unit "l" → "L"', id="set"),
        pytest.param(set_to("/to", 5), "distance: to = 5", id="add"),
        pytest.param(
            set_to("/from_unit", "$inputs.city", renamed_from="/from"),
            "distance: rename from → from_unit",
            id="rename",
        ),
        pytest.param(
            set_to("/from_unit", 1, renamed_from="/from"),
            "distance: rename from → from_unit = 1",
            id="rename and set",
        ),
        pytest.param(
            EditParameter(node="distance", pointer="/from", remove=True),
            "distance: remove from ($inputs.city)",
            id="remove argument",
        ),
        pytest.param(
            set_to("/liters", "$nodes.distance.output", None),
            "outputs: liters $nodes.fuel.output#/l → $nodes.distance.output",
            id="output",
        ),
        pytest.param(
            SwapTool(node="fuel", tool=ToolId("maps", "route"), arguments={"a": "x\ny"}),
            'fuel: call units/convert → maps/route(a="x\\ny")',
            id="swap",
        ),
        pytest.param(
            InsertNode(
                planned=Node(
                    id="shut",
                    tool=ToolId("sqlite", "close_connection"),
                    arguments={"conn_id": "$nodes.db.output#/data/conn_id"},
                    after=("fuel",),
                ),
                position=1,
            ),
            "insert shut: sqlite/close_connection(conn_id=$nodes.db.output#/data/conn_id) after fuel",
            id="insert",
        ),
        pytest.param(
            RemoveNode(node="aside", rewired={"$nodes.aside.output": "$inputs.cities"}),
            "remove aside, $nodes.aside.output → $inputs.cities",
            id="remove node",
        ),
        pytest.param(Reorder(node="aside", after=()), "aside: after nothing", id="reorder"),
    ],
)
def test_an_edit_reads_as_one_line(edit: Edit, line: str) -> None:
    assert render_edit(edit, TRIP) == line


@given(st.data())
def test_every_edit_is_one_line(data: st.DataObject) -> None:
    workflow: Workflow = data.draw(workflows())
    edit = data.draw(edits(workflow))
    assert len(render_edit(edit, workflow).splitlines()) == 1
    assert len(render_edit(edit).splitlines()) == 1
