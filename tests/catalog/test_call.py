"""What servers answered, verbatim, and what it comes to."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types
import pytest
from mcp import MCPError
from pydantic import ValidationError

from catalog.call import MESSAGE_LIMIT, TOO_LARGE, classify
from catalog.failure_text import disguised
from catalog.result import CallFailure, CallSuccess, FailureKind, RanUpstream
from catalog.tools import Tool, ToolId

NO, YES, UNSURE = RanUpstream.NO, RanUpstream.YES, RanUpstream.UNSURE


def tool(name: str = "convert_units", output_schema: dict[str, Any] | None = None) -> Tool:
    return Tool(ToolId("server", name), {"type": "object"}, output_schema)


def text_result(text: str, *, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=is_error)


def structured_result(value: Any, **fields: Any) -> types.CallToolResult:
    text = types.TextContent(type="text", text=json.dumps(value))
    return types.CallToolResult(content=[text], structured_content=value, **fields)


def failure(answer: types.CallToolResult | Exception, called: Tool | None = None) -> CallFailure:
    outcome = classify(answer, called or tool(), 0.5)
    assert isinstance(outcome, CallFailure), outcome
    return outcome


REPORTED_ERRORS = [
    (
        "convert_units",
        "4 validation errors for call[convert_units]\nfrom_unit\n  Missing required argument "
        "[type=missing_argument, input_value={'value': 300, 'from': 'm..., 'unit_type': 'length'}, "
        "input_type=dict]",
        FailureKind.INVALID_ARGUMENT,
        NO,
    ),
    (
        "convert_units",
        "1 validation error for call[convert_units]\nprecision\n  Unexpected keyword argument "
        "[type=unexpected_keyword_argument, input_value=2, input_type=int]",
        FailureKind.INVALID_ARGUMENT,
        NO,
    ),
    ("convert_length", "Unknown tool: 'convert_length'", FailureKind.UNKNOWN_TOOL, NO),
    ("divide", "Error calling tool 'divide': Cannot divide by zero.", FailureKind.TOOL_ERROR, YES),
    (
        "git_log",
        "Error executing tool git_log: 1 validation error for logArguments\nrepo_path\n  Field required "
        "[type=missing, input_value={'max_count': 1}, input_type=dict]",
        FailureKind.INVALID_ARGUMENT,
        NO,
    ),
    (
        "git_log",
        "Error executing tool git_log: 1 validation error for logArguments\nmax_count\n  Input should be a "
        "valid integer, unable to parse string as an integer [type=int_parsing, input_value='one']",
        FailureKind.INVALID_ARGUMENT,
        NO,
    ),
    ("git_log", "Error executing tool git_log: a scratch folder", FailureKind.TOOL_ERROR, YES),
    (
        "git_show",
        "Error executing tool git_show: Ref 'v9' did not resolve to an object",
        FailureKind.TOOL_ERROR,
        YES,
    ),
    (
        "convert_time",
        "Error executing tool convert_time: Invalid timezone: 'No time zone found with key JST'",
        FailureKind.TOOL_ERROR,
        YES,
    ),
    (
        "gradient",
        "Error executing tool gradient: 1 validation error for gradientOutput\nresult\n  Input should be a "
        "valid string",
        FailureKind.OUTPUT_SCHEMA_MISMATCH,
        YES,
    ),
    (
        "weather",
        "1 validation error for ForecastResponse\ntemp\n  Field required [type=missing]",
        FailureKind.TOOL_ERROR,
        YES,
    ),
    ("add", "Input validation error: 'b' is a required property", FailureKind.INVALID_ARGUMENT, NO),
    ("add", "MCP error -32602: Tool add not found", FailureKind.UNKNOWN_TOOL, NO),
    ("add", "MCP error -32602: Invalid arguments for tool add: [", FailureKind.INVALID_ARGUMENT, NO),
    ("craft", "The smith met an unknown tool: a left-handed hammer", FailureKind.TOOL_ERROR, YES),
    ("find", "Tool screwdriver not found in the shed", FailureKind.TOOL_ERROR, YES),
    ("read", "", FailureKind.TOOL_ERROR, YES),
]


@pytest.mark.parametrize(
    ("name", "text", "kind", "ran"), REPORTED_ERRORS, ids=[row[1][:50] or "silent" for row in REPORTED_ERRORS]
)
def test_an_error_result_is_told_apart_by_its_words(
    name: str, text: str, kind: FailureKind, ran: RanUpstream
) -> None:
    failed = failure(text_result(text, is_error=True), tool(name))
    assert (failed.kind, failed.ran, failed.code) == (kind, ran, None)
    assert failed.content == [{"type": "text", "text": text}]
    assert failed.message


PROTOCOL_ERRORS = [
    (types.INVALID_PARAMS, "Unknown tool: log", FailureKind.UNKNOWN_TOOL, NO),
    (types.INVALID_PARAMS, "Expected number, received string", FailureKind.INVALID_ARGUMENT, NO),
    (types.METHOD_NOT_FOUND, "Method not found", FailureKind.UNKNOWN_TOOL, NO),
    (
        types.INTERNAL_ERROR,
        "add() missing 1 required positional argument: 'b'",
        FailureKind.INVALID_ARGUMENT,
        NO,
    ),
    (types.INTERNAL_ERROR, "disk full", FailureKind.TOOL_ERROR, YES),
    (types.INTERNAL_ERROR, "Server returned an error response", FailureKind.SERVER_UNAVAILABLE, UNSURE),
    (types.INVALID_REQUEST, "no such row", FailureKind.TOOL_ERROR, YES),
    (types.CONNECTION_CLOSED, "Connection closed", FailureKind.SERVER_UNAVAILABLE, UNSURE),
    (types.REQUEST_TIMEOUT, "Request timed out", FailureKind.TIMEOUT, UNSURE),
    (TOO_LARGE, "the answer is over the limit", FailureKind.OVER_LIMIT, YES),
    (types.PARSE_ERROR, "the server's answer cannot be read", FailureKind.TOOL_ERROR, YES),
]


@pytest.mark.parametrize(
    ("code", "message", "kind", "ran"), PROTOCOL_ERRORS, ids=[f"{row[0]} {row[1]}" for row in PROTOCOL_ERRORS]
)
def test_a_protocol_error_is_told_apart_by_code_and_words(
    code: int, message: str, kind: FailureKind, ran: RanUpstream
) -> None:
    failed = failure(MCPError(code, message))
    assert (failed.kind, failed.ran, failed.code, failed.message) == (kind, ran, code, message)


def test_a_result_the_client_library_refuses_is_a_tool_error() -> None:
    with pytest.raises(ValidationError) as refused:
        types.CallToolResult.model_validate({"content": 5})
    failed = failure(refused.value)
    assert (failed.kind, failed.ran) == (FailureKind.TOOL_ERROR, YES)
    assert failed.message.startswith("the server's answer is no tool result: content: ")


CONFESSIONS = [
    (
        {"success": False, "error": "conversion_failed", "message": "Unknown unit in volume: gal or l"},
        "conversion_failed: Unknown unit in volume: gal or l",
    ),
    (
        {"success": False, "data": None, "columns": None, "rowcount": None, "error": "no such table: orders"},
        "no such table: orders",
    ),
    ({"ok": False, "reason": "locked"}, "locked"),
    ({"status": "error", "message": "no account"}, "no account"),
    ({"error": "not found"}, "not found"),
    ({"error": {"code": 5, "message": "quota"}}, "quota"),
    ({"success": True, "result": {"success": False, "error": "deep"}}, "deep"),
    (
        {"results": [{"success": True, "value": 1}, {"success": False, "error": "Unknown unit: x"}]},
        "1 of 2 items failed; item 1: Unknown unit: x",
    ),
    (
        [{"success": False, "error": "a"}, {"success": False, "error": "b"}],
        "2 of 2 items failed; item 0: a",
    ),
    ({"mean": float("nan")}, "the answer contains NaN or Infinity, which is no JSON number"),
    ({"rows": [[1.0, float("-inf")]]}, "the answer contains NaN or Infinity, which is no JSON number"),
    ({"result": "Infinity"}, "the answer is Infinity, which is no JSON number"),
    ({"result": "Error: no such column: area"}, "Error: no such column: area"),
]


@pytest.mark.parametrize(("value", "words"), CONFESSIONS, ids=[str(row[0])[:60] for row in CONFESSIONS])
def test_a_structured_success_that_says_it_failed_is_disguised(value: Any, words: str) -> None:
    failed = failure(structured_result(value))
    assert (failed.kind, failed.ran, failed.message) == (FailureKind.DISGUISED_ERROR, YES, words)
    assert failed.has_structured


@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        "Infinity",
        "-Infinity",
        "nan",
        "inf",
        "Error: file not found",
        "Error occurred while reading",
        "An error occurred: ",
        "An unexpected error occurred. Please try again.",
        "Database error: no such table: users",
        "Traceback (most recent call last):\n  File 'x.py', line 1\nValueError: bad",
        "ValueError: invalid literal for int() with base 10: 'x'",
        "Exception occurred in tool",
        "Failed to fetch the page",
        "Invalid channel 'unstable'. Available channels: ",
        "Invalid hexagram number. Please choose between 1 and 64.",
        "Sorry, I could not find that hexagram.",
        "Unable to connect to host",
        "Cannot read file",
        "❌ Error: nothing there",
        '{"success": false, "message": "no"}',
        '{"mean": NaN}',
        '[{"ok": false, "error": "x"}]',
    ],
)
def test_a_text_that_confesses_an_error_is_disguised(text: str) -> None:
    assert failure(text_result(text)).kind is FailureKind.DISGUISED_ERROR


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "Infinity War is a film.",
        "Nancy",
        "No errors: all 12 files are clean.",
        "Error handling in Python\n\nUse try and except. Error: is what a bad script prints.",
        "Errors are part of life",
        "The build log says: Error: could not compile",
        "# Error: a reference\n\nFailed to compile means …",
        "Margin of error: 3 %",
        "Standard error: 0.25",
        "Invalidation of caches is hard",
        "Failed states of the world, a list",
        "Commit history:\nCommit: 27d9\nMessage: Fix error: invalid input\n",
        '{"valid": false, "errors": ["line 3"]}',
        '{"error": null, "success": true}',
        '{"error": 0.05}',
        '{"rows": [{"id": 1, "error": "disk full"}]}',
        '{"status": "failed", "order": 7}',
        "[1, 2]",
        "{not json",
        "Failed to load. " + "This is a long report on a launch. " * 40,
    ],
)
def test_a_document_that_only_speaks_of_errors_passes(text: str) -> None:
    assert isinstance(classify(text_result(text), None, 0.1), CallSuccess)


@pytest.mark.parametrize(
    "value",
    [
        {"valid": False},
        {"success": True, "error": None},
        {"errors": ["unused import"], "count": 1},
        {"results": []},
        {"result": [{"error": "seen in a log", "id": 4}]},
        {"title": "Failed to launch"},
    ],
    ids=str,
)
def test_a_structured_answer_about_errors_passes(value: Any) -> None:
    assert disguised(value, []) is None


def test_several_blocks_are_not_read_as_an_apology() -> None:
    blocks: list[Any] = [{"type": "text", "text": "Error: one of several"}, {"type": "text", "text": "fine"}]
    assert disguised(None, blocks) is None


OUTPUT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def test_an_answer_that_breaks_the_declared_output_is_a_mismatch() -> None:
    failed = failure(structured_result({"n": "three"}), tool(output_schema=OUTPUT))
    assert (failed.kind, failed.ran) == (FailureKind.OUTPUT_SCHEMA_MISMATCH, YES)
    assert "/n" in failed.message
    assert failed.structured == {"n": "three"}


def test_a_declared_output_that_is_missing_is_a_mismatch() -> None:
    failed = failure(text_result("3"), tool(output_schema=OUTPUT))
    assert failed.kind is FailureKind.OUTPUT_SCHEMA_MISMATCH


def test_a_confession_is_told_before_the_schema_it_also_breaks() -> None:
    failed = failure(structured_result({"success": False, "error": "x"}), tool(output_schema=OUTPUT))
    assert failed.kind is FailureKind.DISGUISED_ERROR


@pytest.mark.parametrize(
    ("schema", "has_structured"), [(None, False), ({"type": ["object", "null"]}, True), (OUTPUT, False)]
)
def test_an_explicit_null_counts_only_where_it_is_declared(schema: Any, has_structured: bool) -> None:
    result = types.CallToolResult(content=[], structured_content=None)
    assert classify(result, tool(output_schema=schema), 0.1).has_structured is has_structured


def test_everything_a_relay_needs_is_in_the_outcome() -> None:
    content = [
        types.TextContent(type="text", text="a\u200bb", _meta={"k": 1}),
        types.ImageContent(type="image", data="aGk=", mime_type="image/png"),
        types.EmbeddedResource(
            type="resource", resource=types.BlobResourceContents(uri="file:///x", blob="aGk=")
        ),
    ]
    result = types.CallToolResult(content=content, structured_content={"n": 1}, _meta={"trace": "t"})
    outcome = classify(result, tool(output_schema=OUTPUT), 0.1)
    assert isinstance(outcome, CallSuccess)
    again = types.CallToolResult.model_validate(
        {"content": outcome.content, "structuredContent": outcome.structured, "_meta": outcome.meta}
    )
    assert again == result


def test_messages_are_cleaned_and_bounded() -> None:
    failed = failure(text_result("\x1b[31mbad\x1b[0m\u202e \u200bthing\x00" + "x" * 9_000, is_error=True))
    assert failed.message.startswith("bad thingxxx")
    assert len(failed.message) == MESSAGE_LIMIT


def test_a_failure_can_be_stored_although_it_held_nan() -> None:
    failed = failure(structured_result({"n": float("nan"), "m": [float("inf")]}))
    assert failed.structured == {"n": "nan", "m": ["inf"]}
