"""What an upstream answered, classified: one call's answer or exception to a `CallOutcome`.

Five channels are read (a protocol error, `isError`, error-looking text, failures inside a
structured success, the declared output schema), since a third of real servers tell some errors
as successes. Making the call belongs to `catalog.connection`; the wording of failures to
`catalog.failure_text`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import cast

import anyio.to_thread
import mcp_types as types
from mcp import MCPError
from pydantic import ValidationError

from catalog.canonical import JsonValue
from catalog.errors import SchemaRejected
from catalog.failure_text import NO_TOOL_RESULT, disguised, rejection_kind
from catalog.plain_text import plain_text
from catalog.result import CallFailure, CallOutcome, CallSuccess, FailureKind, RanUpstream
from catalog.schema import is_valid, problems
from catalog.size import LARGE_BYTES, rough_size
from catalog.tools import Tool

__all__ = ["MESSAGE_LIMIT", "OVER_BOUND", "TOO_LARGE", "classify", "classify_large"]

MESSAGE_LIMIT = 2_000
"""Characters of a server's own words that are kept in a failure."""

TOO_LARGE = -31_000
"""JSON-RPC code under which `catalog.transport` reports an answer over its size bound."""

OVER_BOUND = "the answer is over the limit"
"""How an answer over the size bound is said, whatever the transport."""

_BLANKET_HTTP_ERROR = "Server returned an error response"


async def classify_large(
    answer: types.CallToolResult | Exception, tool: Tool | None, seconds: float
) -> CallOutcome:
    """Return what `classify` says; of a large answer in a thread, so that others go on meanwhile."""
    if not isinstance(answer, types.CallToolResult) or _size(answer, LARGE_BYTES) <= LARGE_BYTES:
        return classify(answer, tool, seconds)
    return await anyio.to_thread.run_sync(_classify_whole, answer, tool, seconds, abandon_on_cancel=True)


def _classify_whole(answer: types.CallToolResult, tool: Tool | None, seconds: float) -> CallOutcome:
    outcome, size = classify(answer, tool, seconds), _size(answer, None)
    if isinstance(outcome, CallFailure):
        return replace(outcome, large_bytes=size)
    return replace(outcome, large_bytes=size, large_output=outcome.output)


def _size(answer: types.CallToolResult, enough: int | None) -> int:
    """Return the rough size of an answer, structured content first."""
    size = rough_size(cast("JsonValue", answer.structured_content), enough)
    for block in answer.content:
        if enough is not None and size > enough:
            break
        size += sum(len(text) for text in _texts(block))
    return size


def _texts(block: types.ContentBlock) -> list[str]:
    match block:
        case types.TextContent(text=text):
            return [text]
        case types.ImageContent(data=data) | types.AudioContent(data=data):
            return [data]
        case types.EmbeddedResource(resource=types.TextResourceContents(text=text)):
            return [text]
        case types.EmbeddedResource(resource=types.BlobResourceContents(blob=blob)):
            return [blob]
        case _:
            return []


def classify(answer: types.CallToolResult | Exception, tool: Tool | None, seconds: float) -> CallOutcome:
    """Return what the answer to one `tools/call` comes to.

    Args:
        answer: the result, or the exception that the client raised in its place.
        tool: the called tool as listed; None where the server does not list it.
        seconds: how long the call took.
    """
    if isinstance(answer, types.CallToolResult):
        return _classify_result(_Answer.of(answer, tool), tool, seconds)
    kind, ran, code = _classify_exception(answer, tool)
    return CallFailure(kind, plain_text(_words(answer), MESSAGE_LIMIT), seconds, ran=ran, code=code)


@dataclass(frozen=True, slots=True)
class _Answer:
    content: list[JsonValue]
    structured: JsonValue
    has_structured: bool
    is_error: bool
    meta: dict[str, JsonValue]

    @classmethod
    def of(cls, result: types.CallToolResult, tool: Tool | None) -> _Answer:
        structured = cast("JsonValue", result.structured_content)
        return cls(
            content=[
                cast("JsonValue", block.model_dump(by_alias=True, mode="json", exclude_none=True))
                for block in result.content
            ],
            structured=structured,
            has_structured=structured is not None or _declares_null(result, tool),
            is_error=bool(result.is_error),
            meta=cast("dict[str, JsonValue]", dict(result.meta or {})),
        )

    def failure(self, kind: FailureKind, message: str, seconds: float, ran: RanUpstream) -> CallFailure:
        return CallFailure(
            kind,
            plain_text(message, MESSAGE_LIMIT),
            seconds,
            ran=ran,
            content=self.content,
            structured=_finite(self.structured),
            has_structured=self.has_structured,
            meta=self.meta,
        )


def _declares_null(result: types.CallToolResult, tool: Tool | None) -> bool:
    """Whether a null is the answer itself, rather than a server's way to say there is none."""
    if "structured_content" not in result.model_fields_set or tool is None or tool.output_schema is None:
        return False
    return is_valid(tool.output_schema, None)


def _classify_result(answer: _Answer, tool: Tool | None, seconds: float) -> CallOutcome:
    if answer.is_error:
        message = _error_words(answer)
        kind, ran = rejection_kind(message, tool.id.tool if tool is not None else None)
        return answer.failure(kind, message, seconds, ran)
    if (confession := disguised(answer.structured, answer.content)) is not None:
        return answer.failure(FailureKind.DISGUISED_ERROR, confession, seconds, RanUpstream.YES)
    if tool is not None and (mismatch := _output_mismatch(answer, tool)) is not None:
        return answer.failure(FailureKind.OUTPUT_SCHEMA_MISMATCH, mismatch, seconds, RanUpstream.YES)
    return CallSuccess(answer.structured, answer.content, seconds, answer.has_structured, answer.meta)


def _error_words(answer: _Answer) -> str:
    texts = [
        block["text"]
        for block in answer.content
        if isinstance(block, dict) and isinstance(block.get("text"), str)
    ]
    said = "\n".join(cast("list[str]", texts)).strip()
    if said:
        return said
    return disguised(answer.structured, []) or "the tool reports an error without saying which"


def _output_mismatch(answer: _Answer, tool: Tool) -> str | None:
    if tool.output_schema is None:
        return None
    if not answer.has_structured:
        return "the tool declares an output schema and answered without structured content"
    try:
        found = problems(tool.output_schema, answer.structured)
    except SchemaRejected as rejected:
        return f"the tool's output schema cannot be used: {rejected}"
    if not found:
        return None
    shown = "; ".join(f"{problem.pointer or '/'}: {problem.message}" for problem in found[:3])
    return f"the answer does not fit the tool's own output schema: {shown}"


def _classify_exception(answer: Exception, tool: Tool | None) -> tuple[FailureKind, RanUpstream, int | None]:
    if isinstance(answer, MCPError):
        return *_classify_protocol_error(answer, tool), answer.code
    if isinstance(answer, ValidationError):
        return FailureKind.TOOL_ERROR, RanUpstream.YES, None
    return FailureKind.SERVER_UNAVAILABLE, RanUpstream.UNSURE, None


def _classify_protocol_error(error: MCPError, tool: Tool | None) -> tuple[FailureKind, RanUpstream]:
    match error.code:
        case types.CONNECTION_CLOSED:
            return FailureKind.SERVER_UNAVAILABLE, RanUpstream.UNSURE
        case types.REQUEST_TIMEOUT:
            return FailureKind.TIMEOUT, RanUpstream.UNSURE
        case code if code == TOO_LARGE or (code == types.PARSE_ERROR and OVER_BOUND in error.message):
            return FailureKind.OVER_LIMIT, RanUpstream.YES
        case types.METHOD_NOT_FOUND:
            return FailureKind.UNKNOWN_TOOL, RanUpstream.NO
        case types.INTERNAL_ERROR if error.message == _BLANKET_HTTP_ERROR:
            return FailureKind.SERVER_UNAVAILABLE, RanUpstream.UNSURE
        case _:
            pass
    kind, ran = rejection_kind(error.message, tool.id.tool if tool is not None else None)
    if error.code == types.INVALID_PARAMS and kind is FailureKind.TOOL_ERROR:
        return FailureKind.INVALID_ARGUMENT, RanUpstream.NO
    return kind, ran


def _words(answer: Exception) -> str:
    if isinstance(answer, MCPError):
        data = cast("object", answer.data)
        return f"{answer.message}: {data}" if isinstance(data, str) and data else answer.message
    if isinstance(answer, ValidationError):
        first = answer.errors(include_url=False, include_context=False)[0]
        place = "/".join(str(part) for part in first["loc"])
        return f"{NO_TOOL_RESULT}: {place}: {first['msg']}"
    return str(answer) or type(answer).__name__


def _finite(value: JsonValue) -> JsonValue:
    """Return the value with NaN and the infinities as their names, which JSON can hold."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            return {key: _finite(item) for key, item in value.items()}
        case list():
            return [_finite(item) for item in value]
        case _:
            return value
