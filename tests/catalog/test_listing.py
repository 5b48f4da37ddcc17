"""Tool lists as servers really send them."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from mcp import Client

from catalog.config import ServerSpec
from catalog.listing import MAX_PAGES, Listing, Repairs, list_tools, repair_page
from catalog.testing.defects import defect_command
from catalog.transport import LastWords, open_transport
from catalog.wire import Wire

OBJECT: dict[str, Any] = {"type": "object"}
FRAME: dict[str, Any] = {"ttlMs": 0, "resultType": "complete", "cacheScope": "private"}


@pytest.mark.parametrize(
    ("raw", "repaired", "problem"),
    [
        ({"name": "t", "inputSchema": OBJECT, "vendor": 1}, {"name": "t", "inputSchema": OBJECT}, None),
        ({"name": "t"}, {"name": "t", "inputSchema": OBJECT}, "input schema is missing"),
        (
            {"name": "t", "inputSchema": {"properties": {"a": {}}}},
            {"name": "t", "inputSchema": {"type": "object", "properties": {"a": {}}}},
            "`object` was assumed",
        ),
        (
            {"name": "t", "inputSchema": {"type": ["object", "null"]}},
            {"name": "t", "inputSchema": {"type": "object"}},
            "`object` was assumed",
        ),
        ({"name": "t", "inputSchema": {"type": "array"}}, None, "describes no object"),
        (
            {"name": "t", "inputSchema": OBJECT, "outputSchema": {"type": "array"}},
            {"name": "t", "inputSchema": OBJECT},
            "output schema",
        ),
        (
            {"name": "t", "inputSchema": OBJECT, "description": 5, "annotations": {"readOnlyHint": "yes"}},
            {"name": "t", "inputSchema": OBJECT, "annotations": {}},
            "annotations of the wrong type were dropped: readOnlyHint",
        ),
        ({"inputSchema": OBJECT}, None, "without a name"),
        ({"name": "x" * 300, "inputSchema": OBJECT}, None, "300 characters"),
        ("tool", None, "without a name"),
    ],
    ids=[
        "extra",
        "no-schema",
        "untyped",
        "nullable",
        "array-input",
        "array-output",
        "bad-prose",
        "nameless",
        "long-name",
        "no-object",
    ],
)
def test_a_definition_is_repaired_or_left_out(raw: Any, repaired: Any, problem: str | None) -> None:
    repairs = Repairs()
    page = repair_page({"tools": [raw]}, repairs, legacy=True)
    assert page["tools"] == ([] if repaired is None else [repaired])
    told = [*repairs.problems, *repairs.quarantined.values()]
    assert any(problem in each for each in told) if problem is not None else told == []


def test_the_newer_era_may_declare_outputs_that_are_no_objects() -> None:
    raw: Any = {"name": "t", "inputSchema": OBJECT, "outputSchema": {"type": "array"}}
    repairs = Repairs()
    assert repair_page({"tools": [raw]}, repairs, legacy=False) == {"tools": [raw], **FRAME}
    assert repairs == Repairs()


@pytest.mark.parametrize("page", [{}, {"tools": None}, {"tools": {"a": 1}, "nextCursor": 5, "ttlMs": "soon"}])
def test_a_list_that_is_none_is_an_empty_one(page: dict[str, Any]) -> None:
    repairs = Repairs()
    assert repair_page(page, repairs, legacy=False) == {"tools": [], **FRAME}
    assert repairs.problems == ["the tool list is no list"]


async def listing(defect: str) -> Listing:
    command, args = defect_command(defect)
    spec = ServerSpec("odd", command=command, args=args)
    wire = Wire()
    with anyio.fail_after(20):
        async with Client(wire.around(open_transport(spec, LastWords())), mode="legacy") as client:
            return await list_tools(client, "odd", wire.repairs)


@pytest.mark.anyio
async def test_malformed_definitions_do_not_hide_the_good_ones() -> None:
    found = await listing("malformed_tools")
    names = ["good", "empty_schema", "no_schema", "null_schema", "array_output", "odd_hints"]
    assert [tool.id.tool for tool in found.tools] == names
    assert found.quarantined == {"array_input": "its input schema describes no object"}
    assert "tool 'good' is listed twice; the first definition counts" in found.problems


@pytest.mark.anyio
async def test_a_list_without_end_is_cut() -> None:
    found = await listing("endless_pages")
    assert len(found.tools) == MAX_PAGES
    assert found.problems == (f"its tool list does not end: cut after {MAX_PAGES} tools",)


@pytest.mark.anyio
async def test_a_cursor_that_repeats_ends_the_list() -> None:
    found = await listing("repeated_cursor")
    assert [tool.id.tool for tool in found.tools] == ["good"]
    assert "its tool list does not end: cut after 1 tools" in found.problems
