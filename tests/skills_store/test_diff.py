"""The readable difference of two workflows."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from skills_store.workflow.diff import render_diff
from skills_store.workflow.edits import EditRefused, apply_edit
from skills_store.workflow.hashing import content_hash
from skills_store.workflow.model import Workflow, parse_workflow
from tests.strategies import edits, workflows

BEFORE: dict[str, Any] = {
    "name": "trip",
    "inputs": {"type": "object", "properties": {"city": {"type": "string"}}},
    "nodes": [
        {
            "id": "distance",
            "tool": {"server": "maps", "tool": "distance"},
            "arguments": {"from": "$inputs.city", "to": "Rome"},
        },
        {
            "id": "fuel",
            "tool": {"server": "units", "tool": "convert"},
            "arguments": {"value": "$nodes.distance.output#/km", "to_unit": "l"},
            "after": ["distance"],
        },
        {"id": "spare", "tool": {"server": "units", "tool": "convert"}},
    ],
    "outputs": {"liters": "$nodes.fuel.output#/value"},
}


def test_each_changed_line_is_shown_under_its_part() -> None:
    after = {
        **BEFORE,
        "name": "trip_fuel",
        "inputs": {"type": "object", "properties": {"city": {"type": "string", "minLength": 1}}},
        "nodes": [
            {
                "id": "distance",
                "tool": {"server": "routes", "tool": "distance"},
                "arguments": {"from_city": "$inputs.city", "to": "Rome"},
            },
            {
                "id": "close",
                "tool": {"server": "maps", "tool": "close"},
                "arguments": {"id": 5},
                "when": "$inputs.city",
                "after": ["fuel"],
            },
            {
                "id": "fuel",
                "tool": {"server": "units", "tool": "convert"},
                "arguments": {"value": "$nodes.distance.output#/km", "to_unit": "L"},
                "timeout_seconds": 2,
            },
        ],
        "outputs": {"liters": "$nodes.fuel.output#/result"},
        "expect": "output.liters > `0`",
    }
    assert render_diff(parse_workflow(BEFORE), parse_workflow(after)) == (
        "  workflow\n"
        "-   name: trip\n"
        "+   name: trip_fuel\n"
        "+   (expect) output.liters > `0`\n"
        "  inputs\n"
        '-   city: {"type": "string"}\n'
        '+   city: {"type": "string", "minLength": 1}\n'
        "- node distance: maps/distance\n"
        "+ node distance: routes/distance\n"
        "-   from = $inputs.city\n"
        "+   from_city = $inputs.city\n"
        "+ node close: maps/close\n"
        "+   id = 5\n"
        "+   (when) $inputs.city\n"
        "+   (after) fuel\n"
        "  node fuel: units/convert\n"
        '-   to_unit = "l"\n'
        '+   to_unit = "L"\n'
        "-   (after) distance\n"
        "+   (timeout) 2.0 s\n"
        "  outputs\n"
        "-   liters = $nodes.fuel.output#/value\n"
        "+   liters = $nodes.fuel.output#/result\n"
        "- node spare: units/convert"
    )


def test_moved_nodes_are_told_as_an_order() -> None:
    moved = {**BEFORE, "nodes": list(reversed(BEFORE["nodes"]))}
    assert render_diff(parse_workflow(BEFORE), parse_workflow(moved)) == (
        "  order of the document\n-   distance, fuel, spare\n+   spare, fuel, distance"
    )


def test_a_change_far_inside_a_long_value_is_in_the_line() -> None:
    def with_text(tail: str) -> Workflow:
        outputs = {"liters": "x" * 1_000 + f" {{$nodes.fuel.output}} {tail}"}
        return parse_workflow({**BEFORE, "outputs": outputs})

    lines = render_diff(with_text("old"), with_text("new")).splitlines()
    assert lines[1].endswith('old"')
    assert lines[2].endswith('new"')
    assert all(len(line) < 300 for line in lines)


@given(workflows())
def test_the_same_workflow_has_no_difference(workflow: Workflow) -> None:
    assert render_diff(workflow, workflow) == ""


@given(st.data())
def test_every_edit_that_changes_something_shows(data: st.DataObject) -> None:
    workflow = data.draw(workflows())
    try:
        changed = apply_edit(workflow, data.draw(edits(workflow)))
    except EditRefused:
        return
    if content_hash(changed) != content_hash(workflow):
        assert render_diff(workflow, changed)
