"""Each defect of EvoFlux's public code, and the test that would catch it here.

| # | defect | caught by |
|---|--------|-----------|
| 1 | the plan prompt says `params`, the parser reads `args` | `test_1_…` below: another name for arguments is a fault |
| 2 | the gain is divided by about nothing while the best score is 0 | `test_2_…` below; `test_growth::test_one_score_moves_growth`, `…stay_within_their_bounds` |
| 3 | guidance that starts anew always fires at the first iteration | `test_3_…` below; `test_growth::TestGuidance`, `test_population::…guided_and_not_at_its_beginning` |
| 4 | a validator nobody waits for; reordering wipes its edges | `test_4_…` below; `test_propose::test_no_proposal_touches_a_check_…` |
| 5 | removal leaves dangling references, a swap keeps foreign parameters, an added call cannot validate | `test_5_…` below; `test_propose::test_proposals_are_bounded_ordered_complete_…`; `test_random_edits::test_an_inserted_node_…` |
| 6 | a random parameter edit writes policy flags into tool arguments | `test_6_…` below; `test_random_edits::TestSoundness`, `test_model_edits::…policy_flag…` |
| 7 | arguments are not validated before execution | `test_7_…` below; `test_run::test_what_is_wrong_with_arguments_is_seen_before_the_call` |
| 8 | references only as whole strings at the top level | `test_8_…` below; `test_references::test_a_value_resolves` |
| 9 | unknown names are mapped onto missing ones by position, silently | `test_9_…` below; `test_argument_faults::test_a_name_without_any_likeness_…` |
| 10 | a deep search finds any key of that name anywhere | `test_10_…` below; `test_run::test_a_dangling_pointer_names_the_keys_that_are_there` |
| 11 | structured content and output schemas are ignored | `test_11_…` below |
| 12 | the scorer that needs no model is broken | `test_12_…` below; `test_search::TestEvaluation::test_what_became_of_a_candidate` |
| 13 | perturbations are injected into real searches | `test_13_…` below; `test_search::TestDeterminism` |
| 14 | one failing node discards finished waves; each retry repeats side effects | `test_14_…` below; `test_search::TestEffects`; `test_write_once`; `test_search_record::…write…` |
| 15 | infeasible children leave no record | `test_15_…` below; `test_search_record::test_every_candidate_has_its_line_…`; `test_search::TestTidying::test_what_was_tried_in_vain_is_told_too_…` |
| 16 | the edit prompt hides current parameters and schemas | `test_16_…` below; `test_model_edits::TestPrompt::test_it_shows_arguments_…` |
| 17 | concurrency is bounded by the size of a wave only | `test_17_…` below; `test_run::test_no_more_calls_are_on_their_way_…` |
"""  # noqa: E501

from __future__ import annotations

import math
from typing import Any

import anyio
import pytest

from catalog.effects import Effect, EffectTable
from catalog.schema import is_valid
from catalog.testing import Reply, ScriptedServer, ScriptedTool
from catalog.tools import ToolId
from server.evolution.options import SearchOptions
from server.evolution.propose import propose
from server.evolution.tool_faults import remapped
from server.execution.run import RunOptions
from server.planning.view import argument_schema
from server.requests import Budget
from skills_store.errors import MalformedWorkflow
from skills_store.workflow.check import check_workflow
from skills_store.workflow.edits import EditParameter, EditRefused, RemoveNode, Reorder, apply_edit
from skills_store.workflow.graph import ancestors
from skills_store.workflow.model import parse_workflow
from tests.worlds import (
    NUMBER,
    SUMS,
    Arguments,
    as_tool,
    gives,
    node,
    scene,
    tables,
    takes,
    view_of,
    weather_plan,
    weather_servers,
    workflow,
    world_of,
)

pytestmark = pytest.mark.anyio

TASK, OSLO = "Tell the current temperature in Oslo in fahrenheit", {"city": "Oslo"}
RIGHT, NEVER = "output.fahrenheit == `41`", "output.fahrenheit == `-1`"
BROKEN = weather_plan(now={"town": "$inputs.city"})


@pytest.mark.parametrize("other", ["args", "params", "parameters", "arguements"])
def test_1_arguments_under_another_name_are_a_fault_and_not_lost(other: str):
    document = weather_plan().to_json()
    nodes: Any = document["nodes"]
    nodes[0][other] = nodes[0].pop("arguments")
    with pytest.raises(MalformedWorkflow) as refused:
        parse_workflow(document)
    assert [(f.pointer, f.node) for f in refused.value.faults] == [(f"/nodes/0/{other}", "now")]


BRED = SearchOptions(strategy="population", ladder_first=False, generations=40)
BOTH = pytest.mark.parametrize("options", [SearchOptions(), BRED], ids=["ladder", "population"])
"""A defect of the search is looked for in both."""


@BOTH
async def test_2_a_search_from_nothing_goes_on_as_from_any_other(options: SearchOptions):
    broken = workflow(
        node("conv", "units/temperature_convert", {"from_unit": "Celsius"}),
        outputs={"fahrenheit": "$nodes.gone.output#/x"},
        inputs=("city",),
    )
    async with scene(weather_servers(), NEVER, plan=broken, task=TASK, inputs=OSLO) as it:
        result = await it.repair(broken, Budget(candidates=30), options=options)
    assert result.base.evaluation.fitness.checks_passed == 0
    assert len(result.records) == 30
    assert all(0 <= r.made.growth <= 1 and 0 <= r.made.intensity <= 0.7 for r in result.records)
    assert all(math.isfinite(r.candidate.cost) and math.isfinite(r.evaluation.unmet) for r in result.records)
    assert len({r.candidate.last[0].kind for r in result.records[1:]}) > 1


@BOTH
async def test_3_the_first_candidates_are_edits_of_the_base_and_not_a_new_plan(options: SearchOptions):
    async with scene(weather_servers(), NEVER, plan=BROKEN, task=TASK, inputs=OSLO) as it:
        result = await it.repair(BROKEN, Budget(candidates=8), options=options)
    assert not [r for r in result.records if r.made.mode == "meta"]
    assert {r.candidate.parent for r in result.records[1:3]} == {result.base.candidate.id}
    for record in result.records[1:]:
        replayed = BROKEN
        for edit in record.candidate.edits:
            replayed = apply_edit(replayed, edit)
        assert replayed == record.candidate.workflow


def test_4_a_check_cannot_be_unhooked_and_an_order_keeps_the_data():
    checked = workflow(
        node("now", "weather/current", {"city": "Oslo"}, expect=["output.temp_c > `0`"]),
        node("conv", "units/convert_temperature", {"value": "$nodes.now.output#/temp_c"}),
        outputs={"o": "$nodes.conv.output"},
    )
    with pytest.raises(EditRefused, match="carries a check"):
        apply_edit(checked, RemoveNode(node="now", rewired={"$nodes.now.output#/temp_c": "$inputs.x"}))
    reordered = apply_edit(checked, Reorder(node="conv", after=()))
    assert ancestors(reordered, "conv") == {"now"}
    assert reordered.nodes[0].expect == checked.nodes[0].expect


def test_5_a_removal_dangles_nothing_and_a_swap_brings_only_what_the_new_tool_takes():
    with pytest.raises(EditRefused, match="nothing stands in for it"):
        apply_edit(weather_plan(), RemoveNode(node="now"))
    foreign = {"value": 3, "from_unit": "celsius", "retries": 2}
    assert remapped(foreign, as_tool("sums", SUMS[0])).keys() <= {"a", "b"}


@BOTH
async def test_6_no_candidate_is_given_an_argument_that_its_tool_does_not_have(options: SearchOptions):
    async with scene(weather_servers(), NEVER, plan=BROKEN, task=TASK, inputs=OSLO) as it:
        result = await it.repair(BROKEN, Budget(candidates=60), options=options)
        world = it.evaluator.world
    for record in result.records[1:]:
        for edit in record.candidate.last:
            if isinstance(edit, EditParameter) and edit.node and not edit.remove and not edit.mapped:
                tool = next((n.tool for n in record.candidate.workflow.nodes if n.id == edit.node), None)
                if tool is None:
                    continue  # a later edit of the same child took the node out
                assert argument_schema(world.snapshot.get(tool), edit.pointer.removeprefix("/"))


@BOTH
async def test_7_a_call_that_its_schema_refuses_is_not_made(options: SearchOptions):
    servers = weather_servers()
    async with scene(servers, NEVER, plan=BROKEN, task=TASK, inputs=OSLO) as it:
        await it.repair(BROKEN, Budget(candidates=60), options=options)
        for tool in it.evaluator.world.snapshot:
            made = [arguments for name, arguments in it.calls(tool.id.server) if name == tool.id.tool]
            assert all(is_valid(tool.input_schema, arguments) for arguments in made)


async def test_8_references_deep_inside_a_value_are_read_and_repaired():
    total = ScriptedTool(
        "total",
        lambda a: {"result": sum(a["request"]["numbers"])},
        takes(request={"type": "object"}),
        gives(result=NUMBER),
    )
    reads = {"numbers": ["$nodes.one.output#/reslt", 10]}
    one = ScriptedTool("one", [{"result": 1}], takes(), gives(result=NUMBER))
    broken = workflow(
        node("one", "s/one"),
        node("all", "s/total", {"request": reads}),
        outputs={"total": "$nodes.all.output#/result"},
    )
    async with scene({"s": ScriptedServer([one, total])}, "output.total == `11`", plan=broken) as it:
        result = await it.repair(broken)
    assert result.best.evaluation.status == "verified"
    assert result.best.candidate.workflow.nodes[1].arguments == {
        "request": {"numbers": ["$nodes.one.output#/result", 10]}
    }


async def test_9_a_renamed_argument_is_an_edit_that_says_so():
    async with scene(weather_servers(), RIGHT, plan=BROKEN, task=TASK, inputs=OSLO) as it:
        result = await it.repair(BROKEN)
    (edit,) = result.best.candidate.edits
    assert isinstance(edit, EditParameter)
    assert (edit.renamed_from, edit.pointer) == ("/town", "/city")
    assert edit.because == "weather/current has no argument 'town'; 'city' means the same"


async def test_10_a_key_of_the_same_name_elsewhere_is_a_fault_first_and_then_a_visible_edit():
    deep = ScriptedTool("deep", [{"outer": {"answer": 42}}], takes())
    broken = workflow(node("n", "s/deep"), outputs={"o": "$nodes.n.output#/answer"})
    async with scene({"s": ScriptedServer([deep])}, "output.o == `42`", plan=broken) as it:
        result = await it.repair(broken)
    assert [fault.kind for fault in result.base.evaluation.faults] == ["dangling_reference"]
    assert result.base.evaluation.verdict is not None
    assert not result.base.evaluation.verdict.is_verified
    (edit,) = result.best.candidate.edits
    assert isinstance(edit, EditParameter)
    assert edit.value == "$nodes.n.output#/outer/answer"


async def test_11_structured_content_is_the_output_and_must_fit_its_schema():
    def respond(arguments: Arguments) -> Reply:
        structured: Any = {"total": 7} if arguments["fit"] else {"total": "seven"}
        return Reply(structured, content=[{"type": "text", "text": "about seven"}])

    tool = ScriptedTool("count", respond, takes(fit={"type": "boolean"}), gives(total=NUMBER))
    for fit, kinds in ((True, []), (False, ["output_schema_mismatch"])):
        planned = workflow(node("n", "s/count", {"fit": fit}), outputs={"o": "$nodes.n.output#/total"})
        async with scene({"s": ScriptedServer([tool])}, "output.o == `7`", plan=planned) as it:
            result = await it.repair(planned, Budget(candidates=1))
        assert [fault.kind for fault in result.base.evaluation.faults] == kinds
        assert result.base.evaluation.fitness.verified is fit


async def test_12_the_score_needs_no_model_and_rises_with_every_mended_fault():
    worse = weather_plan(
        now={"town": "$inputs.city"},
        conv={"value": "$nodes.now.output#/temperature", "from_unit": "celsius", "to_unit": "fahrenheit"},
    )
    scores: list[float] = []
    for planned in (worse, BROKEN, weather_plan()):
        async with scene(weather_servers(), RIGHT, plan=planned, inputs=OSLO) as it:
            result = await it.repair(planned, Budget(candidates=1))
        scores.append(result.base.evaluation.fitness.rule_score)
    assert scores == sorted(scores)
    assert scores[-1] == 1.0
    assert scores[0] < scores[1] < scores[2]


@BOTH
async def test_13_nothing_is_made_to_fail_on_purpose(options: SearchOptions):
    servers = weather_servers()
    async with scene(servers, NEVER, plan=BROKEN, task=TASK, inputs=OSLO) as it:
        result = await it.repair(BROKEN, Budget(candidates=60), options=options)
    faults = [fault for record in result.records for fault in record.evaluation.faults]
    assert not [fault for fault in faults if fault.evidence != "workflow"]
    assert not [call for server in servers.values() for call in server.log.calls if call.cancelled]


async def test_14_what_is_finished_is_kept_and_no_side_effect_happens_again():
    effects = EffectTable(
        {"tables": {"count_rows": Effect.READ, "*": Effect.WRITE}, "weather": {"*": Effect.PURE}},
        allow={"tables": ("*",)},
    )
    broken = workflow(
        node("make", "tables/create_table", {"table": "t"}),
        node("now", "weather/current", {"city": "Osloo"}),
        node(
            "ins", "tables/insert_row", {"table": "t", "value": "$nodes.now.output#/temp_c"}, after=["make"]
        ),
        outputs={"done": "$nodes.ins.output#/inserted"},
        inputs=("city",),
    )
    servers = {**weather_servers(), "tables": ScriptedServer(tables())}
    async with scene(
        servers, "output.done == `1`", plan=broken, task=TASK, inputs=OSLO, effects=effects
    ) as it:
        result = await it.repair(broken)
    assert result.base.evaluation.outputs == {"make": {"created": "t"}}
    assert result.best.evaluation.status == "verified"
    assert it.calls("tables") == [
        ("create_table", {"table": "t"}),
        ("insert_row", {"table": "t", "value": 5.0}),
    ]


@BOTH
async def test_15_every_candidate_leaves_a_record_with_its_faults(options: SearchOptions):
    async with scene(weather_servers(), NEVER, plan=BROKEN, task=TASK, inputs=OSLO) as it:
        result = await it.repair(BROKEN, Budget(candidates=60), options=options)
    known = {record.candidate.id for record in result.records}
    infeasible = [r for r in result.records if r.evaluation.status == "static_faults"]
    assert len(infeasible) > 1
    assert all(record.evaluation.faults for record in result.records)
    assert {record.candidate.parent for record in result.records[1:]} <= known


def test_16_a_proposer_sees_the_arguments_there_are_and_the_schemas_they_must_fit():
    planned = weather_plan(conv={"value": "$nodes.now.output#/temp_c", "from_unit": "kelvn", "to_unit": "x"})
    world = world_of(TASK, OSLO)
    view = view_of(planned, *check_workflow(planned, world.snapshot), world=world)
    conv = view.workflow.node("conv")
    assert conv is not None
    assert conv.arguments["from_unit"] == "kelvn"
    assert argument_schema(view.tool(conv), "from_unit")["enum"] == ["celsius", "fahrenheit", "kelvin"]
    assert [e.value for e in propose(view)[0].edits if isinstance(e, EditParameter)] == ["kelvin"]


@pytest.mark.parametrize("concurrency", [1, 4])
async def test_17_a_wide_wave_does_not_open_the_floodgates(concurrency: int):
    running, most = 0, 0

    async def respond(arguments: Arguments) -> Any:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        running -= 1
        return {"result": arguments["n"]}

    tool = ScriptedTool("slow", respond, takes(n=NUMBER))
    wide = workflow(
        *(node(f"n{i}", "s/slow", {"n": i}) for i in range(40)), outputs={"o": "$nodes.n39.output#/result"}
    )
    async with scene(
        {"s": ScriptedServer([tool])},
        "output.o == `39`",
        plan=wide,
        options=RunOptions(concurrency=concurrency),
    ) as it:
        result = await it.repair(wide)
    assert result.best.evaluation.status == "verified"
    assert result.best.candidate.workflow.nodes[0].tool == ToolId("s", "slow")
    assert most == concurrency
