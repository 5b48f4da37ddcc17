"""Who is let in over HTTP, to what, and that no principal sees anything of another's."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import jwt
import mcp.types as types
import pytest
import uvicorn
from cryptography.hazmat.primitives.asymmetric import rsa
from fake_bank import FakeBank
from mcp import Client, MCPError
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from catalog.config import ServerSpec, carries_credentials
from catalog.testing import ScriptedServer, ScriptedTool
from server.principals import open_bank_of, settings_of
from server.settings import Settings
from server.surface import Access, MachineToken, serve_http, token_file
from server.surface.auth import needed_scope
from server.surface.jwt_tokens import JwtTokens
from server.surface.principals import Principal
from server.surface_options import SurfaceOptions
from server.wiring import open_bank

pytestmark = pytest.mark.anyio
ISSUER, RESOURCE = "https://login.example.org", "https://bank.example.org/mcp"
KEY, OTHER_KEY = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def published(request: httpx2.Request) -> httpx2.Response:
    """Answer as an authorization server does that publishes its metadata and one key."""
    if request.url.path == "/.well-known/oauth-authorization-server":
        return httpx2.Response(200, json={"issuer": ISSUER, "jwks_uri": f"{ISSUER}/keys"})
    if request.url.path == "/keys":
        key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key()))
        return httpx2.Response(200, json={"keys": [{**key, "kid": "k1", "alg": "RS256"}]})
    return httpx2.Response(404)


def token(key: rsa.RSAPrivateKey = KEY, algorithm: str = "RS256", kid: str = "k1", **changes: Any) -> str:
    claims = {
        "iss": ISSUER,
        "aud": RESOURCE,
        "sub": "ann",
        "client_id": "c1",
        "scope": "run",
        "exp": int(time.time()) + 300,
        **changes,
    }
    claims = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(claims, "x" * 64 if algorithm == "HS256" else key, algorithm, headers={"kid": kid})


@asynccontextmanager
async def verifier() -> AsyncGenerator[JwtTokens]:
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(published)) as client:
        yield JwtTokens(ISSUER, RESOURCE, client)


@asynccontextmanager
async def served(access: Access, bank: Any = None) -> AsyncGenerator[str]:
    async with anyio.create_task_group() as tasks:
        urls: list[str] = []
        bound = anyio.Event()

        def ready(url: str) -> None:
            urls.append(url)
            bound.set()

        options = SurfaceOptions(admin=True)
        tasks.start_soon(serve_http, bank or FakeBank(), "127.0.0.1", 0, ready, options, access)
        await bound.wait()
        yield urls[0]
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def as_(url: str, bearer: str, mode: str = "auto") -> AsyncGenerator[Client]:
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {bearer}"}, timeout=60) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=mode, read_timeout_seconds=60) as client:
            yield client


async def posted(url: str, bearer: str | None, method: str = "tools/list", **params: Any) -> httpx2.Response:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": method,
        **({"Mcp-Name": params["name"]} if "name" in params else {}),
        **({} if bearer is None else {"Authorization": f"Bearer {bearer}"}),
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    async with httpx2.AsyncClient(timeout=60) as client:
        return await client.post(url, json=body, headers=headers)


class TestTheTokenOfThisMachine:
    def test_it_is_made_once_and_kept_for_its_owner_alone(self, tmp_path: Path):
        path = tmp_path / "bank" / "store.token"
        first, is_new = token_file(path)
        assert (token_file(path), is_new) == ((first, False), True)
        assert path.stat().st_mode & 0o777 == 0o600
        path.chmod(0o644)
        with pytest.raises(PermissionError, match="chmod 600"):
            token_file(path)

    async def test_only_who_has_it_is_let_in(self):
        async with served(Access(MachineToken("t" * 43))) as url:
            answers = [(await posted(url, given)).status_code for given in (None, "wrong", "t" * 43)]
            with_host = await _with_host(url, "evil.example")
            async with as_(url, "t" * 43) as client:
                called = await client.call_tool("double", {"value": 2})
        assert answers == [401, 401, 200]
        assert with_host == 421
        assert called.structured_content == {"doubled": 4}


async def _with_host(url: str, host: str) -> int:
    async with httpx2.AsyncClient() as client:
        return (await client.post(url, json={}, headers={"Host": host})).status_code


class TestTokensOfAnAuthorizationServer:
    @pytest.mark.parametrize(
        "wrong",
        [
            pytest.param({"aud": "https://other.example/mcp"}, id="for-another-audience"),
            pytest.param({"aud": None}, id="for-nobody"),
            pytest.param({"iss": "https://evil.example"}, id="of-another-issuer"),
            pytest.param({"exp": 1_000}, id="expired"),
            pytest.param({"exp": None}, id="that-never-expires"),
            pytest.param({"key": OTHER_KEY}, id="signed-by-another"),
            pytest.param({"kid": "k2"}, id="of-an-unknown-key"),
            pytest.param({"algorithm": "HS256"}, id="signed-with-a-shared-secret"),
            pytest.param({"sub": None, "client_id": None}, id="of-nobody"),
            pytest.param({"sub": {"a": 1}}, id="of-no-text"),
        ],
    )
    async def test_a_wrong_one_is_refused(self, wrong: dict[str, Any]):
        async with verifier() as tokens:
            assert await tokens.verify_token(token()) is not None
            assert await tokens.verify_token(token(**wrong)) is None

    @pytest.mark.parametrize("text", ["", "a.b.c", "é" * 50, "x" * 100_000, "eyJhbGciOiJub25lIn0.e30."])
    async def test_what_is_no_token_is_refused(self, text: str):
        async with verifier() as tokens:
            assert await tokens.verify_token(text) is None

    async def test_a_refusal_says_where_to_get_one_and_the_metadata_says_for_what(self):
        async with verifier() as tokens, served(Access(tokens, ISSUER, RESOURCE)) as url:
            refused = await posted(url, None)
            async with httpx2.AsyncClient() as client:
                place = "/.well-known/oauth-protected-resource/mcp"
                metadata = (await client.get(url.removesuffix("/mcp") + place)).json()
        assert refused.status_code == 401
        assert f'resource_metadata="https://bank.example.org{place}"' in refused.headers["www-authenticate"]
        assert metadata["resource"] == RESOURCE
        assert metadata["authorization_servers"] == [ISSUER]
        assert metadata["scopes_supported"] == ["read", "run", "admin"]


SCOPED = [
    ("read", "find_skills", {"query": "double"}, True),
    ("read", "double", {"value": 1}, False),
    ("run", "double", {"value": 1}, True),
    ("run", "find_skills", {"query": "double"}, True),
    ("run", "review_skill", {}, False),
    ("admin", "review_skill", {}, True),
    ("", "find_skills", {"query": "double"}, False),
]


class TestScopes:
    @pytest.mark.parametrize(("scope", "tool", "arguments", "allowed"), SCOPED)
    async def test_a_request_needs_its_scope(
        self, scope: str, tool: str, arguments: dict[str, Any], allowed: bool
    ):
        async with verifier() as tokens, served(Access(tokens, ISSUER, RESOURCE)) as url:
            answer = await posted(url, token(scope=scope), "tools/call", name=tool, arguments=arguments)
        assert answer.status_code == (200 if allowed else 403), answer.text
        if not allowed:
            needed = needed_scope("tools/call", tool)
            assert 'error="insufficient_scope"' in answer.headers["www-authenticate"]
            assert f'scope="{needed}"' in answer.headers["www-authenticate"]

    @pytest.mark.legacy_era
    async def test_a_handshake_session_is_held_to_its_scope_too(self):
        async with (
            verifier() as tokens,
            served(Access(tokens, ISSUER, RESOURCE)) as url,
            as_(url, token(scope="read"), mode="legacy") as client,
        ):
            assert (await client.call_tool("find_skills", {"query": "double"})).is_error is not True
            with pytest.raises(MCPError, match="scope 'run'"):
                await client.call_tool("double", {"value": 1})


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    scenario, config = tmp_path / "scenario.json", tmp_path / "config.json"
    tools = [{"name": "say", "behaviour": "echo", "input_schema": TEXT, "output_schema": TEXT}]
    scenario.write_text(json.dumps({"tools": tools, "log": str(tmp_path / "calls.jsonl")}))
    desk = {"command": sys.executable, "args": ["-m", "catalog.testing", str(scenario)]}
    servers = {"desk": desk, "operators": {**desk, "env": {"API_TOKEN": "${BANK_SECRET}"}}}
    own = {"effects": {"desk": {"*": "read"}}}
    config.write_text(json.dumps({"mcpServers": servers, "skillbank": own}))
    return Settings(config, tmp_path / "store.db", environment={**os.environ, "BANK_SECRET": "s3cr3t-value"})


SAY = {
    "name": "said_by_ann",
    "inputs": TEXT,
    "nodes": [
        {
            "id": "say",
            "tool": {"server": "desk", "tool": "say"},
            "arguments": {"text": "$inputs.text"},
        }
    ],
    "outputs": {"said": "$nodes.say.output#/text"},
}
MARK = "annsword"


async def test_two_principals_never_see_anything_of_each_other(settings: Settings):
    async with verifier() as tokens, open_bank(settings) as operator:
        access = Access(tokens, ISSUER, RESOURCE, lambda who: open_bank_of(settings, who.issuer, who.subject))
        async with (
            served(access, operator) as url,
            as_(url, token(scope="admin", sub="ann")) as ann,
            as_(url, token(scope="admin", sub="bob")) as bob,
        ):
            made = await _leave_traces(ann)
            mine, theirs = await _everything(ann, made), await _everything(bob, made)
            assert MARK in json.dumps(mine)
            assert "said_by_ann" in json.dumps(mine)
            assert any("said_by_ann" in seen for place, seen in mine.items() if place.startswith("complete"))
            for place, seen in theirs.items():
                text = json.dumps(seen)
                # A bad id may be said back; nothing that was kept under it may.
                assert MARK not in text, place
                assert "said_by_ann" not in text.replace("there is no skill said_by_ann", ""), place
            # What the operator configured with a secret is offered to neither.
            assert "operators" not in json.dumps(mine["catalog://servers"])
    async with open_bank(settings) as operator:
        assert (operator.context.store.heads(), operator.context.store.traces(5)) == ([], [])


async def _leave_traces(client: Client) -> dict[str, str]:
    """Leave something of everything that is kept, and return its ids."""
    run = await client.call_tool(
        "repair_workflow",
        {
            "workflow": SAY,
            "inputs": {"text": MARK},
            "task": f"say {MARK}",
            "assertions": [f"output.said == '{MARK}'"],
            "save_as": "said_by_ann",
        },
    )
    assert run.structured_content is not None
    assert run.structured_content["skill"] == "said_by_ann", run.structured_content
    say = {"server": "desk", "tool": "say", "arguments": {"text": MARK}}
    await client.call_tool("call_tool", {**say, "trace": "anns_talk"})
    long = {**say, "arguments": {"text": MARK * 200_000}}
    value = (await client.call_tool("call_tool", long)).structured_content
    job = await client.call_tool("job", {"action": "start", "tool": "call_tool", "arguments": say})
    assert value is not None
    assert job.structured_content is not None
    job_id = job.structured_content["job"]
    await client.call_tool("job", {"action": "poll", "job": job_id, "wait_seconds": 20})
    return {"job": job_id, "value": value["uri"], "trace": str(run.structured_content["trace_id"])}


async def _offered(client: Client) -> dict[str, Any]:
    """Return prompts and templates with what completes each of their arguments."""
    prompts = (await client.list_prompts()).prompts
    templates = (await client.list_resource_templates()).resource_templates
    asked: list[tuple[Any, str]] = []
    for prompt in prompts:
        reference = types.PromptReference(type="ref/prompt", name=prompt.name)
        asked += [(reference, argument.name) for argument in prompt.arguments or ()]
    for template in templates:
        place = types.ResourceTemplateReference(type="ref/resource", uri=template.uri_template)
        asked += [(place, name) for name in re.findall(r"\{(\w+)\}", template.uri_template)]
    seen: dict[str, Any] = {
        "prompts": [prompt.model_dump(mode="json") for prompt in prompts],
        "templates": [template.model_dump(mode="json") for template in templates],
    }
    for reference, name in asked:
        answer = await client.complete(reference, {"name": name, "value": ""})
        seen[f"complete {name} of {reference.model_dump_json()}"] = answer.completion.values
    return seen


async def _everything(client: Client, made: dict[str, str]) -> dict[str, Any]:
    """Return what a client sees on every path that lists or reads, ids of another included."""
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "find_skills": ("find_skills", {"query": "say the text"}),
        "describe_skill": ("describe_skill", {"name": "said_by_ann"}),
        "call_skill": ("call_skill", {"name": "said_by_ann", "arguments": {"text": "x"}}),
        "find_tools": ("find_tools", {"query": "say"}),
        "jobs": ("job", {"action": "poll"}),
        "job": ("job", {"action": "poll", "job": made["job"]}),
        "cancel": ("job", {"action": "cancel", "job": made["job"]}),
        "feedback": ("report_outcome", {"trace_id": made["trace"], "passed": True}),
        "save_recording": ("save_skill", {"name": "taken", "trace": "anns_talk"}),
        "save_run": ("save_skill", {"name": "taken_too", "trace": made["trace"]}),
        "review": ("review_skill", {}),
    }
    seen: dict[str, Any] = {}
    for place, (tool, arguments) in calls.items():
        result = await client.call_tool(tool, arguments)
        seen[place] = result.model_dump(mode="json", exclude_none=True)
    seen["tools"] = [tool.model_dump(mode="json") for tool in (await client.list_tools()).tools]
    listed = (await client.list_resources()).resources
    seen["resources"] = [resource.model_dump(mode="json") for resource in listed]
    seen |= await _offered(client)
    for uri in {made["value"], *(resource.uri for resource in listed)}:
        try:
            seen[uri] = (await client.read_resource(uri)).model_dump(mode="json")
        except MCPError as error:
            seen[uri] = error.message
    return seen


async def test_the_older_transport_asks_for_the_same_login():
    async with verifier() as tokens:
        access = Access(tokens, ISSUER, RESOURCE, lambda who: _raise(who))
        async with served(access) as url, httpx2.AsyncClient(timeout=10) as http:
            place = url.removesuffix("/mcp")
            for bearer in (None, "nonsense", token(exp=int(time.time()) - 60), token(aud="https://other")):
                headers = {} if bearer is None else {"Authorization": f"Bearer {bearer}"}
                for answer in (
                    await http.get(f"{place}/sse", headers=headers),
                    await http.post(f"{place}/messages/", headers=headers, json={}),
                ):
                    assert answer.status_code == 401, (bearer, answer.text)
                    assert "resource_metadata" in answer.headers["WWW-Authenticate"]


@pytest.mark.parametrize("scope", ["read", "run"])
async def test_a_good_token_is_served_over_the_older_transport_as_its_scope_says(scope: str, era: str):
    """Each principal has a bank of its own there too: another token does not reach it."""
    banks: dict[str, FakeBank] = {}

    @asynccontextmanager
    async def own(who: Principal) -> AsyncGenerator[FakeBank]:
        yield banks.setdefault(str(who), FakeBank())

    async with verifier() as tokens:
        access = Access(tokens, ISSUER, RESOURCE, own)
        async with served(access) as url:
            for subject in ("ann", "bob"):
                headers = {"Authorization": f"Bearer {token(sub=subject, scope=scope)}"}
                transport = sse_client(f"{url.removesuffix('/mcp')}/sse", headers=headers)
                async with Client(transport, mode=era, read_timeout_seconds=20) as client:
                    assert "double" in [tool.name for tool in (await client.list_tools()).tools]
                    if scope == "read":
                        with pytest.raises(MCPError, match="scope 'run'"):
                            await client.call_tool("double", {"value": 21})
                    else:
                        result = await client.call_tool("double", {"value": 21})
                        assert result.structured_content == {"doubled": 42.0}
    assert len(banks) == 2


SCOPES_OF_JOBS = [
    pytest.param({"action": "poll"}, "read", id="looking"),
    pytest.param({"action": "cancel", "job": "x"}, "run", id="cancelling"),
    pytest.param({"action": "start", "tool": "solve"}, "run", id="beginning"),
    pytest.param({"action": "start", "tool": "explore_server"}, "admin", id="beginning-an-admin-tool"),
    pytest.param(None, "read", id="arguments-not-known"),
]


@pytest.mark.parametrize(("arguments", "scope"), SCOPES_OF_JOBS)
def test_a_job_needs_the_scope_of_what_it_does(arguments: Any, scope: str):
    assert needed_scope("tools/call", "job", arguments) == scope


async def test_an_admin_tool_is_not_begun_as_a_job_by_who_may_only_run():
    async with verifier() as tokens, served(Access(tokens, ISSUER, RESOURCE)) as url:
        start = {"action": "start", "tool": "explore_server", "arguments": {"name": "desk"}}
        answer = await posted(url, token(scope="run"), "tools/call", name="job", arguments=start)
    assert answer.json()["error"]["data"] == {"scope": "admin"}


def _raise(who: object) -> Any:
    raise AssertionError(f"a bank was opened for {who}")


@pytest.mark.parametrize(
    ("shared", "offered"),
    [
        pytest.param(None, ["desk"], id="nothing-said"),
        pytest.param({"*": ["operators"]}, ["operators"], id="for-all"),
        pytest.param({"*": [], "ann": ["d*", "operators"]}, ["desk", "operators"], id="for-one"),
        pytest.param({"bob": ["*"]}, ["desk"], id="for-another"),
    ],
)
async def test_a_principal_is_offered_what_the_operator_shares(
    settings: Settings, shared: dict[str, list[str]] | None, offered: list[str]
):
    document = json.loads(settings.config_path.read_text())
    if shared is not None:
        document["skillbank"]["principals"] = shared
    settings.config_path.write_text(json.dumps(document))
    async with open_bank_of(settings, ISSUER, "sub:ann") as bank:
        assert [server.name for server in bank.servers()] == offered


def test_principals_have_stores_and_secrets_of_their_own(settings: Settings):
    ann, bob = (settings_of(settings, ISSUER, f"sub:{name}") for name in ("ann", "bob"))
    elsewhere = settings_of(settings, "https://other.example", "sub:ann")
    assert len({s.store_path for s in (settings, ann, bob, elsewhere)}) == 4
    ann.open_secrets().put("token of https://x", "anns")
    assert ann.open_secrets().get("token of https://x") == "anns"
    assert bob.open_secrets().get("token of https://x") is None
    assert ann.open_secrets().place != settings.open_secrets().place


@pytest.mark.parametrize(
    ("spec", "carries"),
    [
        pytest.param({"command": "x"}, False, id="a-command"),
        pytest.param({"command": "x", "env": {"LOG": "1"}}, False, id="a-plain-variable"),
        pytest.param({"command": "x", "env": {"API_KEY": "k"}}, True, id="a-variable-named-so"),
        pytest.param({"command": "x", "env": {"A": "${A}"}}, True, id="from-the-environment"),
        pytest.param({"command": "x", "args": ("--api-key", "k")}, True, id="an-argument-named-so"),
        pytest.param({"command": "x", "env": {"API_KEY": "${input:k}"}}, False, id="an-answer-of-theirs"),
        pytest.param({"url": "https://x/mcp", "headers": {"X": "1"}}, True, id="a-header"),
        pytest.param(
            {"url": "https://x/mcp", "headers": {"Authorization": "Bearer ${input:k}"}},
            False,
            id="their-header",
        ),
        pytest.param({"url": "https://u:p@x/mcp"}, True, id="a-password-in-the-address"),
        pytest.param({"command": "x", "env_file": ".env"}, True, id="a-file-of-variables"),
    ],
)
def test_what_carries_credentials_of_the_operator_is_known(spec: dict[str, Any], carries: bool):
    assert carries_credentials(ServerSpec("s", **spec)) == carries


@asynccontextmanager
async def upstream_that_keeps_headers() -> AsyncGenerator[tuple[str, list[dict[bytes, bytes]]]]:
    seen: list[dict[bytes, bytes]] = []
    scripted = ScriptedServer([ScriptedTool("say", lambda given: given, TEXT, TEXT)])
    app = scripted.open().server.streamable_http_app()

    async def keeping(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            seen.append(dict(scope["headers"]))
        await app(scope, receive, send)

    config = uvicorn.Config(keeping, host="127.0.0.1", port=0, log_level="critical")
    socket = config.bind_socket()
    server = uvicorn.Server(config)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server.serve, [socket])
        yield f"http://127.0.0.1:{socket.getsockname()[1]}/mcp", seen
        server.should_exit = True
        server.force_exit = True


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_no_token_of_a_client_reaches_an_upstream(tmp_path: Path, mode: str):
    async with upstream_that_keeps_headers() as (upstream, seen):
        config = tmp_path / "config.json"
        own = {"effects": {"desk": {"*": "read"}}}
        config.write_text(json.dumps({"mcpServers": {"desk": {"url": upstream}}, "skillbank": own}))
        settings = Settings(config, tmp_path / "store.db", environment=dict(os.environ))
        async with verifier() as tokens, open_bank(settings) as operator:
            access = Access(
                tokens, ISSUER, RESOURCE, lambda who: open_bank_of(settings, who.issuer, who.subject)
            )
            given = token(scope="run")
            say = {"server": "desk", "tool": "say", "arguments": {"text": "hello"}}
            async with served(access, operator) as url, as_(url, given, mode=mode) as client:
                said = await client.call_tool("call_tool", say)
    assert said.structured_content == {"text": "hello"}
    assert seen
    for headers in seen:
        assert b"authorization" not in headers
        assert not any(given.encode() in value for value in headers.values())
