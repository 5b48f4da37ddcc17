"""Experience in the course of episodes: kept from them, used in half of them, and looked at by a person."""

from __future__ import annotations

from pathlib import Path

import pytest

from catalog.effects import Effect
from catalog.testing import Reply, ScriptedServer, ScriptedTool
from server.bank.errors import UnknownExperience
from server.bank.finding import Finder
from server.bank.keeping import keep_lesson
from server.bank.upstreams.exploration import Exploration
from server.exploration.options import ExplorationOptions
from server.navigating.writing import Lesson
from server.requests import RepairRequest, SolveRequest
from server.verification import Checks
from tests.catalog.test_search_index import TOOLS, Meanings

pytestmark = pytest.mark.anyio


async def test_attempts_at_a_family_are_guided_in_turn_and_counted(open_desk):
    async with open_desk(learning="off") as desk:
        for value in (5, 6, 7, 8, 9):
            checks = Checks(assertions=("output.result != `null`",))
            report = await desk.bank.solve(f"Convert {value} km to m", SolveRequest(checks=checks))
            assert report.status == "verified"
        kept = await desk.bank.list_experience()
    successes = [told.unit for told in kept.units if told.unit.kind == "success"]
    assert len(successes) == 1
    [unit] = successes
    assert str(unit.tools[0]).startswith("units/")
    assert len(unit.evidence) == 5
    assert (unit.tally.guided, unit.tally.unguided) == (2, 2)
    assert unit.tally.helped == 2


async def test_a_lesson_is_shown_and_forgotten(open_desk):
    async with open_desk(learning="off") as desk:
        await desk.bank.solve("Convert 5 km to m", SolveRequest(checks=Checks(("output.result != `null`",))))
        [told] = (await desk.bank.list_experience()).units
        assert await desk.bank.show_experience(told.unit.id) == told
        with pytest.raises(UnknownExperience, match="skillbank experience list"):
            await desk.bank.drop_experience([told.unit.id, "nobody"])
        assert (await desk.bank.list_experience()).units == (told,)
        assert (await desk.bank.drop_experience([])).dropped == (told.unit.id,)
        with pytest.raises(UnknownExperience, match="no experience"):
            await desk.bank.show_experience(told.unit.id)


async def test_exploring_leaves_lessons_and_reserved_instances_are_not_learned_from(open_desk):
    options = ExplorationOptions(budget_calls=300, tasks=1, calls_per_second=10_000)
    async with open_desk() as desk:
        report = await desk.bank.explore(Exploration("units", options, reserved=1))
        kept = await desk.bank.list_experience()
        proofs = [trace.task for trace in desk.store.traces(100)]
    assert report.lessons == len(kept.units) == 1
    assert report.tasks[0].held_out[-1].task not in proofs


@pytest.mark.parametrize("understands", [False, True], ids=["words alone", "meanings"])
async def test_lessons_alike_in_meaning_are_one_where_a_model_of_it_is_loaded(
    open_desk, tmp_path: Path, understands: bool
):
    finder = Finder(Meanings, tmp_path / "vectors", patience_seconds=10, loading_seconds=10)
    if understands:
        await finder.find("cold", 1, TOOLS, [])
    async with open_desk(learning="off", finder=finder) as desk:
        report = await desk.bank.solve(
            "Convert 5 km to m", SolveRequest(checks=Checks(("output.result != `null`",)))
        )
        [told] = (await desk.bank.list_experience()).units
        shelf = desk.store.experiences("local")
        shelf.drop(told.unit.id)
        other = {
            "id": "old",
            "when_to_use": "quite another phrasing",
            "content": "Much else said at some length",
        }
        shelf.put(told.unit.model_copy(update={**other, "evidence": ("before",)}))
        trace = desk.store.trace(report.trace_id)
        await keep_lesson(Lesson("Convert 5 km to m", trace), desk.context)
        kept = {unit.id: unit.evidence for unit in shelf.units()}
    assert len(kept) == (1 if understands else 2)
    assert kept["old"] == (("before", report.trace_id) if understands else ("before",))


def _choosy() -> list[ScriptedTool]:
    schema = {
        "type": "object",
        "properties": {"mode": {"type": "string"}, "n": {"type": "number"}},
        "required": ["mode", "n"],
    }

    def run(arguments):
        if arguments["mode"] != "zeta":
            return Reply.text("that is no mode", is_error=True)
        return {"n": arguments["n"] * 2}

    return [ScriptedTool("double", run, schema, description="Double a number in a mode.")]


async def test_a_repair_takes_the_choice_with_which_the_tool_worked_before(open_desk):
    def document(mode: str):
        node = {
            "id": "d",
            "tool": {"server": "odd", "tool": "double"},
            "arguments": {"mode": mode, "n": "$inputs.n"},
        }
        return {
            "name": "w",
            "inputs": {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]},
            "nodes": [node],
            "outputs": {"n": "$nodes.d.output#/n"},
        }

    effects = {"odd": {"*": Effect.PURE}}
    async with open_desk({"odd": ScriptedServer(_choosy)}, effects=effects, learning="off") as desk:
        unknown = await desk.bank.repair(document("alpha"), RepairRequest(inputs={"n": 1}))
        for number in (1, 2, 3):
            ran = await desk.bank.run(document("zeta"), {"n": number}, Checks())
            assert ran.status == "succeeded"
        mended = await desk.bank.repair(document("alpha"), RepairRequest(inputs={"n": 4}))
    assert unknown.status == "failed"
    assert (mended.status, mended.outputs) == ("succeeded", {"n": 8})
    assert mended.edits[0].because == "mode worked with it before"
