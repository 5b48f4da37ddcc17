"""Nodes put in, taken out and put in order: handles, needless steps, waits, cycles."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.effects import Effect, EffectTable
from catalog.testing import ScriptedTool
from catalog.tools import ToolId
from server.evolution.order_faults import phase, propose_order, propose_waits
from server.evolution.proposal import Proposal, cheapest, cheapest_combinations
from server.evolution.propose import propose
from server.evolution.removals import propose_bypass, propose_removal
from server.planning.slots import Source
from server.planning.view import View
from skills_store.workflow.check import check_workflow
from skills_store.workflow.edits import EditParameter, RemoveNode, Reorder, apply_edit, render_edit
from skills_store.workflow.faults import ToolError
from skills_store.workflow.graph import waves
from skills_store.workflow.model import Node, Workflow
from tests.worlds import TEXT, gives, node, snapshot_of, takes, view_of, weather_plan, workflow, world_of

WRITES = EffectTable({"tables": {"count_rows": Effect.READ, "*": Effect.WRITE}, "sums": {"*": Effect.PURE}})


def shown(proposal: Proposal) -> list[str]:
    return [render_edit(edit) for edit in proposal.edits]


def applied(planned: Workflow, proposal: Proposal) -> Workflow:
    for edit in proposal.edits:
        planned = apply_edit(planned, edit)
    return planned


def at(view: View, node_id: str) -> Node:
    found = view.workflow.node(node_id)
    assert found is not None
    return found


class TestRemoval:
    def test_a_node_that_is_read_is_not_removed(self):
        view = view_of(weather_plan())
        assert list(propose_removal(view, at(view, "now"), cost=0.3)) == []

    def test_a_needless_step_is_taken_out_and_its_readers_read_what_it_read(self):
        planned = workflow(
            node("sum", "sums/add", {"a": 1, "b": 2}),
            node("again", "sums/multiply", {"a": "$nodes.sum.output#/result", "b": 1}),
            outputs={"o": "$nodes.again.output#/result"},
        )
        view = view_of(planned)
        best = cheapest(propose_bypass(view, at(view, "again"), cost=1.0), 1)[0]
        assert best.edits == (
            RemoveNode(
                node="again",
                rewired={"$nodes.again.output#/result": "$nodes.sum.output#/result"},
                because="'again' adds nothing between $nodes.sum.output#/result and its readers",
            ),
        )
        assert applied(planned, best).outputs == {"o": "$nodes.sum.output#/result"}

    @pytest.mark.parametrize(
        "arguments", [{"table": "t"}, {"table": "t", "value": 1}], ids=["argument fault", "failed call"]
    )
    def test_a_failing_write_that_nobody_reads_is_not_pruned_as_lightly_as_a_free_node(
        self, arguments: dict[str, Any]
    ):
        def cost(effects: EffectTable) -> float:
            planned = workflow(
                node("ins", "tables/insert_row", arguments),
                node("sum", "sums/add", {"a": 1, "b": 2}),
                outputs={"o": "$nodes.sum.output#/result"},
            )
            world = world_of(effects=effects)
            faults = check_workflow(planned, world.snapshot) or [
                ToolError(message="boom", node="ins", tool=ToolId("tables", "insert_row"))
            ]
            removal = RemoveNode(node="ins", because="nothing reads 'ins'")
            return next(
                p.cost for p in propose(view_of(planned, *faults, world=world)) if p.edits == (removal,)
            )

        free = EffectTable({"tables": {"*": Effect.READ}, "sums": {"*": Effect.PURE}})
        assert cost(WRITES) >= cost(free) + 1.0


class TestOrder:
    def scattered(self, **after: list[str]) -> Workflow:
        """Return a plan that inserts before it creates, unless told what comes after what."""
        return workflow(
            node("ins", "tables/insert_row", {"table": "t", "value": 1}, after=after.get("ins", [])),
            node("make", "tables/create_table", {"table": "t"}, after=after.get("make", [])),
            node("n", "tables/count_rows", {"table": "t"}, after=after.get("n", [])),
            outputs={"o": "$nodes.n.output#/count"},
        )

    @pytest.mark.parametrize(
        "after",
        [{}, {"make": ["ins"], "n": ["make"]}, {"ins": ["n"], "n": ["make"]}, {"make": ["n"], "n": ["ins"]}],
        ids=["none", "reversed", "late", "last first"],
    )
    def test_the_order_that_the_verbs_say_is_restored(self, after: dict[str, list[str]]):
        planned = self.scattered(**after)
        view = view_of(planned, world=world_of(effects=WRITES))
        (proposal,) = propose_order(view, cost=0.6)
        assert waves(applied(planned, proposal)) == [["make"], ["ins"], ["n"]]

    def test_a_right_order_is_left_alone(self):
        view = view_of(self.scattered(ins=["make"], n=["ins"]), world=world_of(effects=WRITES))
        assert list(propose_order(view, cost=0.6)) == []

    def test_servers_without_state_have_no_order(self):
        assert list(propose_order(view_of(self.scattered()), cost=0.6)) == []

    def test_a_failing_node_waits_first_for_the_node_its_error_speaks_of(self):
        planned = workflow(
            node("ins", "tables/insert_row", {"table": "people", "value": 1}),
            node("other", "tables/create_table", {"table": "places"}),
            node("make", "tables/create_table", {"table": "people"}),
            outputs={"o": "$nodes.ins.output"},
        )
        view = view_of(planned, world=world_of(effects=WRITES))
        best = cheapest(propose_waits(view, at(view, "ins"), "no such table: people"), 9)[0]
        assert best.edits == (
            Reorder(node="ins", after=("make",), because="'ins' fails until 'make' is done"),
        )

    def test_a_wait_that_would_close_a_cycle_is_turned_round(self):
        planned = self.scattered(make=["ins"])
        view = view_of(planned, world=world_of(effects=WRITES))
        best = cheapest(propose_waits(view, at(view, "ins"), "no such table"), 9)[0]
        assert waves(applied(planned, best))[0] == ["make", "n"]

    @pytest.mark.parametrize(
        ("arguments", "expected"),
        [
            ({"sql": "CREATE TABLE t (x)"}, 1),
            ({"sql": "insert into t values (1)"}, 2),
            ({"sql": " SELECT * FROM t"}, 3),
            ({"sql": "DROP TABLE t"}, 4),
        ],
    )
    def test_sql_says_when_its_call_belongs(self, arguments: dict[str, str], expected: int):
        assert phase(Node(id="n", tool=ToolId("db", "execute"), arguments=dict(arguments))) == expected

    def test_a_cycle_is_opened_at_a_wait(self):
        planned = workflow(
            node("now", "weather/current", {"city": "Oslo"}, after=["ahead"]),
            node("ahead", "weather/forecast", {"city": "Oslo", "days": 1}, after=["now"]),
            outputs={"o": "$nodes.now.output", "p": "$nodes.ahead.output"},
        )
        best = propose(view_of(planned, *check_workflow(planned, world_of().snapshot)))[0]
        assert best.edits == (Reorder(node="now", after=(), because="it closes a cycle"),)
        assert check_workflow(applied(planned, best), world_of().snapshot) == []

    def test_a_cycle_of_data_is_opened_by_reading_from_elsewhere(self):
        planned = workflow(
            node("one", "sums/add", {"a": "$nodes.two.output#/result", "b": "$inputs.apples"}),
            node("two", "sums/add", {"a": "$nodes.one.output#/result", "b": "$inputs.apples"}),
            outputs={"o": "$nodes.two.output#/result"},
            inputs=("apples", "pears"),
        )
        world = world_of(inputs={"apples": 1, "pears": 2})
        best = propose(view_of(planned, *check_workflow(planned, world.snapshot), world=world))[0]
        assert check_workflow(applied(planned, best), world.snapshot) == []
        assert shown(best) == ["one: a = $inputs.pears"]


def test_a_handle_that_nobody_opened_is_opened_for_all_who_hold_it():
    tools = (
        ScriptedTool("connect", [{"handle": "h1"}], takes(database=TEXT), gives(handle=TEXT)),
        ScriptedTool("query", [{}], takes(handle=TEXT, sql=TEXT)),
    )
    planned = workflow(
        node("a", "s/query", {"handle": "conn", "sql": "select 1"}),
        node("b", "s/query", {"handle": "conn", "sql": "select 2"}),
        outputs={"o": "$nodes.a.output", "p": "$nodes.b.output"},
        inputs=("database",),
    )
    world = world_of("Ask the database", {"database": "shop.db"}, snapshot_of(s=tools))
    fault = ToolError(message="unknown connection conn", node="a", tool=ToolId("s", "query"))
    opening = next(p for p in propose(view_of(planned, fault, world=world)) if len(p.edits) == 3)
    assert shown(opening) == [
        "insert opened_1: s/connect(database=$inputs.database)",
        "a: handle = $nodes.opened_1.output#/handle",
        "b: handle = $nodes.opened_1.output#/handle",
    ]


class TestProposals:
    def test_the_cheapest_are_kept_equal_edits_once_and_ties_in_order_of_appearance(self):
        def edit(value: int, because: str = "") -> EditParameter:
            return EditParameter(node="n", pointer="/a", value=value, because=because)

        given = [
            Proposal((edit(1),), 2.0),
            Proposal((edit(2),), 1.0),
            Proposal((edit(1, "another reason"),), 0.5),
            Proposal((edit(3),), 1.0),
            Proposal((edit(4),), 3.0),
        ]
        assert cheapest(given, 3) == [given[2], given[1], given[3]]

    def test_combinations_come_in_order_of_total_cost_each_once(self):
        choices = [
            [Source(f"{slot}{i}", cost, "") for i, cost in enumerate((0.1, 0.4, 1.1))] for slot in "ab"
        ]
        found = list(cheapest_combinations(choices, 100))
        costs = [cost for _, cost in found]
        assert costs == sorted(costs)
        assert len({tuple(s.value for s in picked) for picked, _ in found}) == 9
        assert costs[:3] == pytest.approx([0.2, 0.5, 0.5])

    def test_a_slot_without_any_source_has_no_combination(self):
        assert list(cheapest_combinations([[Source("a", 0.1, "")], []], 10)) == []
