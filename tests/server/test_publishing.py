"""Which skills clients see: the active heads, capped, and the same for every process."""

from __future__ import annotations

import pytest

from server.bank import publishing
from server.bank.publishing import published_skills, refresh_published
from server.requests import RepairRequest
from server.verification import Checks
from skills_store.sqlite import open_sqlite_store
from skills_store.utility import Use

pytestmark = pytest.mark.anyio


@pytest.fixture
async def skill(open_desk, node, document):
    """An active skill to make others of."""
    adding = document(
        node("sum", "calculator/add", {"a": "$inputs.a", "b": 2}),
        outputs={"sum": "$nodes.sum.output#/result"},
        inputs={"a": {"type": "number"}},
    )
    async with open_desk() as desk:
        wanted = RepairRequest(inputs={"a": 3}, checks=Checks(("output.sum == `5`",)), save="adds")
        await desk.bank.repair(adding, wanted)
        found = desk.store.head("adds")
        desk.store.move("adds", 1, "retired", reason="a pattern", by="person", at=1.0)
        desk.store.publish(())
    return found


def named(skill, name):
    return skill.model_copy(update={"name": name, "content_hash": f"sha256:{name}"})


async def test_active_heads_are_published_by_name(open_desk, skill):
    async with open_desk() as desk:
        for name in ("b", "a"):
            desk.store.add_version(named(skill, name), expected_head=None)
        proposed = named(skill, "c").model_copy(update={"state": "proposed"})
        desk.store.add_version(proposed, expected_head=None)
        refresh_published(desk.context)
        assert [(entry.tool_name, entry.skill.name) for entry in published_skills(desk.context)] == [
            ("a", "a"),
            ("b", "b"),
        ]


async def test_a_published_skill_that_is_not_active_any_more_is_not_shown(open_desk, skill):
    async with open_desk() as desk:
        desk.store.add_version(named(skill, "a"), expected_head=None)
        refresh_published(desk.context)
        desk.store.move("a", 1, "stale", reason="changed", by="system", at=1.0)
        assert published_skills(desk.context) == []


async def test_refreshing_what_is_up_to_date_changes_nothing(open_desk, skill):
    async with open_desk() as desk:
        desk.store.add_version(named(skill, "a"), expected_head=None)
        refresh_published(desk.context)
        before = desk.bank.revision()
        refresh_published(desk.context)
        assert desk.bank.revision() == before


async def test_past_the_cap_the_most_useful_are_published(open_desk, skill, monkeypatch):
    monkeypatch.setattr(publishing, "PUBLISHED_AT_MOST", 2)
    async with open_desk() as desk:
        for name in ("a", "b", "c"):
            desk.store.add_version(named(skill, name), expected_head=None)
        desk.store.record_use(Use("c", 1, "call", succeeded=True, world_fault=False, at=1.0))
        refresh_published(desk.context)
        assert desk.store.published() == ("a", "c")
        assert len((await desk.bank.list_skills()).skills) == 4


async def test_a_skill_that_another_process_publishes_meanwhile_is_not_lost(open_desk, skill, tmp_path):
    other = open_sqlite_store(tmp_path / "store.db")

    class Overtaken:
        """A store into which another process writes while this one looks at the heads."""

        def __init__(self, store):
            self.store, self.rival_has_written = store, False

        def __getattr__(self, name):
            return getattr(self.store, name)

        def heads(self):
            found = self.store.heads()
            if not self.rival_has_written:
                self.rival_has_written = True
                other.add_version(named(skill, "b"), expected_head=None)
                other.publish(("a", "b"))
            return found

    async with open_desk() as desk:
        desk.store.add_version(named(skill, "a"), expected_head=None)
        async with open_desk(store=Overtaken(desk.store)) as overtaken:
            refresh_published(overtaken.context)
        assert desk.store.published() == ("a", "b")
    other.close()
