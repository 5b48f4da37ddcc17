"""What is made of a search besides its result: lineage, examples for training, guidance, the floor."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.evolution.building import base_candidate, build_candidate, edited
from server.evolution.candidate import Evaluation, Fitness, Record
from server.evolution.contrasts import contrasts
from server.evolution.guidance import Replanner
from server.evolution.lineage import lineage_json, lineage_mermaid
from server.evolution.options import SearchOptions, Switches
from server.evolution.plan_edits import edits_towards
from server.evolution.proposal import Proposal
from server.evolution.proposer import Asked, CrossingProposer, HintProposer
from server.evolution.strategy import Order
from server.planning.heuristic_floor import plan_heuristic_floor
from server.planning.view import View
from server.reports import CandidateRecord
from server.requests import Budget
from server.verification import Verdict
from skills_store.trace import Verification
from skills_store.workflow.check import check_workflow
from skills_store.workflow.edits import EditParameter, InsertNode
from skills_store.workflow.faults import UnknownTool
from skills_store.workflow.model import Node, Workflow
from tests.strategies import workflows
from tests.worlds import ALL, node, scene, view_of, weather_plan, weather_servers, workflow, world_of

pytestmark = pytest.mark.anyio

TASK, OSLO = "Tell the current temperature in Oslo in fahrenheit", {"city": "Oslo"}
RIGHT = "output.fahrenheit == `41`"
BASE = weather_plan()


def record(progress: float, *edits: EditParameter | InsertNode, verified: bool = False) -> Record:
    found = Fitness(verified=verified, outputs_produced=progress, executed=progress, rule_score=progress)
    said = Verdict("verified", (), (Verification(by="assertion", passed=True),)) if verified else None
    status = "verified" if verified else "failed"
    evaluation = Evaluation(status, (), found, said, None, {}, 0, 1.0)
    parent = base_candidate(BASE)
    return Record(build_candidate(parent, Proposal(edits, 0.1)) if edits else parent, evaluation)


def to(unit: str) -> EditParameter:
    return EditParameter(node="conv", pointer="/to_unit", value=unit)


def more(number: int) -> InsertNode:
    tool = BASE.nodes[0].tool
    return InsertNode(planned=Node(id=f"n{number}", tool=tool, arguments={"city": "Oslo"}), position=0)


class TestContrasts:
    def test_the_best_is_chosen_and_what_is_clearly_worse_rejected_each_structure_first(self):
        best = record(1.0, to("kelvin"), verified=True)
        near = record(0.97, to("celsius"))
        same = [record(0.6 - n / 100, to(f"u{n}")) for n in range(4)]
        other = record(0.1, more(1))
        example = contrasts([near, other, *same, best])
        assert example is not None
        assert example.chosen is best
        assert example.rejected == (same[0], other, same[1], same[2])

    def test_what_nobody_verified_is_no_example_unless_asked_for(self):
        records = [record(0.9, to("kelvin")), record(0.1)]
        assert contrasts(records) is None
        example = contrasts(records, verified_only=False)
        assert example is not None
        assert (example.chosen, example.rejected) == (records[0], (records[1],))
        assert contrasts([]) is None

    @given(st.lists(st.floats(0, 1), max_size=12), st.floats(0, 1), st.integers(0, 5))
    @settings(deadline=None)
    def test_the_bounds_hold(self, progress: list[float], gap: float, most: int):
        records = [record(p, to(f"u{n}")) for n, p in enumerate(progress)]
        example = contrasts([record(1.0, verified=True), *records], gap=gap, most=most)
        assert example is not None
        assert len(example.rejected) <= most
        bar = example.chosen.evaluation.fitness.progress - gap
        assert all(r.evaluation.fitness.progress <= bar for r in example.rejected)


def shown(name: str, parent: str | None, status: str = "failed", **more: object) -> CandidateRecord:
    fields = {"edits": (f'set "{name}" | <x>',), "score": 0.5, "status": status, "mode": "ladder", **more}
    return CandidateRecord.model_validate({"id": f"sha256:{name}", "parent": parent, **fields})


class TestLineage:
    FAULT = UnknownTool(message='no tool "x"\x1b[31m', tool=next(iter(ALL)).id)
    LINEAGE = (
        shown("aaaaaaaaaaaa", None, faults=(FAULT,), mode="base"),
        shown("bbbb", "sha256:aaaaaaaaaaaa", generation=2, mode="explore"),
        shown("cccc", "sha256:aaaaaaaaaaaa"),
        shown("dddd", "sha256:bbbb", "verified"),
    )

    def test_mermaid_draws_who_came_from_whom_and_what_led_to_the_best(self):
        text = lineage_mermaid(self.LINEAGE, "sha256:dddd")
        lines = text.splitlines()
        assert lines[0] == "flowchart TD"
        assert '  c0["aaaaaaaa<br/>base: failed, rules 0.50<br/>no tool #quot;x#quot;"]:::failed' in lines
        assert '  c1["bbbb<br/>explore 2: failed, rules 0.50"]:::failed' in lines
        assert [line.split("|")[0].strip() for line in lines if line.startswith("  c") and "|" in line] == [
            "c0 ==>",
            "c0 -->",
            "c1 ==>",
        ]
        assert "  style c3 stroke-width:4px" in lines
        assert "\x1b" not in text

    def test_no_edit_can_break_out_of_its_label(self):
        text = lineage_mermaid(self.LINEAGE, None)
        assert "set #quot;cccc#quot; #124; #lt;x#gt;" in text

    def test_json_has_candidates_edges_and_the_best(self):
        document = json.loads(lineage_json(self.LINEAGE, "sha256:dddd"))
        assert document["best"] == "sha256:dddd"
        assert [edge["to"] for edge in document["edges"]] == ["sha256:bbbb", "sha256:cccc", "sha256:dddd"]
        assert document["candidates"][1]["generation"] == 2

    def test_a_part_of_a_lineage_is_drawn_as_it_is(self):
        assert "==>" not in lineage_mermaid(self.LINEAGE[1:], "sha256:gone")
        assert lineage_mermaid((), None).startswith("flowchart TD")


def free(_: Node) -> bool:
    return True


class TestAnotherPlan:
    PLAN = workflow(
        node("now", "weather/forecast", {"city": "Oslo", "days": 1}),
        node("sum", "sums/add", {"a": "$nodes.now.output#/high_c", "b": 1}, after=["now"]),
        outputs={"result": "$nodes.sum.output#/result"},
    )

    def test_it_comes_as_edits_of_what_there_is(self):
        edits = edits_towards(BASE, self.PLAN, free)
        assert edits is not None
        after = edited(BASE, edits)
        assert [(n.id, str(n.tool), n.after) for n in after.nodes] == [
            ("now_2", "weather/forecast", ()),
            ("sum", "sums/add", ("now_2",)),
        ]
        assert after.nodes[1].arguments["a"] == "$nodes.now_2.output#/high_c"
        assert after.outputs == {"fahrenheit": "$nodes.sum.output#/result"}

    def test_a_node_with_a_check_and_one_that_may_not_go_stay(self):
        checked = weather_plan()
        held = checked.nodes[1].model_copy(update={"expect": ("output.converted_value > `0`",)})
        edits = edits_towards(checked.replacing(held), self.PLAN, free)
        assert edits is not None
        assert [n.id for n in edited(checked.replacing(held), edits).nodes][:2] == ["now", "conv"]
        kept = edits_towards(BASE, self.PLAN, lambda node: node.id != "now")
        assert kept is not None
        assert [n.id for n in edited(BASE, kept).nodes] == ["now", "now_2", "sum"]

    @given(workflows(), workflows())
    @settings(deadline=None, max_examples=80)
    def test_no_plan_whatever_takes_a_check_or_an_output_away(self, before: Workflow, plan: Workflow):
        edits = edits_towards(before, plan, free)
        if edits is None:
            return
        after = edited(before, edits)
        assert after.outputs.keys() == before.outputs.keys()
        assert (after.expect, after.inputs) == (before.expect, before.inputs)
        assert {n.expect for n in before.nodes if n.expect} <= {n.expect for n in after.nodes}


def asked(view: View, *others: Record, mode: str = "meta") -> Asked:
    parent = Record(
        base_candidate(view.workflow), Evaluation("failed", view.faults, Fitness(), None, None, {}, 0, 1.0)
    )
    order = Order(0, mode, parent=parent, others=others)  # pyright: ignore[reportArgumentType]
    return Asked(order, view, Random(0))


async def test_guidance_without_a_model_is_the_deterministic_planners():
    stuck = workflow(
        node("x", "sums/add", {"a": 1, "b": 2}),
        outputs={"fahrenheit": "$nodes.x.output#/result"},
        inputs=("city",),
    )
    offer = await Replanner().propose(asked(view_of(stuck, world=world_of(TASK, OSLO))))
    assert offer.proposals
    tools = {str(n.tool) for p in offer.proposals for n in edited(stuck, p.edits).nodes}
    assert "weather/current" in tools
    silent = await Replanner().propose(asked(view_of(stuck)))
    assert silent.problems == ("without the task's words there is nothing to plan",)


async def test_a_stagnant_search_is_shown_another_plan_and_not_at_its_beginning():
    stuck = workflow(
        node("x", "sums/add", {"a": 1, "b": 2}),
        outputs={"fahrenheit": "$nodes.x.output#/result"},
        inputs=("city",),
    )
    options = SearchOptions(strategy="population", ladder_first=False, generations=60)
    servers = weather_servers()
    async with scene(servers, "output.fahrenheit == `-1`", plan=stuck, task=TASK, inputs=OSLO) as it:
        result = await it.repair(stuck, Budget(candidates=120), options=options)
    guided = [r for r in result.records if r.made.by == "planner"]
    assert guided
    assert min(r.made.generation for r in guided) > options.stagnation_generations
    assert all(r.candidate.parent is not None and r.candidate.edits for r in guided)


async def test_crossover_takes_over_what_can_be_made():
    view = view_of(BASE, world=world_of(TASK, OSLO))
    other = record(0.9, to("kelvin"), more(1))
    (proposal,) = (await CrossingProposer().propose(asked(view, other, mode="cross"))).proposals
    assert proposal.edits == other.candidate.edits
    none = await CrossingProposer().propose(asked(view, record(0.5), mode="cross"))
    assert none.problems == ("none of the other's edits can be made",)


async def test_experience_is_asked_before_anyone_else():
    class Always:
        def edits(self, view: View) -> list[Proposal]:
            return [Proposal((to("fahrenheit"),), 0.1)] if view.workflow.node("conv") else []

    wrong = weather_plan(
        conv={"value": "$nodes.now.output#/temp_c", "from_unit": "celsius", "to_unit": "kelvin"}
    )
    options = SearchOptions(
        strategy="population", ladder_first=False, lowest_intensity=0.0, highest_intensity=0.0
    )
    async with scene(weather_servers(), RIGHT, plan=wrong, task=TASK, inputs=OSLO) as it:
        result = await it.repair(wrong, Budget(candidates=20), options=options, hints=Always())
    assert result.best.evaluation.status == "verified"
    assert "experience" in {r.made.by for r in result.records}
    offer = await HintProposer(Always()).propose(asked(view_of(wrong)))
    assert len(offer.proposals) == 1


class TestFloor:
    def test_it_is_the_likest_tools_in_a_row_without_arguments(self):
        plan = plan_heuristic_floor(world_of("Convert the current temperature of a city"), ("fahrenheit",))
        assert plan is not None
        assert [str(n.tool) for n in plan.nodes][:2] == ["units/convert_temperature", "weather/current"]
        assert len(plan.nodes) == 3
        assert [n.after for n in plan.nodes] == [(), ("t1",), ("t2",)]
        assert all(n.arguments == {} for n in plan.nodes)
        assert plan.outputs == {"fahrenheit": "$nodes.t3.output"}
        assert {f.kind for f in check_workflow(plan, ALL)} == {"missing_argument"}

    def test_a_server_the_task_is_said_to_need_goes_first(self):
        plan = plan_heuristic_floor(world_of("Convert the temperature"), servers=("tables",), max_steps=1)
        assert plan is not None
        assert [n.tool.server for n in plan.nodes if n.tool] == ["tables"]

    @pytest.mark.parametrize(("task", "most"), [("zzz qqq", 3), ("Convert the temperature", 0)])
    def test_there_is_none_where_nothing_is_shared_or_wanted(self, task: str, most: int):
        assert plan_heuristic_floor(world_of(task), max_steps=most) is None


class TestFitness:
    async def test_taking_a_failing_node_out_gains_nothing(self):
        """The share of executed nodes is of as many as the base's outputs need."""
        failing = workflow(
            node("now", "weather/current", {"city": "Oslo"}),
            node("bad", "weather/forecast", {"city": "Oslo", "days": "many"}),
            outputs={"o": "$nodes.bad.output#/days", "p": "$nodes.now.output#/temp_c"},
        )
        without = workflow(
            node("now", "weather/current", {"city": "Oslo"}),
            outputs={"o": "$nodes.now.output#/station", "p": "$nodes.now.output#/temp_c"},
        )
        async with scene(weather_servers(), "output.o == `3`", plan=failing) as it:
            base = await it.evaluator.evaluate(base_candidate(failing))
            gone = await it.evaluator.evaluate(replace(base_candidate(without), parent="sha256:x"))
        assert base.fitness.executed == 0.5
        assert gone.fitness.executed == 0.5

    async def test_a_judges_score_is_reported_and_labelled_and_orders_what_no_check_tells_apart(self):
        class Judge:
            async def score(self, workflow: Workflow, evaluation: Evaluation) -> float | None:
                assert evaluation.executed_ok
                return 0.75 if workflow.nodes[1].arguments["to_unit"] == "fahrenheit" else None

        async with scene(weather_servers(), plan=BASE, task=TASK, inputs=OSLO) as it:
            it.evaluator.judge = Judge()
            judged = await it.evaluator.evaluate(base_candidate(BASE))
        assert (judged.score, judged.scored_by, judged.fitness.judged) == (0.75, "judge", 0.75)
        infeasible = replace(judged, status="static_faults")
        assert (infeasible.score, infeasible.scored_by) == (0.0, "judge")
        assert (replace(judged, judge=None).scored_by, judged.verified) == ("rules", False)

    async def test_the_ladder_without_evidence_has_nothing_to_answer(self):
        broken = weather_plan(now={"town": "$inputs.city"})
        blind = SearchOptions(strategy="ladder", switches=Switches(evidence=False))
        async with scene(weather_servers(), RIGHT, plan=broken, task=TASK, inputs=OSLO) as it:
            result = await it.repair(broken, options=blind)
        assert (len(result.records), result.stopped) == (1, None)

    async def test_progress_tells_generation_intensity_and_what_is_left(self):
        told: list[object] = []
        broken = weather_plan(now={"town": "$inputs.city"})
        options = SearchOptions(strategy="population", ladder_share=0.5)
        never = "output.fahrenheit == `-1`"
        async with scene(weather_servers(), never, plan=broken, task=TASK, inputs=OSLO) as it:
            await it.repair(broken, Budget(candidates=40), options=options, listener=told.append)
        last = told[-1]
        assert getattr(last, "generation", 0) >= 1
        assert 0 < getattr(last, "intensity", 0) <= 0.7
        assert getattr(last, "faults_left", 0) == 1
        assert getattr(told[0], "generation", 0) is None
