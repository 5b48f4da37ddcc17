"""What an upstream asks during a call: put to whoever is behind the call, or refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import MCPError
from mcp.server import Server
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from catalog.config import Forwarded
from catalog.connections import open_upstreams
from catalog.effects import EffectTable, Reset
from catalog.forwarding import NotAnswered
from catalog.result import CallFailure, CallSuccess, FailureKind
from catalog.testing.connecting import served_in_process
from catalog.tools import ToolId
from catalog.transport import LastWords
from catalog.upstream import Upstream
from catalog.wire import Transport

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.legacy_era,
    pytest.mark.filterwarnings("ignore::mcp.MCPDeprecationWarning"),
]

ASK = ToolId("asking", "ask")
FORM = types.ElicitRequestFormParams(
    message="Which city?", requested_schema={"type": "object", "properties": {"name": {"type": "string"}}}
)
eras = pytest.mark.parametrize("era", ["legacy", "modern"])


async def _list(ctx: Any, params: Any) -> types.ListToolsResult:
    del ctx, params
    return types.ListToolsResult(tools=[types.Tool(name="ask", input_schema={"type": "object"})])


async def _call(
    ctx: Any, params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    await ctx.session.send_log_message("warning", "asking", "l", related_request_id=ctx.request_id)
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        given = (params.input_responses or {}).get("city")
        if given is None:
            return types.InputRequiredResult(
                input_requests={"city": types.ElicitRequest(params=FORM)}, request_state="s"
            )
    else:
        given = await ctx.session.elicit_form(FORM.message, FORM.requested_schema)
    content = given.content if isinstance(given, types.ElicitResult) else None
    return types.CallToolResult(content=[], structured_content={"city": content})


@dataclass
class Person:
    """Answers with a city, or not at all."""

    city: str | None = "Oslo"
    log_level: types.LoggingLevel | None = "info"
    waits: bool = False
    asked: list[tuple[str, list[str]]] = field(default_factory=list)
    logged: list[tuple[str, Any]] = field(default_factory=list)

    async def answer(self, server: str, asked: Mapping[str, types.InputRequest]) -> types.InputResponses:
        self.asked.append((server, [question.method for question in asked.values()]))
        if self.waits:
            await anyio.sleep(0.5)
        if self.city is None:
            raise NotAnswered(MCPError(types.INVALID_REQUEST, "nobody is there"))
        given = types.ElicitResult(action="accept", content={"name": self.city})
        return dict.fromkeys(asked, given)

    async def log(self, server: str, said: types.LoggingMessageNotificationParams) -> None:
        self.logged.append((server, said.data))


def upstream(era: Any, *allowed: Forwarded) -> Upstream:
    def opened(reset: Reset, words: LastWords) -> Transport:
        del reset, words
        return served_in_process(Server("asking", version="1", on_list_tools=_list, on_call_tool=_call))

    return Upstream("asking", opened, "in-process", era=era, forwards=frozenset(allowed))


async def called(era: Any, person: Person | None, *allowed: Forwarded, seconds: float = 10) -> Any:
    async with open_upstreams([upstream(era, *allowed)], EffectTable()) as connections:
        with anyio.fail_after(20):
            return await connections.call(ASK, {}, attendant=person, timeout_seconds=seconds)


@eras
async def test_a_trusted_server_gets_the_answer_and_its_log_is_heard(era: Any):
    person = Person()
    outcome = await called(era, person, "elicitation", "log")
    assert isinstance(outcome, CallSuccess)
    assert outcome.structured == {"city": {"name": "Oslo"}}
    assert person.asked == [("asking", ["elicitation/create"])]
    assert set(person.logged) == {("asking", "asking")}


async def test_a_server_that_is_not_trusted_is_refused_and_the_words_say_what_would_help():
    person = Person()
    outcome = await called("modern", person)
    assert isinstance(outcome, CallFailure)
    assert outcome.kind is FailureKind.DENIED
    assert "skillbank.forward.asking" in outcome.message
    assert (person.asked, person.logged) == ([], [])


async def test_a_server_that_is_not_trusted_is_refused_in_the_handshake_era_too():
    person = Person()
    outcome = await called("legacy", person)
    assert isinstance(outcome, CallFailure)
    assert (person.asked, person.logged) == ([], [])


async def test_trust_in_one_thing_is_no_trust_in_another():
    outcome = await called("modern", Person(), "sampling", "roots")
    assert isinstance(outcome, CallFailure)
    assert "elicitation" in outcome.message


async def test_nobody_behind_a_call_is_said():
    outcome = await called("modern", None, "elicitation")
    assert isinstance(outcome, CallFailure)
    assert "nobody is behind this call" in outcome.message


async def test_what_the_client_cannot_answer_is_raised_to_it():
    with pytest.raises(NotAnswered, match="nobody is there"):
        await called("modern", Person(city=None), "elicitation")


async def test_the_time_a_person_takes_is_not_the_servers():
    outcome = await called("modern", Person(waits=True), "elicitation", seconds=0.4)
    assert isinstance(outcome, CallSuccess)
