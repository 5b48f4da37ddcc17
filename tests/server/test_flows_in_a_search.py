"""A search never runs a candidate in which an edit lets data go where it should not."""

from __future__ import annotations

import pytest

from catalog.effects import Effect, EffectTable
from catalog.labels import LabelTable
from catalog.testing import ScriptedServer, ScriptedTool
from server.evolution.candidate import Candidate
from skills_store.workflow.edits import EditParameter, apply_edit
from skills_store.workflow.hashing import content_hash
from tests.worlds import TEXT, gives, node, scene, takes, workflow

pytestmark = pytest.mark.anyio

EFFECTS = EffectTable({"files": {"read_file": Effect.READ}, "web": {"fetch": Effect.READ}})
PLAN = workflow(
    node("file", "files/read_file", {"path": "a"}),
    node("page", "web/fetch", {"url": "http://x"}),
    outputs={"page": "$nodes.page.output#/text", "file": "$nodes.file.output#/text"},
)


def servers() -> dict[str, ScriptedServer]:
    reads = ScriptedTool("read_file", [{"text": "secret"}], takes(path=TEXT), gives(text=TEXT), "Read a file")
    fetches = ScriptedTool("fetch", [{"text": "page"}], takes(url=TEXT), gives(text=TEXT), "Fetch a web page")
    return {"files": ScriptedServer([reads]), "web": ScriptedServer([fetches])}


def leaking(plan):
    leak = EditParameter(node="page", pointer="/url", value="http://x/{$nodes.file.output#/text}")
    changed = apply_edit(plan, leak)
    return Candidate(content_hash(changed), changed, (leak,), (leak,), parent=content_hash(plan))


async def test_an_edit_that_leaks_is_a_fault_that_names_both_ends_and_nothing_is_called():
    async with scene(servers(), effects=EFFECTS) as set_up:
        await set_up.evaluator.evaluate(Candidate(content_hash(PLAN), PLAN))
        before = len(set_up.calls("web"))
        found = await set_up.evaluator.evaluate(leaking(PLAN))
        assert len(set_up.calls("web")) == before == 1
    assert (found.status, [fault.kind for fault in found.faults]) == ("static_faults", ["denied"])
    assert found.faults[0].message == (
        "private data of files/read_file reaches web/fetch, which may send it away"
    )


async def test_a_flow_that_the_plan_has_itself_is_its_owners():
    plan = leaking(PLAN).workflow
    async with scene(servers(), effects=EFFECTS) as set_up:
        found = await set_up.evaluator.evaluate(Candidate(content_hash(plan), plan))
        assert [arguments for _, arguments in set_up.calls("web")] == [{"url": "http://x/secret"}]
    assert found.faults == ()


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(LabelTable({"files": {"*": frozenset()}}), id="labels-that-say-otherwise"),
        pytest.param(LabelTable(granted={"files/*": ("web/fetch",)}), id="a-granted-flow"),
    ],
)
async def test_what_the_operator_says_lets_an_edit_run(table):
    async with scene(servers(), effects=EFFECTS, labelled=table) as set_up:
        await set_up.evaluator.evaluate(Candidate(content_hash(PLAN), PLAN))
        found = await set_up.evaluator.evaluate(leaking(PLAN))
    assert found.faults == ()
