"""A client of our own MCP server: lists its tools, calls each story's, compares the answers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import cast

import mcp.types as types
from mcp import Client, MCPError
from pydantic import JsonValue

from catalog.child_process import LastWords, open_process
from catalog.config import ServerSpec
from catalog.errors import ServerUnavailable
from catalog.transport import MAX_MESSAGE_BYTES
from catalog.wire import Wire
from server.demo.report import Called
from server.demo.stories import HeldOutCall, Story
from server.progress import Progress, ProgressListener, ignore_progress
from skills_store.workflow.assertions import check_assertion

__all__ = ["ClientSession", "call_as_client"]

_TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ClientSession:
    """What a client saw. `called` has every story by name."""

    tools: tuple[str, ...]
    called: dict[str, Called]


async def call_as_client(
    command: Sequence[str],
    stories: Sequence[Story],
    log: Path,
    progress: ProgressListener = ignore_progress,
) -> ClientSession:
    """Start a server over stdio, list its tools, and call the skill of each story.

    Args:
        command: starts the server.
        stories: whose skills are called, with their held-out arguments.
        log: where the server's words to stderr go.
        progress: told of every call.
    """
    program, *arguments = command
    spec = ServerSpec("skillbank", program, tuple(arguments), env=dict(os.environ))
    words = LastWords()
    try:
        # The whole tree of the server is gone when this is left, also when it is left by an interrupt.
        streams = Wire().around(open_process(spec, words, MAX_MESSAGE_BYTES))
        async with Client(streams, read_timeout_seconds=_TIMEOUT_SECONDS) as client:
            return await _session(client, stories, progress)
    except ExceptionGroup as group:
        lost, defect = group.split((MCPError, ServerUnavailable))
        if lost is None or defect is not None:
            raise
    except MCPError:
        pass  # told below, with what the server said
    except ServerUnavailable as error:
        return _unanswered(stories, f"our server could not be started: {error}")
    finally:
        log.write_bytes(words.stderr)
    return _unanswered(stories, f"our server did not answer; {words.describe() or 'it said nothing'}")


async def _session(client: Client, stories: Sequence[Story], progress: ProgressListener) -> ClientSession:
    tools = {tool.name for tool in (await client.list_tools()).tools}
    called: dict[str, Called] = {}
    for story in stories:
        if story.name in tools:
            progress(Progress("call", f"{story.name} with other arguments"))
            called[story.name] = await _called(client, story)
        else:
            called[story.name] = _wrong(story.call, f"{story.name} is not in tools/list")
    return ClientSession(tuple(sorted(tools)), called)


async def _called(client: Client, story: Story) -> Called:
    started = perf_counter()
    try:
        result = await client.call_tool(story.name, dict(story.call.arguments))
    except MCPError as error:
        return _wrong(story.call, str(error))
    answer = cast("JsonValue", result.structured_content)
    if result.is_error or not isinstance(answer, dict):
        return _wrong(story.call, _words(result))
    wrong = _failed_checks(story.call, answer)
    return Called(
        arguments=story.call.arguments,
        result=answer,
        assertions=story.call.assertions,
        right=not wrong,
        problem="; ".join(wrong),
        seconds=perf_counter() - started,
    )


def _failed_checks(call: HeldOutCall, answer: JsonValue) -> list[str]:
    checked = [
        check_assertion(expression, output=answer, inputs=call.arguments, nodes={})
        for expression in call.assertions
    ]
    return [check.message for check in checked if not check.passed]


def _wrong(call: HeldOutCall, problem: str) -> Called:
    return Called(
        arguments=call.arguments, result=None, assertions=call.assertions, right=False, problem=problem
    )


def _words(result: types.CallToolResult) -> str:
    texts = [block.text for block in result.content if isinstance(block, types.TextContent)]
    return "\n".join(texts) or "no structured answer"


def _unanswered(stories: Sequence[Story], problem: str) -> ClientSession:
    return ClientSession((), {story.name: _wrong(story.call, problem) for story in stories})
