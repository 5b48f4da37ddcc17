"""Differences of two snapshots."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from catalog.drift import Drift, compare
from catalog.tools import Annotations, Snapshot, Tool, ToolId


def tool(name: str, **schema: object) -> Tool:
    return Tool(ToolId("s", name), {"type": "object", **schema}, description="Reads.")


def test_each_tool_stands_in_the_field_of_its_change():
    kept, gone, new = tool("kept"), tool("gone"), tool("new")
    before = Snapshot.of(kept, gone, tool("schema"), tool("prose"), tool("both"), tool("hint"))
    after = Snapshot.of(
        kept,
        new,
        tool("schema", required=["x"]),
        replace(tool("prose"), description="Reads it."),
        replace(tool("both", required=["x"]), title="Both"),
        replace(tool("hint"), annotations=Annotations(read_only=True)),
    )
    drift = compare(before, after)
    assert drift == Drift(
        added=(new.id,),
        removed=(gone.id,),
        changed=(ToolId("s", "both"), ToolId("s", "hint"), ToolId("s", "schema")),
        reworded=(ToolId("s", "prose"),),
    )
    assert drift.broken == {gone.id, ToolId("s", "both"), ToolId("s", "hint"), ToolId("s", "schema")}


def test_an_output_schema_that_appears_changes_the_contract():
    before = tool("a")
    after = replace(before, output_schema={"type": "object"})
    assert compare(Snapshot.of(before), Snapshot.of(after)).changed == (before.id,)


@given(st.sets(st.sampled_from("abcdef")), st.sets(st.sampled_from("abcdef")))
def test_the_way_back_swaps_added_and_removed(one: set[str], other: set[str]):
    before, after = Snapshot.of(*map(tool, one)), Snapshot.of(*map(tool, other))
    there, back = compare(before, after), compare(after, before)
    assert (there.added, there.removed) == (back.removed, back.added)
    assert bool(there) == (one != other)
