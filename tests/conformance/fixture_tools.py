"""The tool server that the conformance suite wants, as an upstream of the bank: `python fixture_tools.py`.

Its tools have the names and answers that the suite's scenarios prescribe. It speaks stdio, and asks
its client in the way of 2026-07-28, so that a bank before it has to lead calls through its questions.
"""

# The bodies of tools have one shape.
# ruff: noqa: ARG001

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import mcp.types as types
from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server

Context = ServerRequestContext[Any, Any]
Params = types.CallToolRequestParams
Answer = types.CallToolResult | types.InputRequiredResult
Tool = Callable[[Context, Params], Awaitable[Answer]]

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
TEXT = {"type": "string"}
PAUSE_SECONDS = 0.05

DEFINED: dict[str, types.Tool] = {}
BODIES: dict[str, Tool] = {}


def tool(name: str, schema: dict[str, Any] | None = None) -> Callable[[Tool], Tool]:
    def add(body: Tool) -> Tool:
        DEFINED[name] = types.Tool(
            name=name,
            description=f"Fixture {name}.",
            input_schema=schema or {"type": "object", "additionalProperties": False},
        )
        BODIES[name] = body
        return body

    return add


def text(said: str) -> types.TextContent:
    return types.TextContent(type="text", text=said)


def result(*blocks: types.ContentBlock | str, is_error: bool = False) -> types.CallToolResult:
    content = [text(block) if isinstance(block, str) else block for block in blocks]
    return types.CallToolResult(content=content, is_error=is_error)


def embedded(uri: str, mime_type: str, said: str) -> types.EmbeddedResource:
    contents = types.TextResourceContents(uri=uri, mime_type=mime_type, text=said)
    return types.EmbeddedResource(type="resource", resource=contents)


def answers(name: str, given: types.CallToolResult) -> None:
    @tool(name)
    async def body(ctx: Context, params: Params) -> Answer:
        return given


IMAGE = types.ImageContent(type="image", data=PNG, mime_type="image/png")
answers("test_simple_text", result("This is a simple text response for testing."))
answers("test_image_content", result(IMAGE))
answers("test_audio_content", result(types.AudioContent(type="audio", data=WAV, mime_type="audio/wav")))
answers(
    "test_embedded_resource",
    result(embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")),
)
answers(
    "test_multiple_content_types",
    result(
        "Multiple content types test:",
        IMAGE,
        embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ),
)
answers("test_error_handling", result("This tool intentionally returns an error for testing", is_error=True))

ADDRESS = {"$anchor": "addressDef", "type": "object", "properties": {"street": TEXT, "city": TEXT}}
tool(
    "json_schema_2020_12_tool",
    {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": ADDRESS},
        "properties": {
            "name": TEXT,
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": TEXT,
            "email": TEXT,
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
)(BODIES["test_simple_text"])


@tool("test_tool_with_logging")
async def with_logging(ctx: Context, params: Params) -> Answer:
    for said in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.session.send_log_message("info", said, related_request_id=ctx.request_id)
        await anyio.sleep(PAUSE_SECONDS)
    return result("logged")


BODIES["test_logging_tool"] = with_logging
DEFINED["test_logging_tool"] = DEFINED["test_tool_with_logging"].model_copy(
    update={"name": "test_logging_tool"}
)


@tool("test_tool_with_progress")
async def with_progress(ctx: Context, params: Params) -> Answer:
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100, f"Completed step {done} of 100")
        await anyio.sleep(PAUSE_SECONDS)
    return result(str((ctx.meta or {}).get("progress_token")))


@tool("test_x_mcp_header", {"type": "object", "properties": {"region": {**TEXT, "x-mcp-header": "Region"}}})
async def with_header(ctx: Context, params: Params) -> Answer:
    return result(f"region={(params.arguments or {}).get('region')}")


def form(message: str, properties: dict[str, Any], required: list[str] | None = None) -> types.ElicitRequest:
    schema = {
        "type": "object",
        "properties": properties,
        "required": [*properties] if required is None else required,
    }
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(question: str) -> types.CreateMessageRequest:
    turn = types.SamplingMessage(role="user", content=text(question))
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(messages=[turn], max_tokens=100)
    )


def asks(
    name: str,
    questions: Callable[[dict[str, Any]], dict[str, types.InputRequest]],
    done: Callable[[dict[str, Any]], types.CallToolResult],
    schema: dict[str, Any] | None = None,
    state: str | None = None,
) -> None:
    """Define a tool that asks once, and asks again for what is missing."""

    @tool(name, schema)
    async def body(ctx: Context, params: Params) -> Answer:
        asked = questions(params.arguments or {})
        given = params.input_responses or {}
        if all(key in given for key in asked) and (state is None or params.request_state == state):
            return done(dict(given))
        return types.InputRequiredResult(input_requests=asked, request_state=state)


def user_response(given: dict[str, Any]) -> types.CallToolResult:
    answered = given["asked"]
    return result(f"User response: action={answered.action}, content={json.dumps(answered.content)}")


def filled(given: dict[str, Any], key: str, name: str) -> Any:
    return (given[key].content or {}).get(name)


WITH_MESSAGE = {"type": "object", "properties": {"message": TEXT}}
asks(
    "test_elicitation",
    lambda a: {"asked": form(a["message"], {"response": {**TEXT, "description": "User's response"}})},
    user_response,
    WITH_MESSAGE,
)
asks(
    "test_elicitation_sep1034_defaults",
    lambda _: {
        "asked": form(
            "Please review and update the form fields with defaults",
            {
                "name": {"type": "string", "default": "John Doe"},
                "age": {"type": "integer", "default": 30},
                "score": {"type": "number", "default": 95.5},
                "status": {
                    "type": "string",
                    "enum": ["active", "inactive", "pending"],
                    "default": "active",
                },
                "verified": {"type": "boolean", "default": True},
            },
            [],
        )
    },
    user_response,
)
TITLED = [{"const": "value1", "title": "First"}, {"const": "value2", "title": "Second"}]
asks(
    "test_elicitation_sep1330_enums",
    lambda _: {
        "asked": form(
            "Please choose",
            {
                "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
                "titledSingle": {"type": "string", "oneOf": TITLED},
                "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["One", "Two"]},
                "untitledMulti": {
                    "type": "array",
                    "items": {"type": "string", "enum": ["option1", "option2"]},
                },
                "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
            },
            [],
        )
    },
    user_response,
)
asks(
    "test_sampling",
    lambda a: {"asked": sampling(a["prompt"])},
    lambda given: result(f"LLM response: {given['asked'].content.text}"),
    {"type": "object", "properties": {"prompt": TEXT}},
)
asks("test_missing_capability", lambda _: {"asked": sampling("anything")}, lambda _: result("ok"))

ROUND = "test_input_required_result_"
for named in (f"{ROUND}elicitation", "test_streaming_elicitation"):
    asks(
        named,
        lambda _: {"user_name": form("What is your name?", {"name": TEXT})},
        lambda given: result(f"Hello, {filled(given, 'user_name', 'name')}!"),
    )
asks(
    f"{ROUND}sampling",
    lambda _: {"capital_question": sampling("What is the capital of France?")},
    lambda given: result(f"Model said: {given['capital_question'].content.text}"),
)
asks(
    f"{ROUND}list_roots",
    lambda _: {"client_roots": types.ListRootsRequest()},
    lambda given: result(f"{len(given['client_roots'].roots)} roots"),
)
asks(
    f"{ROUND}request_state",
    lambda _: {"confirm": form("Please confirm", {"ok": {"type": "boolean"}})},
    lambda _: result("state-ok: confirmation received"),
    state="nonce",
)
asks(
    f"{ROUND}multiple_inputs",
    lambda _: {
        "user_name": form("What is your name?", {"name": TEXT}),
        "greeting": sampling("Generate a greeting"),
        "client_roots": types.ListRootsRequest(),
    },
    lambda _: result("All inputs received."),
    state="several",
)
asks(
    f"{ROUND}tampered_state",
    lambda _: {"confirm": form("Please confirm", {"ok": {"type": "boolean"}})},
    lambda _: result("state-ok"),
    state="round-1",
)
asks(
    f"{ROUND}capabilities",
    lambda _: {"sample": sampling("hello"), "ask": form("What is your name?", {"name": TEXT})},
    lambda _: result("both answered"),
)


@tool(f"{ROUND}multi_round")
async def multi_round(ctx: Context, params: Params) -> Answer:
    state = json.loads(params.request_state) if params.request_state else {"round": 0}
    given = dict(params.input_responses or {})
    if state["round"] == 1 and "step1" in given:
        state = {"round": 2, "name": filled(given, "step1", "name")}
        asked: dict[str, types.InputRequest] = {"step2": form("Step 2: which color?", {"color": TEXT})}
    elif state["round"] == 2 and "step2" in given:
        return result(f"{state['name']} likes {filled(given, 'step2', 'color')}.")
    else:
        state, asked = {"round": 1}, {"step1": form("Step 1: which name?", {"name": TEXT})}
    return types.InputRequiredResult(input_requests=asked, request_state=json.dumps(state))


async def list_tools(ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[DEFINED[name] for name in sorted(DEFINED)])


async def call_tool(ctx: Context, params: Params) -> Answer:
    if params.name not in BODIES:
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
    return await BODIES[params.name](ctx, params)


async def main() -> None:
    server = Server("fixture", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    anyio.run(main)
