"""Upstream tools listed beside the skills: names, schemas, and results that pass through equal."""

from __future__ import annotations

from typing import Any

import mcp.types as types
import pytest
from fake_bank import FakeBank
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client, MCPError

from catalog.names import NAME_PATTERN
from catalog.tools import Annotations, Tool, ToolId
from server.surface import BUILTIN_NAMES, BankServer, SurfaceOptions
from server.surface.names import listed_tool_names

pytestmark = pytest.mark.anyio

ONE_OF = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "oneOf": [{"required": ["a"]}, {"properties": {"b": {"type": "number"}}, "required": ["b"]}],
}
ECHO = Tool(
    ToolId("any", "echo"),
    ONE_OF,  # pyright: ignore[reportArgumentType]
    title="Echo",
    description="Says the same.",
    annotations=Annotations(read_only=True),
)
TOOLS = [
    ECHO,
    Tool(ToolId("any", "list"), {"type": "object"}, output_schema={"type": "array"}),
    Tool(ToolId("any", "refuse"), {"type": "object"}),
    Tool(ToolId("other.server", "find/it"), {"type": "object"}),
    Tool(ToolId("other.server", "solve"), {"type": "object"}),
    Tool(ToolId("other.server", "double"), {"type": "object"}),
]


@pytest.fixture
def gateway(era: str):
    def connect(bank: FakeBank, options: SurfaceOptions) -> Client:
        bank.tools = [*TOOLS]
        return Client(BankServer(bank, options), mode=era, read_timeout_seconds=10)

    return connect


PORTABLE = SurfaceOptions(publish_tools="portable")
BARE = SurfaceOptions(publish_tools="original", bare=frozenset({"any", "other.server"}))


async def test_upstream_tools_follow_the_skills_by_name(gateway, bank: FakeBank):
    async with gateway(bank, PORTABLE) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
    skills = ["broken", "crash", "double", "wrong"]
    listed = names[len(BUILTIN_NAMES) + len(skills) :]
    assert names[: len(BUILTIN_NAMES)] == [*BUILTIN_NAMES]
    assert names[len(BUILTIN_NAMES) :][: len(skills)] == skills
    assert listed == sorted(listed)
    assert listed[:3] == ["any__echo", "any__list", "any__refuse"]
    assert len(set(names)) == len(names)
    assert all(NAME_PATTERN.fullmatch(name) for name in names)
    assert bank.looked == 1


async def test_bare_names_are_kept_where_they_are_free_and_portable(gateway, bank: FakeBank):
    async with gateway(bank, BARE) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert {"echo", "list", "refuse"} < tools.keys()
    origins = {
        name: tool.meta["io.skillbank/origin"]["tool"]
        for name, tool in tools.items()
        if tool.meta and tool.meta["io.skillbank/origin"]["server"] == "other.server"
    }
    assert sorted(origins.values()) == ["double", "find/it", "solve"]
    assert not {"double", "find/it", "solve"} & origins.keys()  # taken by a skill, not portable, always there


async def test_schemas_are_portable_or_the_servers_own(gateway, bank: FakeBank):
    async with gateway(bank, PORTABLE) as client:
        portable = {tool.name: tool for tool in (await client.list_tools()).tools}["any__echo"]
    async with gateway(bank, BARE) as client:
        original = {tool.name: tool for tool in (await client.list_tools()).tools}["echo"]
    assert portable.input_schema["type"] == "object"
    assert not {"oneOf", "anyOf", "allOf"} & portable.input_schema.keys()
    assert set(portable.input_schema["properties"]) == {"a", "b"}
    assert original.input_schema == ONE_OF
    assert (original.title, original.description) == ("Echo", "Says the same.")
    assert original.annotations is not None
    assert original.annotations.read_only_hint is True


async def test_an_output_schema_that_an_era_cannot_carry_is_left_out_there(gateway, bank: FakeBank, era: str):
    async with gateway(bank, PORTABLE) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert tools["any__list"].output_schema == (None if era == "legacy" else {"type": "array"})


async def test_every_field_of_a_result_passes_through_equal(gateway, bank: FakeBank):
    arguments: dict[str, Any] = {"a": "hi", "deep": {"list": [1, None, "x"]}}
    async with gateway(bank, PORTABLE) as client:
        result = await client.call_tool("any__echo", arguments)
    assert result.structured_content == arguments
    assert result.is_error is False
    assert [block.model_dump(by_alias=True, exclude_none=True) for block in result.content] == [
        {"type": "text", "text": "one", "annotations": {"audience": ["user"], "priority": 0.5}},
        {"type": "image", "data": "aGk=", "mimeType": "image/png", "_meta": {"a/b": [1]}},
    ]
    assert result.meta is not None
    assert result.meta["upstream.example/key"] == {"n": 1}


async def test_an_upstreams_refusal_stays_one(gateway, bank: FakeBank):
    async with gateway(bank, PORTABLE) as client:
        with pytest.raises(MCPError) as refused:
            await client.call_tool("any__refuse", {})
    assert (refused.value.code, str(refused.value)) == (types.INVALID_PARAMS, "Unknown tool: refuse")


async def test_the_upstream_judges_its_own_arguments(gateway, bank: FakeBank):
    async with gateway(bank, PORTABLE) as client:
        result = await client.call_tool("any__echo", {"neither": 1})
    assert result.structured_content == {"neither": 1}


async def test_nothing_of_it_is_listed_unless_asked_for(gateway, bank: FakeBank):
    async with gateway(bank, SurfaceOptions()) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool("any__echo", {})
    assert names == {*BUILTIN_NAMES, "broken", "crash", "double", "wrong"}
    assert bank.looked == 0


words = st.text(min_size=1, max_size=30)
ids = st.builds(ToolId, st.sampled_from(["a", "b", "a b"]), words)


@given(st.lists(ids, unique=True, max_size=12), st.sets(st.sampled_from(["a", "b"])))
def test_names_of_upstream_tools_are_portable_and_mean_one_tool_each(tools: list[ToolId], bare: set[str]):
    named = listed_tool_names(tools, ["double"], frozenset(bare))
    assert named == listed_tool_names(reversed(tools), ["double"], frozenset(bare))
    assert len(set(named.values())) == len(named) == len(tools)
    assert not set(named.values()) & {*BUILTIN_NAMES, "double"}
    assert all(NAME_PATTERN.fullmatch(name) for name in named.values())
