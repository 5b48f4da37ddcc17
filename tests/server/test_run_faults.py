"""Edits for calls that failed, for unknown tools, and for workflows that run and yet are wrong."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.testing import ScriptedTool
from catalog.tools import ToolId
from server.evolution.proposal import Proposal
from server.evolution.propose import propose
from server.evolution.tool_faults import remapped
from server.planning.view import View
from skills_store.workflow.edits import EditParameter, RemoveNode, SwapTool, render_edit
from skills_store.workflow.faults import CheckFailed, DisguisedError, ToolError, UnknownTool
from skills_store.workflow.model import Workflow
from tests.worlds import (
    TEXT,
    as_tool,
    node,
    snapshot_of,
    takes,
    view_of,
    weather_plan,
    workflow,
    world_of,
)

WRONG = CheckFailed(message="output.total is 7, not 12", found=7)


def shown(proposal: Proposal) -> list[str]:
    return [render_edit(edit) for edit in proposal.edits]


def failing(planned: Workflow, node_id: str, message: str, **world: Any) -> View:
    """Return the view of a workflow one of whose calls failed with these words."""
    found = planned.node(node_id)
    assert found is not None
    assert found.tool is not None
    return view_of(
        planned, ToolError(message=message, node=node_id, tool=found.tool), world=world_of(**world)
    )


class TestUnknownTools:
    @pytest.mark.parametrize(
        ("wrong", "right"),
        [
            ("units/convert_temprature", "units/convert_temperature"),
            ("units/temperature_converter", "units/convert_temperature"),
            ("weather/convert_temperature", "units/convert_temperature"),
        ],
    )
    def test_an_unknown_tool_is_swapped_for_the_one_that_is_meant(self, wrong: str, right: str):
        arguments = {"value": "$nodes.now.output#/temp_c", "from_unit": "celsius", "to_unit": "kelvin"}
        planned = workflow(
            node("now", "weather/current", {"city": "Oslo"}),
            node("conv", wrong, arguments),
            outputs={"o": "$nodes.conv.output"},
        )
        server, name = wrong.split("/")
        fault = UnknownTool(message="no such tool", node="conv", tool=ToolId(server, name))
        best = propose(view_of(planned, fault, world=world_of("temperature in kelvin")))[0]
        server, name = right.split("/")
        assert best.edits == (
            SwapTool(
                node="conv",
                tool=ToolId(server, name),
                arguments=arguments,
                because=f"{right} does what 'conv' needs",
            ),
        )

    def test_a_swap_brings_arguments_under_the_names_of_the_new_tool_and_drops_what_has_no_place(self):
        tool = as_tool("s", ScriptedTool("copy", [{}], takes(source=TEXT, destination=TEXT)))
        arguments = {"from": "a", "target": "b", "volume": 3}
        assert remapped(arguments, tool) == {"source": "a", "destination": "b"}

    def test_no_swap_offers_the_tool_that_is_called_already(self):
        view = failing(weather_plan(), "conv", "boom")
        swaps = [edit for p in propose(view) for edit in p.edits if isinstance(edit, SwapTool)]
        assert swaps
        assert all(edit.tool != ToolId("units", "convert_temperature") for edit in swaps)


class TestFailedCalls:
    def test_a_value_that_the_server_offers_is_taken_the_more_alike_one_first(self):
        planned = weather_plan(now={"city": "Osol"})
        view = failing(planned, "now", "unknown city 'Osol', did you mean 'Rome' or 'Oslo'?")
        because = [edit.because for p in propose(view) for edit in p.edits]
        offers = [reason for reason in because if reason.startswith("the server offers")]
        assert offers == ["the server offers 'Oslo'", "the server offers 'Rome'"]
        assert because.index(offers[0]) < 10

    @pytest.mark.parametrize("kind", [ToolError, DisguisedError])
    def test_a_failing_free_node_that_nobody_reads_is_pruned_first(self, kind: Any):
        planned = workflow(
            node("sum", "sums/add", {"a": 1, "b": 2}),
            node("idle", "weather/current", {"city": "Nowhere"}),
            outputs={"total": "$nodes.sum.output#/result"},
        )
        fault = kind(message="boom", node="idle", tool=ToolId("weather", "current"))
        best = propose(view_of(planned, fault))[0]
        assert best.edits == (RemoveNode(node="idle", because="nothing reads 'idle'"),)

    def test_a_node_that_carries_a_check_is_never_removed(self):
        planned = workflow(
            node("sum", "sums/add", {"a": 1, "b": 2}),
            node("idle", "weather/current", {"city": "Nowhere"}, expect=["output.temp_c > `0`"]),
            outputs={"total": "$nodes.sum.output#/result"},
        )
        edits = [e for p in propose(failing(planned, "idle", "boom")) for e in p.edits]
        assert edits
        assert not [edit for edit in edits if isinstance(edit, RemoveNode)]

    def test_two_values_that_may_be_swapped_are_put_in_each_others_place_by_one_proposal(self):
        arguments = {"value": "$nodes.now.output#/temp_c", "from_unit": "fahrenheit", "to_unit": "celsius"}
        view = failing(weather_plan(conv=arguments), "conv", "boom")
        swap = next(p for p in propose(view) if len(p.edits) == 2)
        assert shown(swap) == ['conv: from_unit = "celsius"', 'conv: to_unit = "fahrenheit"']

    def test_another_spelling_of_what_the_error_speaks_of_is_tried_before_the_other_arguments(self):
        tool = ScriptedTool("clock", [{}], takes(zone=TEXT, style=TEXT))
        planned = workflow(
            node("n", "s/clock", {"zone": "utc", "style": "long"}), outputs={"o": "$nodes.n.output"}
        )
        view = failing(planned, "n", "bad zone: utc", snapshot=snapshot_of(s=[tool]))
        changed = [
            (edit.pointer, edit.value)
            for p in propose(view)
            for edit in p.edits
            if isinstance(edit, EditParameter) and len(p.edits) == 1
        ]
        assert changed[0] == ("/zone", "UTC")
        assert [pointer for pointer, _ in changed].index("/style") > changed.index(("/zone", "UTC"))


class TestSilence:
    def silent(self, planned: Workflow, task: str, inputs: Any = None, outputs: Any = None) -> list[Proposal]:
        return propose(view_of(planned, WRONG, world=world_of(task, inputs), outputs=outputs))

    def test_of_sibling_tools_the_one_that_the_task_speaks_of_comes_first(self):
        planned = workflow(
            node("total", "sums/add", {"a": "$inputs.x", "b": "$inputs.y"}),
            outputs={"total": "$nodes.total.output#/result"},
            inputs=("x", "y"),
        )
        proposals = self.silent(planned, "Multiply the two numbers", {"x": 3, "y": 4})
        swaps = [shown(p) for p in proposals if isinstance(p.edits[0], SwapTool)]
        assert swaps == [
            ["total: call sums/multiply(a=$inputs.x, b=$inputs.y)"],
            ["total: call sums/subtract(a=$inputs.x, b=$inputs.y)"],
        ]
        assert shown(proposals[1]) == swaps[0], "right after the two values in each other's place"

    def test_values_in_each_others_place_are_swapped(self):
        planned = workflow(
            node("left", "sums/subtract", {"a": "$inputs.eaten", "b": "$inputs.apples"}),
            outputs={"left": "$nodes.left.output#/result"},
            inputs=("apples", "eaten"),
        )
        proposals = self.silent(planned, "Subtract what was eaten from the apples", {"apples": 9, "eaten": 2})
        swap = next(p for p in proposals if len(p.edits) == 2)
        assert shown(swap) == ["left: a = $inputs.apples", "left: b = $inputs.eaten"]
        assert proposals.index(swap) < 3

    def test_an_input_that_nobody_reads_is_put_to_use_first(self):
        planned = workflow(
            node("total", "sums/add", {"a": "$inputs.x", "b": 1}),
            outputs={"total": "$nodes.total.output#/result"},
            inputs=("x", "y"),
        )
        best = self.silent(planned, "Add x and y", {"x": 3, "y": 4})[0]
        assert shown(best) == ["total: b = $inputs.y"]

    def test_an_output_may_mean_another_place_and_keeps_its_name(self):
        planned = workflow(
            node("now", "weather/forecast", {"city": "Oslo", "days": 3}),
            outputs={"high": "$nodes.now.output#/days"},
        )
        proposals = self.silent(planned, "Tell", outputs={"now": {"high_c": 30.0, "days": 3}})
        assert ["outputs: high = $nodes.now.output#/high_c"] in [shown(p) for p in proposals]

    def test_a_missing_step_is_put_between_an_output_and_what_it_reads(self):
        planned = workflow(
            node("sum", "sums/add", {"a": "$inputs.x", "b": "$inputs.y"}),
            outputs={"o": "$nodes.sum.output#/result"},
            inputs=("x", "y", "factor"),
        )
        proposals = propose(
            View(
                world_of("Add x and y, then multiply by the factor", {"x": 1, "y": 2, "factor": 5}),
                planned,
                {"sum": {"result": 3}},
                {ToolId("sums", name): {"result": 3} for name in ("add", "subtract", "multiply")},
                (WRONG,),
            ),
            limit=1000,
        )
        assert [
            "insert step_1: sums/multiply(a=$nodes.sum.output#/result, b=$inputs.factor)",
            "outputs: o = $nodes.step_1.output#/result",
        ] in [shown(p) for p in proposals]

    def test_a_guess_is_never_cheap(self):
        costs = [p.cost for p in self.silent(weather_plan(), "Tell the weather", {"city": "Oslo"})]
        assert costs == sorted(costs)
        assert costs[0] > 0.8

    def test_nothing_is_proposed_where_nothing_is_wrong(self):
        assert propose(view_of(weather_plan())) == []
