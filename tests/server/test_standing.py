"""How a skill stands: told from what is kept, and said to be not known where nothing is."""

from __future__ import annotations

import pytest

from catalog.tools import ToolId
from server.bank.episode.planning_cost import planning_saved
from server.requests import RepairRequest, SaveRequest, SolveRequest
from skills_store.errors import UnknownSkill
from skills_store.skill import Planning

pytestmark = pytest.mark.anyio

ADD, MULTIPLY = ToolId("calculator", "add"), ToolId("calculator", "multiply")


@pytest.fixture
def linear(node, document):
    """a · b + 1, in two calls."""
    return document(
        node("product", "calculator/multiply", {"a": "$inputs.a", "b": "$inputs.b"}),
        node("sum", "calculator/add", {"a": "$nodes.product.output#/result", "b": 1}),
        outputs={"result": "$nodes.sum.output#/result"},
        inputs={"a": {"type": "number"}, "b": {"type": "number"}},
    )


async def saved(desk, document, name="linear"):
    return await desk.bank.repair(document, RepairRequest(inputs={"a": 3, "b": 4}, save=name))


async def test_a_skill_is_shown_with_what_it_cost_and_how_it_did(open_desk, linear):
    async with open_desk() as desk:
        await saved(desk, linear)
        unused = (await desk.bank.show_skill("linear")).standing
        for a in (5, 6):
            assert (await desk.bank.call_skill("linear", {"a": a, "b": 2})).status == "succeeded"
        await desk.bank.call_skill("linear", {"a": "no number", "b": 2})
        shown = await desk.bank.show_skill("linear")
    standing, use = shown.standing, shown.standing.use
    assert (unused.use.uses, unused.use.cost, unused.use.likely_at_least) == (0, None, 0.0)
    assert (standing.in_use, standing.pinned, standing.published) == (1, None, True)
    assert [(move.before, move.after) for move in standing.moves] == [
        (None, "proposed"),
        ("proposed", "active"),
    ]
    assert (standing.learned.runs, standing.learned.calls) == (1, 2)
    assert (use.uses, use.successes, use.cost.runs, use.cost.calls) == (2, 2, 2, 4)
    assert use.round_trips_saved == 2
    assert 0 < use.likely_at_least < 1


async def test_what_it_needs_is_there_changed_or_not_configured(open_desk, linear):
    async with open_desk() as desk:
        await saved(desk, linear)
        tools = {tool.tool: tool for tool in (await desk.bank.show_skill("linear")).standing.tools}
        assert {name: (t.configured, t.holds) for name, t in tools.items()} == {
            "add": (True, True),
            "multiply": (True, True),
        }
        await desk.bank.pin("linear")
        assert (await desk.bank.show_skill("linear")).standing.pinned == 1
    async with open_desk(configured=("units",)) as desk:
        tools = (await desk.bank.show_skill("linear")).standing.tools
    assert [(tool.tool, tool.configured, tool.holds) for tool in tools] == [
        ("add", False, None),
        ("multiply", False, None),
    ]


async def test_what_was_learned_from_a_conversation_costs_its_calls(open_desk):
    async with open_desk() as desk:
        await desk.bank.call_tool(MULTIPLY, {"a": 3, "b": 4}, recording="talk")
        await desk.bank.call_tool(ADD, {"a": 12, "b": 5}, recording="talk")
        await desk.bank.save(SaveRequest("steps", recording="talk", task="3 times 4 plus 5"))
        shown = await desk.bank.show_skill("steps")
        await desk.bank.forget_recording("talk")
        forgotten = await desk.bank.show_skill("steps")
    assert (shown.standing.learned.runs, shown.standing.learned.calls) == (2, 2)
    assert forgotten.standing.learned is None


async def test_an_unknown_skill_is_refused(open_desk):
    async with open_desk() as desk:
        with pytest.raises(UnknownSkill, match="there is no skill linear"):
            await desk.bank.show_skill("linear")


class TestWhatPlanningCost:
    async def test_is_kept_of_a_task_planned_from_scratch_and_counted_for_each_use(self, open_desk):
        async with open_desk() as desk:
            solved = await desk.bank.solve("Convert 3 miles to meters", SolveRequest(save="far"))
            assert (solved.route, solved.skill) == ("dynamic", "far")
            (planned,) = (await desk.bank.describe_skill("far", 1)).provenance.plannings
            for _ in range(2):
                again = await desk.bank.solve("Convert 5 miles to meters", SolveRequest())
                assert again.route == "direct"
            saved = (await desk.bank.show_skill("far")).standing.use.planning
        assert planned.tokens == 0  # no model was asked
        assert planned.seconds > 0
        assert saved.runs == 1
        assert saved.seconds == pytest.approx(2 * planned.seconds)

    async def test_is_not_known_of_what_was_never_planned(self, open_desk, linear):
        async with open_desk() as desk:
            await saved(desk, linear)
            assert (await desk.bank.show_skill("linear")).standing.use.planning is None


@pytest.mark.parametrize(
    ("plannings", "successes", "told"),
    [
        pytest.param((), 3, None, id="none-planned"),
        pytest.param(((900, 4.0), (300, 2.0)), 3, (2, 600.0, 3.0, 1800, 9.0), id="their-mean"),
        pytest.param(((900, 4.0),), 0, (1, 900.0, 4.0, 0, 0.0), id="no-use-yet"),
    ],
)
async def test_uses_save_what_the_planned_runs_of_the_family_cost(
    open_desk, linear, plannings, successes, told
):
    async with open_desk() as desk:
        await saved(desk, linear)
        skill = await desk.bank.describe_skill("linear", 1)
    costs = tuple(Planning(tokens=tokens, seconds=seconds, calls=0) for tokens, seconds in plannings)
    provenance = skill.provenance.model_copy(update={"plannings": costs})
    found = planning_saved(skill.model_copy(update={"provenance": provenance}), successes)
    assert told == (
        found and (found.runs, found.tokens_a_run, found.seconds_a_run, found.tokens, found.seconds)
    )
