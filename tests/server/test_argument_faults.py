"""Edits for arguments that are missing, misnamed, unexpected or of the wrong kind."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.testing import ScriptedTool
from server.evolution.argument_faults import propose_argument_edits
from server.evolution.proposal import Proposal, cheapest
from server.planning.view import View
from skills_store.workflow.check import check_workflow
from skills_store.workflow.edits import EditParameter, render_edit
from skills_store.workflow.faults import InvalidArgument, MissingArgument, UnexpectedArgument
from tests.worlds import NUMBER, TEXT, node, snapshot_of, takes, view_of, weather_plan, workflow, world_of

INTEGER = {"type": "integer"}
TOOLS = (
    ScriptedTool("wait", [{}], takes(seconds=INTEGER)),
    ScriptedTool("order", [{}], takes(items={"type": "array", "items": TEXT})),
    ScriptedTool("switch", [{}], takes(active={"type": "boolean"})),
    ScriptedTool("copy", [{}], takes(source=TEXT, destination=TEXT)),
    ScriptedTool("mode", [{}], takes(level={"type": "string", "enum": ["low", "medium", "high"]})),
    ScriptedTool("measure", [{}], takes(width=NUMBER, height=NUMBER)),
    ScriptedTool(
        "convert", [{}], takes(to_unit={"type": "string", "enum": ["fathom", "inch", "foot", "mile"]})
    ),
)
WORLD = world_of(snapshot=snapshot_of(s=TOOLS))


def proposals(view: View, node_id: str) -> list[Proposal]:
    """Return what is proposed for the argument faults that checking finds at a node, cheapest first."""
    faults = [
        fault
        for fault in check_workflow(view.workflow, view.world.snapshot)
        if fault.node == node_id and isinstance(fault, MissingArgument | UnexpectedArgument | InvalidArgument)
    ]
    assert faults, "the test meant to break something"
    found = view.workflow.node(node_id)
    assert found is not None
    return cheapest(propose_argument_edits(view, found, faults), 100)


def one(tool: str, arguments: dict[str, Any], **inputs: Any) -> View:
    """Return the view of a workflow of a single call."""
    planned = workflow(node("n", tool, arguments), outputs={"o": "$nodes.n.output"}, inputs=tuple(inputs))
    return view_of(planned, world=world_of("", inputs, WORLD.snapshot))


def set_to(argument: str, value: Any) -> EditParameter:
    return EditParameter(node="n", pointer=f"/{argument}", value=value)


def bare(proposal: Proposal) -> tuple[Any, ...]:
    """Return the edits of a proposal without their reasons."""
    return tuple(edit.model_copy(update={"because": ""}) for edit in proposal.edits)


def test_a_misnamed_argument_is_renamed_by_meaning_and_says_so():
    view = view_of(weather_plan(now={"town": "$inputs.city"}), world=world_of(inputs={"city": "Oslo"}))
    best = proposals(view, "now")[0]
    assert best == Proposal(
        (
            EditParameter(
                node="now",
                pointer="/city",
                value="$inputs.city",
                renamed_from="/town",
                because="weather/current has no argument 'town'; 'city' means the same",
            ),
        ),
        best.cost,
    )
    assert best.cost < 0.7


def test_several_misnamed_arguments_are_renamed_together_each_by_its_own_meaning():
    view = one("s/copy", {"target_path": "b", "from": "a"})
    joint = next(p for p in proposals(view, "n") if len(p.edits) > 1)
    assert set(bare(joint)) == {
        EditParameter(node="n", pointer="/source", value="a", renamed_from="/from"),
        EditParameter(node="n", pointer="/destination", value="b", renamed_from="/target_path"),
    }
    single = {bare(p): p.cost for p in proposals(view, "n") if len(p.edits) == 1}
    assert joint.cost < sum(single[(edit,)] for edit in bare(joint))


def test_a_name_without_any_likeness_is_not_renamed_by_its_position():
    view = one("s/measure", {"zzz": "a text", "qqq": "another"})
    renames = [
        (proposal.cost, edit)
        for proposal in proposals(view, "n")
        for edit in proposal.edits
        if isinstance(edit, EditParameter) and edit.renamed_from
    ]
    assert renames, "a rename stays possible, as a dear and visible edit"
    assert all(cost > 2 for cost, _ in renames)


@pytest.mark.parametrize(
    ("given", "nearest"),
    [("Hgih", "high"), ("MEDIUM", "medium"), ("lo", "low"), ("midium", "medium")],
)
def test_a_refused_enum_value_proposes_the_nearest_allowed_one(given: str, nearest: str):
    assert bare(proposals(one("s/mode", {"level": given}), "n")[0]) == (set_to("level", nearest),)


@pytest.mark.parametrize(
    ("given", "listed"), [("ft", "foot"), ("feet", "foot"), ("mi", "mile"), ("in", "inch")]
)
def test_a_refused_unit_becomes_the_spelling_of_it_that_the_schema_lists(given: str, listed: str):
    assert bare(proposals(one("s/convert", {"to_unit": given}), "n")[0]) == (set_to("to_unit", listed),)


@pytest.mark.parametrize(
    ("tool", "arguments", "edit"),
    [
        pytest.param("s/wait", {"seconds": "about 300 s"}, set_to("seconds", 300), id="a number out of text"),
        pytest.param("s/wait", {"seconds": "1,500 s"}, set_to("seconds", 1500), id="thousands out of text"),
        pytest.param("s/wait", {"seconds": [7]}, set_to("seconds", 7), id="a value out of its list"),
        pytest.param(
            "s/wait", {"seconds": {"value": 7}}, set_to("seconds", 7), id="a value out of its object"
        ),
        pytest.param("s/order", {"items": "tea"}, set_to("items", ["tea"]), id="a list around one value"),
        pytest.param("s/switch", {"active": "yes"}, set_to("active", True), id="yes is true"),
        pytest.param("s/switch", {"active": "off"}, set_to("active", False), id="off is false"),
    ],
)
def test_a_value_of_the_wrong_kind_is_read_as_what_it_says(
    tool: str, arguments: dict[str, Any], edit: EditParameter
):
    assert bare(proposals(one(tool, arguments), "n")[0]) == (edit,)


def test_a_reference_wrapped_in_an_object_is_unwrapped():
    view = one("s/wait", {"seconds": {"value": "$inputs.seconds"}}, seconds=4)
    assert bare(proposals(view, "n")[0]) == (set_to("seconds", "$inputs.seconds"),)


def test_a_wrapped_value_that_an_input_has_becomes_that_input():
    view = one("s/wait", {"seconds": {"value": 4}}, duration=4)
    assert bare(proposals(view, "n")[0]) == (set_to("seconds", "$inputs.duration"),)


def test_a_missing_argument_is_filled_from_the_only_fitting_unused_input():
    view = one("s/wait", {}, label="tea", patience=30)
    assert proposals(view, "n")[0] == Proposal(
        (
            EditParameter(
                node="n",
                pointer="/seconds",
                value="$inputs.patience",
                because="input 'patience' fits 'seconds'",
            ),
        ),
        proposals(view, "n")[0].cost,
    )


def test_a_missing_argument_prefers_the_like_named_output_of_an_earlier_node():
    planned = workflow(
        node("now", "weather/current", {"city": "Oslo"}),
        node("conv", "units/convert_temperature", {"from_unit": "celsius", "to_unit": "kelvin"}),
        outputs={"o": "$nodes.conv.output"},
    )
    view = view_of(planned, outputs={"now": {"station": "north", "temp_c": 5.0}})
    values = [
        edit.value for p in proposals(view, "conv") for edit in p.edits if isinstance(edit, EditParameter)
    ]
    assert values[0] == "$nodes.now.output#/temp_c"
    assert "$nodes.now.output#/station" not in values, "a text never fits a number"


def test_a_reference_to_a_whole_output_is_narrowed_to_the_place_that_fits():
    view = view_of(
        weather_plan(conv={"value": "$nodes.now.output", "from_unit": "celsius", "to_unit": "kelvin"}),
        outputs={"now": {"station": "north", "temp_c": 5.0}},
    )
    assert render_edit(proposals(view, "conv")[0].edits[0]) == "conv: value = $nodes.now.output#/temp_c"


def test_an_unexpected_argument_without_a_place_is_taken_out():
    view = one("s/wait", {"seconds": 3, "colour": "red"})
    assert bare(proposals(view, "n")[0]) == (EditParameter(node="n", pointer="/colour", remove=True),)


def test_taking_an_argument_out_costs_more_while_another_is_missing():
    alone = one("s/wait", {"seconds": 3, "colour": "red"})
    beside = one("s/wait", {"colour": "red"})
    removal = EditParameter(node="n", pointer="/colour", remove=True)
    costs = [next(p.cost for p in proposals(view, "n") if bare(p) == (removal,)) for view in (alone, beside)]
    assert costs[0] < costs[1]


def test_names_that_a_pointer_would_misread_are_escaped():
    slash = ScriptedTool("odd", [{}], takes(**{"a/b": NUMBER, "til~de": NUMBER}))
    planned = workflow(node("n", "s/odd", {"a_b": 1, "til~de": "x"}), outputs={"o": "$nodes.n.output"})
    view = view_of(planned, world=world_of(snapshot=snapshot_of(s=[slash])))
    pointers = {
        edit.pointer for p in proposals(view, "n") for edit in p.edits if isinstance(edit, EditParameter)
    }
    assert pointers <= {"/a~1b", "/til~0de", "/a_b"}
    assert "/a~1b" in pointers


def test_a_literal_that_looks_like_a_reference_is_escaped():
    tool = ScriptedTool("pay", [{}], takes(currency={"type": "string", "enum": ["$", "€"]}))
    planned = workflow(node("n", "s/pay", {"currency": "dollar"}), outputs={"o": "$nodes.n.output"})
    view = view_of(planned, world=world_of(snapshot=snapshot_of(s=[tool])))
    values = [edit.value for p in proposals(view, "n") for edit in p.edits if isinstance(edit, EditParameter)]
    assert "$$" in values
    assert "$" not in values
