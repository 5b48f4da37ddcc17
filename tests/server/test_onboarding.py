"""Taking servers in: what a probe finds, what is proposed and kept, what the store remembers."""

from __future__ import annotations

import json
import os
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.config import ServerSpec
from catalog.effects import Effect, EffectTable
from catalog.tools import Tool, ToolId
from server.onboarding import Probed, compact_classes, probe_servers, propose_profile, remember_tools
from server.settings import Settings
from skills_store.sqlite import open_sqlite_store


@pytest.fixture
def settings(tmp_path):
    return Settings(tmp_path / "config.json", tmp_path / "data" / "store.db", environment=dict(os.environ))


def tool(server, name, description=""):
    return Tool(ToolId(server, name), {"type": "object"}, description=description)


@pytest.mark.anyio
async def test_a_probe_lists_the_living_and_names_the_dead(settings, tmp_path):
    scenario = tmp_path / "scenario.json"
    scenario.write_text(json.dumps({"tools": [{"name": "get_x"}], "log": str(tmp_path / "log")}))
    living = ServerSpec("living", command=sys.executable, args=("-m", "catalog.testing", str(scenario)))
    dead = ServerSpec("dead", command=str(tmp_path / "nowhere"))
    unset = ServerSpec("unset", command="${NOT_SET_ANYWHERE}")
    first, second, third = await probe_servers([living, dead, unset], settings)
    assert (first.name, first.status, first.problems) == ("living", "ok", ())
    assert [t.id for t in first.tools] == [ToolId("living", "get_x")]
    assert (second.name, second.status, second.tools) == ("dead", "unreachable", ())
    assert "nowhere" in second.problems[0]
    assert third.status == "unreachable"
    assert "environment variable NOT_SET_ANYWHERE is not set" in third.problems[0]


def test_the_store_remembers_listed_tools_beside_those_of_others(settings):
    old, other, new = tool("a", "old"), tool("b", "other"), tool("a", "new")
    remember_tools([Probed("a", "ok", tools=(old,)), Probed("b", "ok", tools=(other,))], settings)
    remember_tools([Probed("a", "ok", tools=(new,)), Probed("b", "unreachable")], settings)
    store = open_sqlite_store(settings.store_path)
    known = {t.id for t in store.snapshot()}
    store.close()
    assert known == {new.id, other.id}


def test_a_proposal_has_a_reason_for_every_tool():
    listed = (tool("a", "get_x", "Get x."), tool("a", "delete_x", "Delete x."), tool("a", "frobnicate"))
    proposal = propose_profile(Probed("a", "ok", tools=listed))
    assert {e.tool: e.effect for e in proposal.effects} == {
        "get_x": Effect.READ,
        "delete_x": Effect.WRITE,
        "frobnicate": Effect.UNKNOWN,
    }
    assert all(e.reason for e in proposal.effects)
    assert proposal.classes == {"get_x": Effect.READ, "delete_x": Effect.WRITE}
    report = proposal.to_report()
    assert report.effects == proposal.effects
    assert report.reset == {"a": proposal.reset}


NAMES = st.text("abcdef_", min_size=1, max_size=8)


@given(st.dictionaries(NAMES, st.sampled_from(Effect)), NAMES)
def test_what_is_kept_means_what_was_said_and_frees_no_other_tool(classes, later):
    table = EffectTable(effects={"s": compact_classes(classes)})
    for name, effect in classes.items():
        assert table.effect(ToolId("s", name)) is effect
    if later not in classes:
        assert not table.effect(ToolId("s", later)).is_free
