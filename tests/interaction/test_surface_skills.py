"""Skills as packages, workflows and traces as resources, prompts, completion, subscriptions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Literal, cast

import anyio
import mcp.types as types
import pytest
from fake_bank import FakeBank, skill
from inline_snapshot import snapshot
from mcp import Client, MCPError
from pydantic import ConfigDict

from server.bank.publishing import PUBLISHED_CHARACTERS, refresh_published
from server.settings import Settings
from server.surface import BUILTIN_NAMES, BankServer
from server.surface.skills_extension import SKILLS_EXTENSION
from server.surface.tasks import TASKS_EXTENSION
from server.wiring import open_bank
from skills_store.skill import Skill

pytestmark = pytest.mark.anyio

Connect = Callable[..., AbstractAsyncContextManager[Client]]


class ListSkills(types.PaginatedRequest[Literal["skills/list"]]):
    method: Literal["skills/list"] = "skills/list"


class UriParams(types.RequestParams):
    uri: str


class GetSkill(types.Request[UriParams, Literal["skills/get"]]):
    method: Literal["skills/get"] = "skills/get"
    params: UriParams


class ReadFolder(types.Request[UriParams, Literal["resources/directory/read"]]):
    method: Literal["resources/directory/read"] = "resources/directory/read"
    params: UriParams


class Anything(types.Result):
    model_config = ConfigDict(extra="allow")


async def ask(client: Client, request: Any) -> dict[str, Any]:
    answer = await client.session.send_request(request, Anything)
    return answer.model_dump(by_alias=True)


async def read(client: Client, uri: str) -> str:
    (contents,) = (await client.read_resource(uri)).contents
    return cast("types.TextResourceContents", contents).text


@pytest.fixture
def modern(bank: FakeBank) -> Callable[[], Client]:
    return lambda: Client(BankServer(bank), read_timeout_seconds=10)


async def test_admitted_skills_are_listed_with_digests_that_their_files_have(modern, bank: FakeBank):
    bank.skills = {name: skill(name) for name in ("double", "a_b", "a__b")}
    bank.skills["shadowy"] = skill("shadowy").model_copy(update={"state": "shadow"})
    async with modern() as client:
        declared = client.server_capabilities.extensions
        listed = (await ask(client, ListSkills()))["skills"]
        files = [file for entry in listed for file in entry["resources"]]
        texts = {file["uri"]: await read(client, file["uri"]) for file in files}
    assert declared == {SKILLS_EXTENSION: {"directoryRead": True}, TASKS_EXTENSION: {}}
    assert [entry["uri"] for entry in listed] == [
        "skill://a-b/SKILL.md",
        "skill://a_b/a-b/SKILL.md",
        "skill://double/SKILL.md",
    ]
    assert all(entry["uri"].split("/")[-2] == entry["frontmatter"]["name"] for entry in listed)
    for file in files:
        content = texts[file["uri"]].encode()
        assert file["size"] == len(content)
        assert file["digest"] == f"sha256:{hashlib.sha256(content).hexdigest()}"


async def test_many_skills_come_in_pages(modern, bank: FakeBank):
    bank.skills = {f"skill_{n:03}": skill(f"skill_{n:03}") for n in range(120)}
    seen: list[str] = []
    async with modern() as client:
        cursor: str | None = None
        for _ in range(3):
            page = await ask(client, ListSkills(params=types.PaginatedRequestParams(cursor=cursor)))
            seen += [entry["uri"] for entry in page["skills"]]
            cursor = page.get("nextCursor")
    assert cursor is None
    assert len(set(seen)) == len(seen) == 120


async def test_an_older_version_stays_readable_and_says_its_state(modern, bank: FakeBank):
    bank.skills["double"] = skill("double").model_copy(update={"version": 2, "state": "context_only"})
    async with modern() as client:
        entry = (await ask(client, GetSkill(params=UriParams(uri="skill://versions/1/double/SKILL.md"))))[
            "skill"
        ]
        text = await read(client, entry["uri"])
        document = json.loads(await read(client, "workflow://double/versions/1"))
    assert entry["frontmatter"]["metadata"]["io.skillbank/version"] == "1"
    assert 'io.skillbank/version: "1"' in text
    assert document["name"] == "double"


async def test_folders_are_read_level_by_level(modern):
    async with modern() as client:
        top = await ask(client, ReadFolder(params=UriParams(uri="skill://double")))
        below = await ask(client, ReadFolder(params=UriParams(uri="skill://double/scripts/")))
        with pytest.raises(MCPError) as refused:
            await ask(client, ReadFolder(params=UriParams(uri="skill://double/../etc")))
    assert [(one["name"], one["mimeType"]) for one in top["resources"]] == [
        ("SKILL.md", "text/markdown"),
        ("assets", "inode/directory"),
        ("scripts", "inode/directory"),
    ]
    assert [one["uri"] for one in below["resources"]] == ["skill://double/scripts/run.py"]
    assert refused.value.code == types.INVALID_PARAMS


@pytest.mark.parametrize(
    "uri", ["skill://nobody/SKILL.md", "skill://double/assets/workflow.json", "", "x" * 9_000]
)
async def test_no_skill_at_an_address_is_a_protocol_error(modern, uri: str):
    async with modern() as client:
        with pytest.raises(MCPError, match="No skill is served") as refused:
            await ask(client, GetSkill(params=UriParams(uri=uri)))
    assert refused.value.code == types.INVALID_PARAMS


async def test_a_workflow_is_drawn(in_process: Connect):
    async with in_process() as client:
        drawn = await read(client, "workflow://double/mermaid")
    assert drawn == snapshot(
        """\
flowchart LR
  n_twice["twice: math/multiply"]
  inputs([inputs])
  outputs([outputs])
  inputs -- "value" --> n_twice
  n_twice --> outputs
"""
    )


async def test_an_episode_tells_its_route_and_outcome(in_process: Connect):
    async with in_process() as client:
        story = json.loads(await read(client, "episode://runs/t1"))
        trace = json.loads(await read(client, "trace://runs/t1"))
        conversation = json.loads(await read(client, "episode://conversations/monday"))
    assert (story["task"], story["route"], story["status"]) == ("double three", "direct", "verified")
    assert story["route_reasons"] == ["skill double fits"]
    assert [step["called"] for step in story["steps"]] == ["math/multiply"]
    assert trace["steps"][0]["arguments"] == {"a": 3, "b": 2}
    assert conversation["name"] == "monday"


async def test_prompts_name_their_arguments_and_carry_the_skill(in_process: Connect):
    async with in_process() as client:
        listed = (await client.list_prompts()).prompts
        plan = await client.get_prompt("plan_with_skill", {"skill": "double", "task": "double 21"})
        verify = await client.get_prompt("write_verifier", {"task": "double 21", "skill": "double"})
    assert {p.name: [(a.name, bool(a.required)) for a in p.arguments or []] for p in listed} == snapshot(
        {
            "plan_with_skill": [("skill", True), ("task", True)],
            "write_verifier": [("task", True), ("skill", False)],
        }
    )
    text, package, workflow = [message.content for message in plan.messages]
    assert isinstance(text, types.TextContent)
    assert "double 21" in text.text
    assert isinstance(package, types.EmbeddedResource)
    assert package.resource.uri == "skill://double/SKILL.md"
    assert isinstance(workflow, types.EmbeddedResource)
    assert workflow.resource.uri == "workflow://double"
    (asked,) = [message.content for message in verify.messages]
    assert isinstance(asked, types.TextContent)
    assert "doubled" in asked.text


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("plan_with_skill", {"skill": "double"}, "needs task"),
        ("plan_with_skill", {"skill": "nobody", "task": "x"}, "There is no skill 'nobody'"),
        ("nothing", {}, "Unknown prompt: nothing"),
    ],
)
async def test_a_prompt_that_cannot_be_given_says_what_would_be_right(
    in_process: Connect, name: str, arguments: dict[str, str], said: str
):
    async with in_process() as client:
        with pytest.raises(MCPError, match=said) as refused:
            await client.get_prompt(name, arguments)
    assert refused.value.code == types.INVALID_PARAMS


TEMPLATE = types.ResourceTemplateReference
COMPLETIONS: list[Any] = [
    pytest.param(types.PromptReference(name="plan_with_skill"), "skill", "ou", {}, ["double"], id="prompt"),
    pytest.param(types.PromptReference(name="plan_with_skill"), "task", "d", {}, [], id="own-words"),
    pytest.param(TEMPLATE(uri="workflow://{skill}"), "skill", "d", {}, ["double"], id="skill"),
    pytest.param(TEMPLATE(uri="skill://{name}/SKILL.md"), "name", "wr", {}, ["wrong"], id="package"),
    pytest.param(
        TEMPLATE(uri="skill://versions/{version}/{name}/SKILL.md"),
        "version",
        "",
        {"name": "double"},
        ["1"],
        id="version",
    ),
    pytest.param(TEMPLATE(uri="catalog://servers/{name}"), "name", "ma", {}, ["math"], id="server"),
    pytest.param(TEMPLATE(uri="trace://runs/{id}"), "id", "t", {}, ["t1"], id="run"),
]


@pytest.mark.parametrize(("ref", "argument", "typed", "others", "expected"), COMPLETIONS)
async def test_arguments_are_completed(
    in_process: Connect, ref: Any, argument: str, typed: str, others: dict[str, str], expected: list[str]
):
    async with in_process() as client:
        completed = await client.complete(
            ref, {"name": argument, "value": typed}, context_arguments=others or None
        )
    assert completed.completion.values == expected


async def test_what_cannot_be_completed_is_a_protocol_error(in_process: Connect):
    async with in_process() as client:
        with pytest.raises(MCPError, match="Unknown prompt: nothing"):
            await client.complete(types.PromptReference(name="nothing"), {"name": "x", "value": ""})


async def test_a_listener_hears_of_the_resource_it_names_and_of_the_list(bank: FakeBank):
    server, uris = BankServer(bank), ["workflow://double", "workflow://wrong"]
    with anyio.fail_after(20):
        async with (
            Client(server) as client,
            client.listen(resource_subscriptions=uris, resources_list_changed=True) as events,
        ):
            heard = aiter(events)
            await server.changes.look_now()
            changed = bank.skills["double"]
            other = changed.workflow.model_copy(update={"description": "another one"})
            bank.skills["double"] = changed.model_copy(update={"workflow": other})
            bank.publish("appeared")
            got = {str(await anext(heard)) for _ in range(2)}
    assert any("workflow://double" in event for event in got)
    assert not any("workflow://wrong" in event for event in got)


@pytest.mark.legacy_era
async def test_a_session_hears_of_what_it_subscribed_to_until_it_does_not(bank: FakeBank):
    heard: list[str] = []
    came = anyio.Event()

    async def note(message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            heard.append(message.params.uri)
            came.set()

    server = BankServer(bank)
    with anyio.fail_after(20):
        async with Client(server, mode="legacy", message_handler=note) as client:
            await client.subscribe_resource("workflow://double")
            await client.subscribe_resource("workflow://wrong")
            await client.unsubscribe_resource("workflow://wrong")
            await server.changes.look_now()
            for name in ("double", "wrong"):
                one = bank.skills[name]
                other = one.workflow.model_copy(update={"description": "another one"})
                bank.skills[name] = one.model_copy(update={"workflow": other})
            bank.changes += 1
            await came.wait()
            await server.changes.look_now()
    assert heard == ["workflow://double"]


async def test_a_thousand_skills_cost_a_client_at_most_3000_tokens(tmp_path: Path):
    """All that a host may put before its model, output schemas included, at four characters a token.

    o200k was measured at 4.2. Annotations and icons are for the host's program and its people.
    """
    settings = Settings(tmp_path / "config.json", tmp_path / "store.db", environment={})
    settings.config_path.write_text('{"mcpServers": {}}')
    async with open_bank(settings) as kept:
        for number in range(1_000):
            kept.context.store.add_version(_numbered(number), expected_head=None)
        refresh_published(kept.context)
        async with Client(BankServer(kept), read_timeout_seconds=30) as client:
            listed = await client.list_tools()
    assert listed.next_cursor is None
    sizes = {tool.name: _shown_characters(tool) for tool in listed.tools}
    skills = {name: size for name, size in sizes.items() if name not in BUILTIN_NAMES}
    assert set(BUILTIN_NAMES) < set(sizes)
    assert len(skills) >= 6
    assert sum(sizes.values()) / 4 <= 3_000
    # Whatever the skills are: what they may take beside the tools that are always there is bounded too.
    always = sum(size for name, size in sizes.items() if name in BUILTIN_NAMES)
    assert sum(skills.values()) <= PUBLISHED_CHARACTERS
    assert (always + PUBLISHED_CHARACTERS) / 4 <= 3_000


def _shown_characters(tool: types.Tool) -> int:
    kept = {"name", "title", "description", "input_schema", "output_schema"}
    return len(tool.model_dump_json(by_alias=True, exclude_none=True, include=kept))


def _numbered(number: int) -> Skill:
    """Return a skill whose workflow and test no other has."""
    one = skill(f"skill_{number:04}")
    return one.model_copy(update={"content_hash": f"sha256:{number}", "shape_hash": f"sha256:shape{number}"})


async def test_the_tool_list_is_pinned(in_process: Connect):
    async with in_process() as client:
        tools = (await client.list_tools()).tools
    pinned = [
        (tool.name, sorted(tool.input_schema["properties"]), tool.output_schema is not None) for tool in tools
    ]
    assert pinned[: len(BUILTIN_NAMES)] == snapshot(
        [
            (
                "solve",
                [
                    "assertions",
                    "detail",
                    "inputs",
                    "options",
                    "output_schema",
                    "save_as",
                    "task",
                ],
                False,
            ),
            ("run_workflow", ["assertions", "detail", "inputs", "output_schema", "workflow"], False),
            (
                "repair_workflow",
                [
                    "assertions",
                    "budget_calls",
                    "budget_seconds",
                    "detail",
                    "inputs",
                    "output_schema",
                    "save_as",
                    "task",
                    "workflow",
                ],
                False,
            ),
            ("find_skills", ["limit", "query"], False),
            ("describe_skill", ["name", "version"], False),
            ("call_skill", ["arguments", "name", "version"], False),
            ("find_tools", ["limit", "query"], False),
            ("call_tool", ["arguments", "server", "tool", "trace"], False),
            ("report_outcome", ["detail", "passed", "trace_id"], False),
            ("save_skill", ["calls", "examples", "inputs", "name", "task", "trace"], False),
            ("job", ["action", "arguments", "job", "keep_seconds", "tool", "wait_seconds"], False),
        ]
    )


async def test_lists_say_how_long_they_hold_and_for_whom(modern):
    async with modern() as client:
        tools, prompts = await client.list_tools(), await client.list_prompts()
        fixed = await client.read_resource("workflow://double/versions/1")
        moving = await client.read_resource("workflow://double")
    assert (tools.ttl_ms, tools.cache_scope) == (2_000, "private")
    assert (prompts.ttl_ms, prompts.cache_scope) == (2_000, "private")
    assert (fixed.ttl_ms, moving.ttl_ms) == (24 * 3600 * 1000, 0)
