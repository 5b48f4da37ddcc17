"""Resources of the surface, over every transport in both eras."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import mcp.types as types
import pytest
from fake_bank import KEPT, FakeBank, skill
from mcp import Client, MCPError

from catalog.names import NAME_PATTERN
from server.surface import BUILTIN_NAMES
from server.surface.resources import PART_CHARACTERS

pytestmark = pytest.mark.anyio

Connect = Callable[..., AbstractAsyncContextManager[Client]]
VALUE = f"trace://values/{KEPT.removeprefix('sha256:')}"


async def read(client: Client, uri: str) -> str:
    (contents,) = (await client.read_resource(uri)).contents
    assert isinstance(contents, types.TextResourceContents)
    assert contents.uri == uri
    return contents.text


async def test_servers_are_listed_and_every_listed_resource_is_readable(connect: Connect):
    async with connect() as client:
        assert client.server_capabilities.resources is not None
        listed = (await client.list_resources()).resources
        texts = {resource.name: await read(client, resource.uri) for resource in listed}
        templates = (await client.list_resource_templates()).resource_templates
    documents = {name: json.loads(text) for name, text in texts.items() if text.startswith("{")}
    assert texts["double"].startswith('---\nname: "double"\n')
    assert [one["name"] for one in documents["all skills"]["skills"]] == [
        "broken",
        "crash",
        "double",
        "wrong",
    ]
    assert [run["id"] for run in documents["runs"]["runs"]] == ["t1"]
    assert [one["name"] for one in documents["conversations"]["conversations"]] == ["monday"]
    assert [server["name"] for server in documents["servers"]["servers"]] == ["math", "odd name"]
    odd = documents["server odd name"]
    assert (odd["status"], odd["quarantined"], odd["usable_tools"]) == ("problems", {"bomb": "too deep"}, [])
    assert [tool["name"] for tool in documents["server math"]["usable_tools"]] == ["multiply"]
    assert [template.uri_template for template in templates] == [
        "skill://{name}/SKILL.md",
        "skill://versions/{version}/{name}/SKILL.md",
        "workflow://{skill}",
        "workflow://{skill}/mermaid",
        "workflow://{skill}/versions/{version}",
        "workflow://{skill}/versions/{version}/mermaid",
        "trace://runs/{id}",
        "episode://runs/{id}",
        "episode://conversations/{name}",
        "catalog://servers/{name}",
        "trace://values/{digest}",
        "trace://values/{digest}/{part}",
    ]


async def test_a_kept_value_is_read_in_parts_that_make_up_the_whole(in_process: Connect):
    async with in_process() as client:
        whole = await read(client, VALUE)
        parts = [await read(client, f"{VALUE}/{number}") for number in (1, 2)]
    assert json.loads(whole) == {"text": "ü" * PART_CHARACTERS}
    assert "".join(parts) == whole
    assert len(parts[0]) == PART_CHARACTERS


@pytest.mark.parametrize(
    "uri",
    [
        "catalog://servers/nobody",
        "catalog://servers/",
        "catalog://other",
        "skill://nobody/SKILL.md",
        "skill://double/../../etc/passwd",
        "skill://double",
        "skill://versions/9/double/SKILL.md",
        "skill://versions/1/nobody/SKILL.md",
        "workflow://nobody",
        "workflow://double/versions/0",
        "workflow://double/versions/1/other",
        "trace://runs/unknown",
        "trace://runs/t1/deeper",
        "episode://runs/unknown",
        "episode://conversations/unknown",
        "",
        "trace://values/../../etc/passwd",
        f"trace://values/{'b' * 64}",
        f"{VALUE}/0",
        f"{VALUE}/3",
        f"{VALUE}/x",
        "file:///etc/passwd",
    ],
)
async def test_an_address_with_nothing_there_is_a_protocol_error(in_process: Connect, uri: str):
    async with in_process() as client:
        with pytest.raises(MCPError, match="Resource not found") as refused:
            await client.read_resource(uri)
    assert refused.value.code == types.INVALID_PARAMS


async def test_every_listed_name_is_callable_and_means_one_skill(in_process: Connect, bank: FakeBank):
    odd = [*BUILTIN_NAMES, *(f"skill__{name}" for name in BUILTIN_NAMES), "a" * 40, "skill__", "x__y__z"]
    bank.skills = {name: skill(name) for name in odd}
    async with in_process() as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        results = [await client.call_tool(name, {"value": 2}) for name in names if name not in BUILTIN_NAMES]
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool("skill__nothing", {})
    assert all(NAME_PATTERN.fullmatch(name) and len(name) <= 40 for name in names)
    assert len(set(names)) == len(names) == len(BUILTIN_NAMES) + len(odd)
    assert [result.structured_content for result in results] == [{"doubled": 4.0}] * len(odd)
    assert sorted(bank.called) == sorted(odd)
