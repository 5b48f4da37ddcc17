"""Gathering evidence: replays first, then one input at a time, and what the world did left out."""

from __future__ import annotations

import anyio
import pytest

from catalog.effects import Effect
from catalog.testing import ScriptedServer, ScriptedTool
from catalog.tools import ToolId
from server.bank.admission.proving import replayer
from server.curation.gathering import Candidate, gather_evidence
from server.requests import RepairRequest

pytestmark = pytest.mark.anyio

NUMBER = {"type": "number"}
PAIR = {"type": "object", "properties": {"a": NUMBER, "b": NUMBER}, "required": ["a", "b"]}


@pytest.fixture
def adding(node, document):
    return document(
        node("n", "s/add", {"a": "$inputs.a", "b": "$inputs.b"}),
        outputs={"sum": "$nodes.n.output#/sum"},
        inputs={"a": NUMBER, "b": NUMBER},
    )


def add(arguments):
    return {"sum": arguments["a"] + arguments["b"]}


async def gathered(desk, document, inputs, **more):
    """Return the evidence on a skill as it was compiled, before it was judged."""
    report = await desk.bank.repair(document, RepairRequest(inputs=inputs, save="kept"))
    assert report.skill == "kept", report.skill_reason
    head = desk.store.head("kept")
    skill = head.model_copy(update={"state": "proposed", "tests": head.tests[:1]})
    candidate = Candidate(skill=skill, learning="auto", **more)
    return await gather_evidence(candidate, replayer(desk.context.known(), desk.context, skill))


def offering(*tools):
    return {"s": ScriptedServer(list(tools))}


PURE = {"s": {"*": Effect.PURE}}


async def test_each_input_is_varied_alone_until_all_have_moved_an_output(open_desk, adding):
    async with open_desk(offering(ScriptedTool("add", add, PAIR)), effects=PURE) as desk:
        found = await gathered(desk, adding, {"a": 1, "b": 2})
    assert [run.changed for run in found.evidence.varied] == [("a",), ("b",)]
    assert all(run.is_good and run.outputs_changed for run in found.evidence.varied)
    assert [(test.name, test.kind) for test in found.skill.tests] == [
        ("original", "original"),
        ("varied_1", "varied"),
        ("varied_2", "varied"),
    ]
    assert found.skill.tests[1].outputs == {"sum": 4}
    assert found.skill.tests[1].recorded[0].output == {"sum": 4}


async def test_examples_come_first_and_say_what_they_change(open_desk, adding):
    examples = ({"a": 1, "b": 2}, {"a": 1, "b": 50}, {"a": 60, "b": 70})
    async with open_desk(offering(ScriptedTool("add", add, PAIR)), effects=PURE) as desk:
        found = await gathered(desk, adding, {"a": 1, "b": 2}, examples=examples)
    assert [(dict(run.inputs), run.changed) for run in found.evidence.varied][:2] == [
        ({"a": 1, "b": 50}, ("b",)),
        ({"a": 60, "b": 70}, ("a", "b")),
    ]


async def test_a_replay_that_fails_ends_it_without_varied_runs(open_desk, adding):
    calls = []

    def drifting(arguments):
        calls.append(arguments)
        return {"sum": 3 if len(calls) == 1 else 99}

    async with open_desk(offering(ScriptedTool("add", drifting, PAIR)), effects=PURE) as desk:
        found = await gathered(desk, adding, {"a": 1, "b": 2})
    assert [(replay.passed, replay.possible) for replay in found.evidence.replays] == [(False, True)]
    assert found.evidence.varied == ()


async def test_a_time_stamp_is_volatile_though_two_runs_fall_into_one_second(open_desk, node, document):
    times = iter(["2024-01-01T00:00:00Z"])
    stamping = document(
        node("n", "s/stamp", {"text": "$inputs.text"}),
        outputs={"answer": "$nodes.n.output"},
        inputs={"text": {"type": "string"}},
    )

    def stamp(arguments):
        return {"at": next(times, "2024-01-01T00:00:09Z"), "text": arguments["text"]}

    async with open_desk(offering(ScriptedTool("stamp", stamp)), effects={"s": {"*": Effect.READ}}) as desk:
        await desk.bank.repair(stamping, RepairRequest(inputs={"text": "good day"}, save="stamps"))
        skill = desk.store.head("stamps")
    assert skill.state == "active", skill.reason
    assert skill.tests[0].volatile == ("/answer/at",)


async def test_what_the_world_stopped_is_no_varied_run(open_desk, adding):
    async def slow_on_large(arguments):
        if arguments["a"] > 1:
            await anyio.sleep_forever()
        return add(arguments)

    adding["nodes"][0]["timeout_seconds"] = 0.2
    async with open_desk(offering(ScriptedTool("add", slow_on_large, PAIR)), effects=PURE) as desk:
        found = await gathered(desk, adding, {"a": 1, "b": 2})
    assert {run.changed for run in found.evidence.varied} >= {("b",)}
    assert all(run.succeeded for run in found.evidence.varied)


async def test_a_failure_on_other_inputs_is_kept_with_its_words(open_desk, adding):
    def picky(arguments):
        return add(arguments) if arguments["a"] == 1 else "Error: only 1 will do"

    async with open_desk(offering(ScriptedTool("add", picky, PAIR)), effects=PURE) as desk:
        found = await gathered(desk, adding, {"a": 1, "b": 2})
    failed = [run for run in found.evidence.varied if not run.succeeded]
    assert {run.changed for run in failed} == {("a",)}
    assert "only 1 will do" in failed[0].detail


RECORDS = {"A-1": "new", "B-2": "sent", "C-3": "gone"}
ONE_TEXT = {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}


@pytest.fixture
def order_status(node, document):
    return document(
        node("n", "s/status", {"order_id": "$inputs.order_id"}),
        outputs={"status": "$nodes.n.output#/status"},
        inputs={"order_id": {"type": "string"}},
    )


def orders():
    def status(arguments):
        known = RECORDS.get(arguments["order_id"])
        return {"status": known} if known else "Error: no such order"

    listing = ScriptedTool("list_orders", lambda _: {"orders": [{"id": key} for key in RECORDS]})
    return offering(ScriptedTool("status", status, ONE_TEXT), listing)


async def test_records_are_not_made_up_and_the_skill_waits_and_names_the_input(open_desk, order_status):
    async with open_desk(orders(), effects={"s": {"*": Effect.READ}}) as desk:
        request = RepairRequest(inputs={"order_id": "A-1"}, save="status")
        report = await desk.bank.repair(order_status, request)
    assert report.skill_state == "proposed"
    assert "no 2 other valid values for order_id" in report.skill_reason


@pytest.mark.parametrize("by", ["another-run", "a-listing"])
async def test_records_that_the_world_was_seen_to_have_are_tried(open_desk, order_status, by):
    async with open_desk(orders(), effects={"s": {"*": Effect.READ}}) as desk:
        if by == "a-listing":
            await desk.bank.call_tool(ToolId("s", "list_orders"), {})
        else:
            for key in ("B-2", "C-3"):
                await desk.bank.call_tool(ToolId("s", "status"), {"order_id": key})
        desk.context.afterwards.finish()
        request = RepairRequest(inputs={"order_id": "A-1"}, save="status")
        report = await desk.bank.repair(order_status, request)
        skill = desk.store.head("status")
    assert report.skill_state == "active", report.skill_reason
    assert {test.inputs["order_id"]: test.outputs["status"] for test in skill.tests} == RECORDS


async def test_a_held_out_instance_is_one_of_the_varied_runs(open_desk, adding):
    async with open_desk(offering(ScriptedTool("add", add, PAIR)), effects=PURE) as desk:
        await desk.bank.repair(adding, RepairRequest(inputs={"a": 1, "b": 2}, save="kept"))
        head = desk.store.head("kept")
        held = head.tests[0].model_copy(
            update={
                "name": "second_run",
                "kind": "held_out",
                "inputs": {"a": 9, "b": 8},
                "outputs": {"sum": 17},
            }
        )
        skill = head.model_copy(update={"state": "proposed", "tests": (head.tests[0], held)})
        runner = replayer(desk.context.known(), desk.context, skill)
        found = await gather_evidence(Candidate(skill=skill, learning="auto"), runner)
    first = found.evidence.varied[0]
    assert (first.inputs, first.changed, first.outputs_changed) == ({"a": 9, "b": 8}, ("a", "b"), True)


async def test_postconditions_judge_varied_runs_too(open_desk, adding):
    async with open_desk(offering(ScriptedTool("add", add, PAIR)), effects=PURE) as desk:
        found = await gathered(desk, adding | {"expect": ["output.sum == `3`"]}, {"a": 1, "b": 2})
    assert {run.check_passed for run in found.evidence.varied} == {False}
    assert "output.sum == `3`" in found.evidence.varied[0].detail


async def test_places_that_are_volatile_move_nothing(open_desk, node, document):
    numbers = iter(range(1000))
    numbering = document(
        node("n", "s/number", {"a": "$inputs.a", "b": 1}),
        outputs={"number": "$nodes.n.output#/number", "same": "$nodes.n.output#/same"},
        inputs={"a": NUMBER},
    )
    tool = ScriptedTool("number", lambda _: {"number": next(numbers), "same": 1}, PAIR)
    async with open_desk(offering(tool), effects={"s": {"*": Effect.READ}}) as desk:
        found = await gathered(desk, numbering, {"a": 1})
    assert found.skill.tests[0].volatile == ("/number",)
    assert found.evidence.varied
    assert not any(run.outputs_changed for run in found.evidence.varied)


async def test_the_interface_is_read_against_the_tools_of_now(open_desk, adding):
    async with open_desk(offering(ScriptedTool("add", add, PAIR)), effects=PURE) as desk:
        report = await desk.bank.repair(adding, RepairRequest(inputs={"a": 1, "b": 2}, save="kept"))
        assert report.skill_state == "active"
        head = desk.store.head("kept")
        calling = head.workflow.model_copy(
            update={
                "nodes": (
                    head.workflow.nodes[0],
                    head.workflow.nodes[0].model_copy(
                        update={
                            "id": "again",
                            "tool": None,
                            "skill": {"name": "kept", "version": 1},
                            "arguments": {"a": 1, "b": 2},
                        }
                    ),
                )
            }
        )
        calling = type(calling).model_validate(calling.model_dump(mode="json", warnings=False))
        unpinned = head.model_copy(update={"state": "proposed", "pins": (), "workflow": calling})
        runner = replayer(desk.context.known(), desk.context, unpinned)
        found = await gather_evidence(Candidate(skill=unpinned, learning="auto"), runner)
    interface = found.evidence.interface
    assert [str(tool) for tool in interface.unpinned] == ["s/add"]
    assert (interface.calls_itself, interface.faults, interface.schema_lint) == (True, (), ())
