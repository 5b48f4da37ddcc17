"""Logging in to a real server behind a real authorization server, the test playing the browser."""

from __future__ import annotations

import socket
import time

import anyio
import httpx2
import pytest
from mcp.shared.auth import OAuthClientInformationFull

from catalog.config import Config, OAuthSpec, ServerSpec
from catalog.connections import open_connections
from catalog.errors import LoginFailed
from catalog.login import log_in, log_out
from catalog.result import CallFailure, CallSuccess
from catalog.secret_store import FileSecrets, MemorySecrets
from catalog.testing import ScriptedServer, ScriptedTool
from catalog.testing.oauth import MORE_SCOPE, open_guarded_server, visit
from catalog.tokens import KeptTokens, login_key, login_secrets
from catalog.tools import ToolId

pytestmark = pytest.mark.anyio
WAIT_SECONDS = 20.0
WHO = ToolId("s", "who")


@pytest.fixture
async def guarded():
    async with open_guarded_server(ScriptedServer([ScriptedTool("who", respond=["me"])])) as server:
        yield server


@pytest.fixture
def spec(guarded):
    return ServerSpec("s", url=guarded.url, transport="http", secrets=MemorySecrets())


async def sign_in(spec, browse=visit):
    async with anyio.create_task_group() as browser:

        async def go(url):
            browser.start_soon(browse, url)

        try:
            return await log_in(spec, go, wait_seconds=WAIT_SECONDS)
        except LoginFailed as error:
            return error


async def call(spec):
    config = Config(servers={"s": spec})
    async with open_connections(config) as connections:
        return await connections.call(WHO, {})


async def kept(spec):
    return await KeptTokens(spec.secrets, spec.url, spec.oauth).load()


async def nobody(url):
    raise AssertionError(f"somebody was sent to {url}")


async def test_without_a_login_nobody_is_asked_and_the_server_says_what_it_needs(guarded, spec):
    outcome = await call(spec)
    assert isinstance(outcome, CallFailure)
    assert "s: needs login: skillbank login s (nobody is logged in)" in outcome.message
    assert guarded.log == []


async def test_a_server_that_needs_a_login_leaves_others_alone(spec):
    free = ScriptedServer([ScriptedTool("who", respond=["me"])])
    async with open_guarded_server(free) as other:
        logged_in = ServerSpec("t", url=other.url, transport="http", secrets=MemorySecrets())
        await sign_in(logged_in)
        config = Config(servers={"s": spec, "t": logged_in})
        async with open_connections(config) as connections:
            snapshot = await connections.snapshot()
            assert snapshot.servers == {"t"}
            assert isinstance(await connections.call(ToolId("t", "who"), {}), CallSuccess)


async def test_a_login_is_kept_and_serves_later_connections(guarded, spec):
    found = await sign_in(spec)
    assert (found.status, found.scopes) == ("logged_in", ("tools",))
    assert guarded.log == ["register", "authorize", "exchange"]
    assert isinstance(await call(spec), CallSuccess)
    assert (await log_in(spec, nobody, wait_seconds=WAIT_SECONDS)).status == "already"
    assert guarded.log == ["register", "authorize", "exchange"]


async def test_a_second_login_uses_the_client_that_was_registered(guarded, spec):
    await sign_in(spec)
    guarded.revoke_all()
    assert (await sign_in(spec)).status == "logged_in"
    assert guarded.log.count("register") == 1


async def test_a_client_registered_for_a_port_that_is_taken_is_registered_anew(guarded, spec):
    await sign_in(spec)
    guarded.revoke_all()
    port = (await kept(spec)).client.redirect_uris[0].port
    with socket.create_server(("127.0.0.1", port)):
        assert (await sign_in(spec)).status == "logged_in"
    assert guarded.log.count("register") == 2


async def test_a_call_that_lacks_scope_makes_the_next_login_ask_for_it_once(guarded, spec):
    guarded.calls_need = MORE_SCOPE
    await sign_in(spec)
    outcome = await call(spec)
    assert isinstance(outcome, CallFailure)
    assert f"s: needs login: skillbank login s (it wants more scope: {MORE_SCOPE})" in outcome.message
    assert "refresh" not in guarded.log
    assert (await sign_in(spec)).scopes == ("tools", MORE_SCOPE)
    assert guarded.asked_scopes[1:] == [{"tools", MORE_SCOPE}]
    assert guarded.log.count("register") == 1
    assert isinstance(await call(spec), CallSuccess)
    assert (await log_in(spec, nobody, wait_seconds=WAIT_SECONDS)).status == "already"


async def test_a_no_to_more_scope_leaves_the_login_as_it_is_and_is_asked_again(guarded, spec):
    guarded.calls_need = MORE_SCOPE
    await sign_in(spec)
    await call(spec)
    before = await kept(spec)
    guarded.denies = True
    assert isinstance(await sign_in(spec), LoginFailed)
    assert await kept(spec) == before
    guarded.denies = False
    assert (await sign_in(spec)).status == "logged_in"


async def test_an_expired_token_is_renewed_where_it_is_known_to_be_also_after_a_restart(guarded, spec):
    guarded.lifetime_seconds = 1
    await sign_in(spec)
    key = login_key(spec.url)
    login = await kept(spec)
    spec.secrets.put(key, login.model_copy(update={"expires_at": time.time() - 1}).model_dump_json())
    guarded.lifetime_seconds = 600
    assert isinstance(await call(spec), CallSuccess)
    assert guarded.log[3:] == ["refresh"]
    renewed = await kept(spec)
    assert renewed.tokens.access_token != login.tokens.access_token
    assert renewed.expires_at > time.time() + 500
    assert isinstance(await call(spec), CallSuccess)
    assert guarded.log[3:] == ["refresh"]


async def test_a_token_that_was_revoked_early_is_renewed_once_for_calls_at_the_same_time(guarded, spec):
    await sign_in(spec)
    async with open_connections(Config(servers={"s": spec})) as connections:
        await connections.snapshot()
        guarded.revoke_access()
        outcomes = []

        async def one():
            outcomes.append(await connections.call(WHO, {}))

        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(one)
    assert [type(outcome) for outcome in outcomes] == [CallSuccess] * 5
    assert guarded.log.count("refresh") == 1


async def test_where_every_token_was_revoked_a_login_is_needed(guarded, spec):
    await sign_in(spec)
    guarded.revoke_all()
    outcome = await call(spec)
    assert isinstance(outcome, CallFailure)
    assert "needs login: skillbank login s (" in outcome.message
    assert guarded.log.count("register") == 1


async def test_tokens_that_another_process_renewed_are_taken_over(guarded, spec):
    await sign_in(spec)
    async with open_connections(Config(servers={"s": spec})) as connections:
        await connections.snapshot()
        guarded.revoke_access()
        assert isinstance(await call(spec), CallSuccess)  # renews: the old refresh token is spent
        assert isinstance(await connections.call(WHO, {}), CallSuccess)
    assert guarded.log.count("refresh") == 1


async def test_an_authorization_server_that_is_down_is_no_reason_to_log_in_again(guarded, spec):
    await sign_in(spec)
    before = await kept(spec)
    guarded.revoke_access()
    guarded.outage = 503
    outcome = await call(spec)
    assert isinstance(outcome, CallFailure)
    assert "its authorization server answers HTTP 503" in outcome.message
    assert "needs login" not in outcome.message
    assert await kept(spec) == before
    guarded.outage = None
    assert isinstance(await call(spec), CallSuccess)


async def test_an_answer_to_another_login_is_refused_and_keeps_nothing(guarded, spec):
    guarded.echoes = "another"
    failed = await sign_in(spec)
    assert str(failed) == (
        "s: login failed: the answer that came back belongs to another login (its state differs)"
    )
    assert (await kept(spec)).tokens is None
    assert "exchange" not in guarded.log


async def test_a_refusal_of_the_person_is_told_in_the_words_of_the_server(guarded, spec):
    guarded.denies = True
    assert str(await sign_in(spec)) == "s: login failed: access_denied: not this time"
    assert (await kept(spec)).tokens is None


async def test_tokens_for_another_audience_are_no_login(guarded, spec):
    guarded.audience = "http://127.0.0.1:1/other"
    assert str(await sign_in(spec)) == "s: login failed: it refuses the tokens it was just promised"
    assert "needs login" in (await call(spec)).message


async def test_a_login_that_nobody_comes_back_from_ends(spec):
    visited = []

    async def leave(url):
        visited.append(url)

    with pytest.raises(LoginFailed, match=r"nobody came back within 0\.5 s"):
        await log_in(spec, leave, wait_seconds=0.5)


async def test_other_requests_to_the_loopback_change_nothing(spec):
    async def wander(url):
        redirect = dict(httpx2.URL(url).params)["redirect_uri"]
        async with httpx2.AsyncClient() as browser:
            assert (await browser.get(redirect)).status_code == 400
            assert (await browser.get(redirect.replace("callback", "favicon.ico"))).status_code == 404
            assert (await browser.post(redirect)).status_code == 404
        await visit(url)

    assert (await sign_in(spec, wander)).status == "logged_in"


async def test_the_browser_is_asked_with_pkce_for_this_server_alone(guarded, spec):
    seen = {}

    async def look(url):
        seen.update(httpx2.URL(url).params)
        await visit(url)

    await sign_in(spec, look)
    assert seen["code_challenge_method"] == "S256"
    assert seen["resource"] == guarded.url
    assert seen["redirect_uri"].startswith("http://127.0.0.1:")


async def test_a_client_registered_by_hand_is_used_and_never_registered(guarded):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    guarded.clients["mine"] = OAuthClientInformationFull.model_validate(
        {
            "client_id": "mine",
            "client_secret": "hush-hush",
            "redirect_uris": [f"http://127.0.0.1:{port}/callback"],
            "token_endpoint_auth_method": "client_secret_basic",
            "scope": "tools",
        }
    )
    oauth = OAuthSpec(client_id="mine", client_secret="hush-hush", callback_port=port)
    spec = ServerSpec("s", url=guarded.url, transport="http", secrets=MemorySecrets(), oauth=oauth)
    assert (await sign_in(spec)).status == "logged_in"
    assert guarded.log == ["authorize", "exchange"]
    guarded.revoke_access()
    assert isinstance(await call(spec), CallSuccess)
    assert guarded.log[2:] == ["refresh"]


async def test_a_metadata_document_is_the_client_where_the_server_takes_one(guarded):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    document = "https://example.org/client.json"
    guarded.takes_documents = True
    guarded.clients[document] = OAuthClientInformationFull.model_validate(
        {
            "client_id": document,
            "redirect_uris": [f"http://127.0.0.1:{port}/callback"],
            "token_endpoint_auth_method": "none",
            "scope": "tools",
        }
    )
    oauth = OAuthSpec(client_metadata_url=document, callback_port=port)
    spec = ServerSpec("s", url=guarded.url, transport="http", secrets=MemorySecrets(), oauth=oauth)
    assert (await sign_in(spec)).status == "logged_in"
    assert guarded.log == ["authorize", "exchange"]
    assert isinstance(await call(spec), CallSuccess)


async def test_a_port_to_come_back_to_that_is_taken_fails_the_login(guarded):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        oauth = OAuthSpec(callback_port=taken.getsockname()[1])
        spec = ServerSpec("s", url=guarded.url, transport="http", secrets=MemorySecrets(), oauth=oauth)
        assert "no port to come back to: " in str(await sign_in(spec))


async def test_logging_out_forgets_and_revokes(guarded, spec):
    await sign_in(spec)
    out = await log_out(spec)
    assert (out.was_logged_in, out.revoked) == (True, True)
    assert guarded.tokens == frozenset()
    assert spec.secrets.secrets == {}
    assert "needs login" in (await call(spec)).message
    assert (await log_out(spec)).was_logged_in is False


async def test_the_login_to_an_address_is_not_sent_to_another(spec):
    await sign_in(spec)
    async with open_guarded_server(ScriptedServer([ScriptedTool("who", respond=["me"])])) as other:
        moved = ServerSpec("s", url=other.url, transport="http", secrets=spec.secrets)
        assert "nobody is logged in" in (await call(moved)).message
    assert isinstance(await call(spec), CallSuccess)


async def test_every_token_of_a_kept_login_is_known_as_a_secret(guarded, spec):
    await sign_in(spec)
    (name,) = spec.secrets.secrets
    client = (await kept(spec)).client
    assert set(login_secrets(name, spec.secrets.secrets[name])) == {
        *guarded.tokens,
        *([client.client_secret] if client.client_secret else []),
    }
    assert list(login_secrets("input key of /c", "plain")) == []
    assert list(login_secrets(name, '{"tokens": 1}')) == []


async def test_a_kept_login_survives_in_a_file_of_its_owner_alone(guarded, tmp_path):
    spec = ServerSpec("s", url=guarded.url, transport="http", secrets=FileSecrets(tmp_path / "secrets"))
    await sign_in(spec)
    later = ServerSpec("s", url=guarded.url, transport="http", secrets=FileSecrets(tmp_path / "secrets"))
    assert isinstance(await call(later), CallSuccess)
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (ServerSpec("s", command="x"), "it is started here and has no login"),
        (
            ServerSpec(
                "s", url="http://127.0.0.1:1", transport="http", headers={"authorization": "Bearer x"}
            ),
            "its Authorization header is configured",
        ),
    ],
    ids=["a process", "a header"],
)
async def test_a_server_without_a_login_says_so(spec, message):
    with pytest.raises(LoginFailed, match=message):
        await log_in(spec, nobody, wait_seconds=WAIT_SECONDS)
    with pytest.raises(LoginFailed, match=message):
        await log_out(spec)


async def test_a_server_that_lets_anybody_in_needs_no_login():
    tools = ScriptedServer([ScriptedTool("who", respond=["me"])])
    async with open_guarded_server(tools, lets_anybody_in=True) as server:
        spec = ServerSpec("s", url=server.url, transport="http", secrets=MemorySecrets())
        assert (await log_in(spec, nobody, wait_seconds=WAIT_SECONDS)).status == "open"
        assert isinstance(await call(spec), CallSuccess)


async def test_a_server_that_is_not_there_fails_the_login():
    spec = ServerSpec("s", url="http://127.0.0.1:1/mcp", transport="http", secrets=MemorySecrets())
    with pytest.raises(LoginFailed, match="ConnectError"):
        await log_in(spec, nobody, wait_seconds=WAIT_SECONDS)


async def test_a_configured_token_that_is_refused_is_named_and_no_login_is_offered(guarded):
    spec = ServerSpec(
        "s",
        url=guarded.url,
        transport="http",
        headers={"Authorization": "Bearer stale-token"},
        secrets=MemorySecrets(),
    )
    outcome = await call(spec)
    assert "it refuses its Authorization header (HTTP 401)" in outcome.message
    assert "stale-token" not in outcome.message


async def test_a_login_belongs_to_an_address_however_it_is_written():
    assert login_key("HTTP://Host/mcp#x") == "login to http://host/mcp"
