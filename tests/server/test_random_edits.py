"""Edits drawn at random are typed: they can be made or are refused, and bring nothing that no edit may."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from catalog.effects import Effect, EffectTable
from catalog.testing import ScriptedTool
from catalog.tools import ToolId
from server.evolution.building import base_candidate, edited
from server.evolution.candidate import Evaluation, Fitness, Record
from server.evolution.proposer import Asked
from server.evolution.random_edits import RandomProposer, drawn_edits
from server.evolution.soundness import brought_faults, undeclared_arguments
from server.evolution.strategy import Order
from server.planning.view import View
from skills_store.workflow.check import check_workflow
from skills_store.workflow.edits import (
    EditParameter,
    EditRefused,
    InsertNode,
    SwapTool,
    apply_edit,
    invert_edit,
)
from skills_store.workflow.graph import cycles, data_dependencies
from skills_store.workflow.hashing import content_hash
from skills_store.workflow.model import Workflow
from skills_store.workflow.references import is_selector
from tests.worlds import FREE, Arguments, node, snapshot_of, takes, view_of, weather_plan, workflow, world_of

pytestmark = pytest.mark.anyio

TASK, OSLO = (
    "Tell the current temperature in Oslo in fahrenheit for 7 days, and add 2 to it",
    {"city": "Oslo", "n": 2},
)
PLAIN = weather_plan()
CHECKED = workflow(
    node("now", "weather/current", {"city": "$inputs.city"}, expect=["output.temp_c > `-90`"]),
    node("days", "weather/forecast", {"city": "Oslo", "days": 3}, after=["now"]),
    node(
        "conv",
        "units/convert_temperature",
        {"value": "$nodes.now.output#/temp_c", "from_unit": "celsius", "to_unit": "kelvin"},
    ),
    node("sum", "sums/add", {"a": "$nodes.conv.output#/converted_value", "b": "$inputs.n"}),
    outputs={"total": "$nodes.sum.output#/result", "high": "$nodes.days.output#/high_c"},
    inputs=("city", "n"),
    expect="output.total > `0`",
)
BROKEN = weather_plan(now={"town": "$inputs.city"})
SEEN: dict[str, JsonValue] = {"now": {"station": "north", "temp_c": 5.0}, "conv": {"converted_value": 278.15}}


def view(planned: Workflow, effects: EffectTable = FREE) -> View:
    world = world_of(TASK, OSLO, effects=effects)
    return view_of(planned, *check_workflow(planned, world.snapshot), world=world, outputs=SEEN)


def drawn_children(planned: Workflow, count: int, effects: EffectTable = FREE) -> list[Workflow]:
    found: list[Workflow] = []
    for seed in range(count):
        step = drawn_edits(view(planned, effects), Random(seed))
        try:
            found.append(edited(planned, step))
        except EditRefused:
            continue
    return found


@given(st.sampled_from([PLAIN, CHECKED, BROKEN]), st.integers(0, 10**9))
@settings(max_examples=150, deadline=None)
def test_a_drawn_step_is_refused_or_keeps_what_no_edit_may_touch(planned: Workflow, seed: int):
    step = drawn_edits(view(planned), Random(seed))
    try:
        after = edited(planned, step)
    except EditRefused:
        return
    kept = {n.id: n.expect for n in planned.nodes if n.expect}
    assert {n.id: n.expect for n in after.nodes if n.expect} == kept
    assert after.expect == planned.expect
    assert after.outputs.keys() == planned.outputs.keys()
    assert after.inputs == planned.inputs
    assert {n.id: n.when for n in after.nodes if planned.node(n.id)} == {
        n.id: n.when for n in planned.nodes if after.node(n.id)
    }
    assert not cycles(after)
    assert not undeclared_arguments(planned, after, world_of().snapshot)


@given(st.sampled_from([PLAIN, CHECKED]), st.integers(0, 10**9))
@settings(max_examples=100, deadline=None)
def test_every_drawn_edit_can_be_taken_back(planned: Workflow, seed: int):
    at = planned
    for edit in drawn_edits(view(planned), Random(seed)):
        try:
            after = apply_edit(at, edit)
        except EditRefused:
            return
        back = edited(after, invert_edit(at, edit))
        assert content_hash(back) == content_hash(at)
        at = after


@given(st.sampled_from([PLAIN, CHECKED]), st.integers(0, 10**9))
@settings(max_examples=80, deadline=None)
def test_an_inserted_node_has_its_arguments_and_is_read(planned: Workflow, seed: int):
    step = drawn_edits(view(planned), Random(seed))
    new = [edit.planned for edit in step if isinstance(edit, InsertNode)]
    if not new:
        return
    after = edited(planned, step)
    (inserted,) = new
    readers = [name for name, read in data_dependencies(after).items() if inserted.id in read]
    assert readers or f"$nodes.{inserted.id}." in str(after.outputs)
    tool = world_of().snapshot.get(inserted.tool) if inserted.tool else None
    assert tool is not None
    required = tool.input_schema["required"]
    assert isinstance(required, list)
    assert not inserted.arguments or set(required) <= set(inserted.arguments)


def test_all_five_kinds_are_drawn_with_literals_references_and_selectors():
    kinds, values = Counter[str](), list[object]()
    for seed in range(400):
        for edit in drawn_edits(view(CHECKED), Random(seed)):
            kinds[edit.kind] += 1
            values += [edit.value] if isinstance(edit, EditParameter) else []
    assert set(kinds) == {"edit_parameter", "swap_tool", "insert_node", "remove_node", "reorder"}
    assert any(isinstance(value, str) and value.startswith("$nodes.") for value in values)
    assert any(isinstance(value, str) and value.startswith("$inputs.") for value in values)
    assert any(not isinstance(value, str | dict) for value in values)
    texts = workflow(
        node("n", "sums/add", {"a": 1, "b": 2}),
        node("t", "weather/current", {"city": "Oslo"}),
        outputs={"o": "$nodes.t.output#/temp_c"},
    )
    seen = view_of(texts, world=world_of(), outputs={"n": {"result": 3}})
    drawn = [edit for seed in range(300) for edit in drawn_edits(seen, Random(seed))]
    given = [edit.value for edit in drawn if isinstance(edit, EditParameter)]
    assert any(isinstance(value, dict) and is_selector(value) for value in given)


def test_a_place_inside_an_argument_is_edited_by_its_pointer():
    nested = takes(
        request={"type": "object", "properties": {"unit": {"enum": ["km", "mi"]}}},
    )
    tool = ScriptedTool("route", [{}], nested)
    planned = workflow(node("r", "s/route", {"request": {"unit": "m"}}), outputs={"o": "$nodes.r.output"})
    seen = view_of(planned, world=world_of(snapshot=snapshot_of(s=[tool])))
    drawn = {
        (edit.pointer, str(edit.value))
        for seed in range(300)
        for edit in drawn_edits(seen, Random(seed))
        if isinstance(edit, EditParameter)
    }
    assert {("/request/unit", "km"), ("/request/unit", "mi")} <= drawn


def test_the_faulty_node_is_chosen_more_often_than_not():
    nodes = Counter(
        edit.node
        for seed in range(400)
        for edit in drawn_edits(view(BROKEN), Random(seed))
        if isinstance(edit, SwapTool)
    )
    assert nodes["now"] > 2 * nodes["conv"] > 0


def test_no_guess_calls_what_may_change_something_for_good():
    effects = EffectTable({**FREE.effects, "tables": {"count_rows": Effect.READ, "*": Effect.WRITE}})
    for after in drawn_children(CHECKED, 400, effects):
        added = {n.tool for n in after.nodes} - {n.tool for n in CHECKED.nodes}
        assert not added & {ToolId("tables", "create_table"), ToolId("tables", "insert_row")}


def test_a_write_is_never_taken_out_or_swapped_away():
    planned = workflow(
        node("ins", "tables/insert_row", {"table": "t", "value": 1}),
        node("n", "tables/count_rows", {"table": "t"}, after=["ins"]),
        outputs={"n": "$nodes.n.output#/count"},
    )
    effects = EffectTable({**FREE.effects, "tables": {"count_rows": Effect.READ, "*": Effect.WRITE}})
    for after in drawn_children(planned, 300, effects):
        kept = after.node("ins")
        assert kept is not None
        assert kept.tool == ToolId("tables", "insert_row")


async def test_equal_generators_draw_equal_edits():
    record = Record(base_candidate(CHECKED), Evaluation("failed", (), Fitness(), None, None, {}, 0, 1.0))
    order = Order(1, "explore", parent=record, seed="s")
    offers = [await RandomProposer().propose(Asked(order, view(CHECKED), Random("s"))) for _ in range(2)]
    other = await RandomProposer().propose(Asked(order, view(CHECKED), Random("t")))
    assert offers[0] == offers[1] != other
    assert all(len(proposal.edits) >= 1 for proposal in offers[0].proposals)


OPEN: Arguments = {"type": "object", "properties": {"q": {"type": "string"}}}


class TestSoundness:
    def told(self, schema: Arguments, before: Arguments, after: Arguments) -> list[str]:
        snapshot = snapshot_of(s=[ScriptedTool("t", [{}], schema)])
        one, two = (
            workflow(node("n", "s/t", given), outputs={"o": "$nodes.n.output"}) for given in (before, after)
        )
        return [fault.message for fault in brought_faults(one, two, snapshot)]

    def test_an_argument_that_an_open_schema_does_not_declare_is_refused(self):
        assert self.told(OPEN, {"q": "x"}, {"q": "x", "strict_schema": False}) == [
            "'strict_schema' is no argument; arguments: q"
        ]

    def test_a_tool_that_welcomes_others_may_be_given_them(self):
        assert self.told({**OPEN, "additionalProperties": True}, {}, {"anything": 1}) == []

    def test_what_was_there_before_is_not_brought(self):
        assert self.told(OPEN, {"old": 1}, {"old": 2}) == []

    def test_a_new_static_fault_is_told_and_an_old_one_is_not(self):
        closed = takes(q={"type": "string"})
        assert self.told(closed, {}, {}) == []
        (message,) = self.told(closed, {"q": "x"}, {"q": [1]})
        assert "[1]" in message or "string" in message
