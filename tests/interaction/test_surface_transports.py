"""What must hold over every transport in both eras: real processes, real sockets."""

from __future__ import annotations

from typing import Any

import anyio
import mcp.types as types
import pytest
from mcp import Client, MCPError

from server.surface import BUILTIN_NAMES

pytestmark = pytest.mark.anyio
MODERN_VERSION = "2026-07-28"


class Person:
    """Answers every question with one choice, and keeps the questions."""

    def __init__(self, *decisions: str) -> None:
        self.decisions = list(decisions)
        self.asked: list[types.ElicitRequestFormParams] = []

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
        del context
        self.asked.append(params)
        decision = self.decisions.pop(0)
        if decision in ("decline", "cancel"):
            return types.ElicitResult(action=decision)  # pyright: ignore[reportArgumentType]
        return types.ElicitResult(action="accept", content={"decision": decision})


def sending(*recipients: str) -> dict[str, Any]:
    """Return arguments that make the bank send mails."""
    workflow = {"name": "send", "inputs": {"type": "object"}, "nodes": [], "outputs": {}}
    return {"workflow": workflow, "inputs": {"to": list(recipients)}}


async def waiting_calls_cancelled(client: Client) -> int:
    result = await client.call_tool("call_tool", {"server": "any", "tool": "counts"})
    return result.structured_content["cancelled"]


async def test_lists_calls_and_refuses(connect, era):
    async with connect() as client:
        assert (client.protocol_version == MODERN_VERSION) == (era != "legacy")
        listed = await client.list_tools()
        result = await client.call_tool("double", {"value": 21})
        refused = await client.call_tool("double", {"value": "much"})
        with pytest.raises(MCPError) as raised:
            await client.call_tool("doubel", {"value": 1})
    assert [tool.name for tool in listed.tools] == [*BUILTIN_NAMES, "broken", "crash", "double", "wrong"]
    assert result.structured_content == {"doubled": 42.0}
    assert refused.is_error is True
    assert raised.value.code == types.INVALID_PARAMS


async def test_promises_list_changes(connect):
    async with connect() as client:
        tools = client.server_capabilities.tools
    assert tools is not None
    assert tools.list_changed is True


async def test_progress_reaches_the_client(connect):
    seen: list[tuple[float, float | None, str | None]] = []

    async def note(done: float, total: float | None, message: str | None) -> None:
        seen.append((done, total, message))

    async with connect() as client:
        await client.call_tool("double", {"value": 1}, progress_callback=note)
        await client.list_tools()  # answered after every earlier message was read
    assert seen == [(1.0, 1.0, "run: twice")]


async def test_cancelling_a_call_reaches_the_upstream_within_a_second(connect):
    async with connect() as client, anyio.create_task_group() as tasks:
        started = anyio.Event()

        async def note(done: float, total: float | None, message: str | None) -> None:
            del done, total, message
            started.set()

        async def call() -> None:
            with stop:
                await client.call_tool("call_tool", {"server": "any", "tool": "wait"}, progress_callback=note)

        stop = anyio.CancelScope()
        tasks.start_soon(call)
        with anyio.fail_after(10):
            await started.wait()
        assert await waiting_calls_cancelled(client) == 0
        stop.cancel()
        with anyio.fail_after(1):
            while await waiting_calls_cancelled(client) == 0:
                await anyio.lowlevel.checkpoint()


async def test_a_saved_skill_is_announced_listed_and_callable(connect, era):
    announced = anyio.Event()

    async def note(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            announced.set()

    async with connect(message_handler=note) as client:
        with anyio.fail_after(15):
            if era == "legacy":
                # A handshake-era client opens its notification stream some time after it connects.
                attempt = 0
                while not announced.is_set():
                    attempt += 1
                    await client.call_tool("solve", {"task": "double", "save_as": f"saved_{attempt}"})
            else:
                async with client.listen(tools_list_changed=True) as changes:
                    await client.call_tool("solve", {"task": "double", "save_as": "saved_1"})
                    await anext(aiter(changes))
        listed = await client.list_tools()
        result = await client.call_tool("saved_1", {"value": 2})
    assert "saved_1" in [tool.name for tool in listed.tools]
    assert result.structured_content == {"doubled": 4.0}


async def test_a_person_is_shown_the_call_and_each_allowed_call_happens_once(connect):
    person = Person("allow this call", "allow this call")
    async with connect(elicitation_callback=person) as client:
        result = await client.call_tool("run_workflow", sending("ann", "bob"))
    assert result.structured_content["outputs"] == {"sent": ["ann", "bob"]}
    first, second = person.asked
    assert "mail/send" in first.message
    assert '"to": "ann"' in first.message
    assert "write" in first.message
    assert '"to": "bob"' in second.message


async def test_all_calls_of_a_tool_may_be_allowed_at_once_until_the_call_ends(connect):
    person = Person("allow all calls of this tool now", "refuse")
    async with connect(elicitation_callback=person) as client:
        allowed = await client.call_tool("run_workflow", sending("ann", "bob", "cat"))
        refused = await client.call_tool("run_workflow", sending("dan"))
    assert allowed.structured_content["outputs"] == {"sent": ["ann", "bob", "cat"]}
    assert refused.structured_content["status"] == "failed"
    assert len(person.asked) == 2


@pytest.mark.parametrize(
    ("decision", "status"),
    [
        pytest.param("refuse", "failed", id="refused-in-the-form"),
        pytest.param("decline", "failed", id="declined"),
        pytest.param("cancel", "needs_approval", id="dismissed"),
        pytest.param("something else", "needs_approval", id="an-answer-that-was-not-offered"),
    ],
)
async def test_without_a_yes_nothing_is_sent(in_process, decision, status):
    async with in_process(elicitation_callback=Person(decision)) as client:
        result = await client.call_tool("run_workflow", sending("ann"))
    assert result.is_error is True
    assert result.structured_content["status"] == status
    assert result.structured_content["calls"] == 0


async def test_a_client_that_cannot_ask_is_told_which_call_needs_approval(connect):
    async with connect() as client:
        result = await client.call_tool("run_workflow", sending("ann"))
    assert result.is_error is True
    assert result.structured_content["status"] == "needs_approval"
    assert 'mail/send with arguments {"to": "ann"}' in result.content[0].text
