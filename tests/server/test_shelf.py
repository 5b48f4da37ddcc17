"""The shelf of a bank follows its store, whoever changes it, and reads again only what has changed."""

from __future__ import annotations

import pytest

from catalog.tools import ToolId
from server.bank.shelf import Shelf
from server.planning.patterns import TaskPatterns
from server.planning.router import match_skill
from server.requests import SaveRequest

pytestmark = pytest.mark.anyio


async def adding(desk, a, b, name, words="Add {a} and {b}"):
    tool = ToolId("calculator", "multiply" if "Multiply" in words else "add")
    await desk.bank.call_tool(tool, {"a": a, "b": b}, recording=name)
    return await desk.bank.save(SaveRequest(name, recording=name, task=words.format(a=a, b=b)))


async def test_it_follows_what_is_saved_and_moved(open_desk):
    async with open_desk() as desk:
        shelf = Shelf()
        assert shelf.heads(desk.store) == []
        await adding(desk, 4, 5, "plus")
        (head,) = shelf.heads(desk.store)
        assert [hit.skill for hit in shelf.index(desk.store).search("add 1 and 2")] == [head]
        assert shelf.patterns(desk.store).candidates("Add 7 and 9") == [head]
        desk.store.move("plus", 1, "retired", reason="done", by="person", at=1.0)
        assert [skill.state for skill in shelf.heads(desk.store)] == ["retired"]
        assert shelf.index(desk.store).search("add 1 and 2") == []
        assert list(shelf.findable(desk.store)) == []


async def test_what_has_not_changed_is_the_same_object_and_nothing_is_read_without_a_change(open_desk):
    async with open_desk() as desk:
        shelf, store = Shelf(), desk.store
        await adding(desk, 4, 5, "plus")
        (first,) = shelf.heads(store)
        reads: list[str] = []
        heads = store.heads
        store.heads = lambda: reads.append("heads") or heads()
        assert shelf.heads(store)[0] is first
        assert reads == []
        await adding(desk, 4, 5, "times", "Multiply {a} by {b}")
        assert shelf.heads(store)[0] is first
        assert len(reads) > 0


@pytest.mark.parametrize(
    "task",
    ["Add 7 and 9", "add 7 and 9 please", "Add 7 to 9", "Sum up 1 and 2", "Add", "", "Add 7 and 9 and 11"],
)
async def test_every_skill_that_a_task_may_be_is_a_candidate(open_desk, task):
    async with open_desk() as desk:
        await adding(desk, 4, 5, "plus")
        await adding(desk, 40, 50, "sum", "Sum up {a} and {b}")
        skills = desk.store.heads()
    matched = [skill for skill in skills if match_skill(task, {}, skill) is not None]
    candidates = TaskPatterns(skills).candidates(task)
    assert [skill for skill in candidates if skill in matched] == matched
