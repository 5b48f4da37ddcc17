"""What one upstream call came to, as a value: success or failure, and a node's output.

Classification of what a server answered into these values belongs to `catalog.call`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

from catalog.canonical import JsonValue, digest
from catalog.large_json import parse_json

__all__ = ["CallFailure", "CallOutcome", "CallSuccess", "FailureKind", "RanUpstream", "node_output"]


class FailureKind(StrEnum):
    """Why a call failed; each is also the kind of the fault it becomes."""

    UNKNOWN_TOOL = "unknown_tool"
    INVALID_ARGUMENT = "invalid_argument"
    """The server refused the arguments before doing anything."""
    TOOL_ERROR = "tool_error"
    DISGUISED_ERROR = "disguised_error"
    """A success that says it failed: apology text, NaN or Infinity, `success: false`."""
    OUTPUT_SCHEMA_MISMATCH = "output_schema_mismatch"
    OVER_LIMIT = "over_limit"
    TIMEOUT = "timeout"
    SERVER_UNAVAILABLE = "server_unavailable"
    DENIED = "denied"
    """The effect policy or the user did not let the call happen."""


class RanUpstream(StrEnum):
    """Whether a failed call may have had its effect."""

    NO = "no"
    """Provably rejected before any effect: unknown tool, invalid parameters, denied, never sent."""
    YES = "yes"
    UNSURE = "unsure"
    """Timed out or lost: counts as run (`CONTRACTS`, Effects)."""


@dataclass(frozen=True, slots=True)
class CallSuccess:
    """A call that did what it says.

    `structured` is the structured content, verbatim, or None when there was none.
    `content` holds the protocol's content blocks as JSON, binaries included.
    """

    structured: JsonValue
    content: list[JsonValue]
    seconds: float
    has_structured: bool = True
    meta: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    large_bytes: int | None = None
    """Rough size of an answer that is too large to be handled on the event loop, None for any other."""
    large_output: JsonValue = None
    """The output of such an answer, worked out already."""

    @property
    def output(self) -> JsonValue:
        """The node output (`CONTRACTS`, Output of a node)."""
        if self.large_bytes is not None:
            return self.large_output
        return self.structured if self.has_structured else node_output(self.content)


@dataclass(frozen=True, slots=True)
class CallFailure:
    """A call that failed.

    `message` is the server's own words where it said any, cleaned of control characters.
    `content` and `structured` hold what it answered, for the trace and for the relay.
    """

    kind: FailureKind
    message: str
    seconds: float
    ran: RanUpstream = RanUpstream.YES
    code: int | None = None
    """JSON-RPC error code, None when the answer was a result."""
    content: list[JsonValue] = field(default_factory=list[JsonValue])
    structured: JsonValue = None
    has_structured: bool = False
    meta: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    large_bytes: int | None = None
    """As of a success."""


CallOutcome = CallSuccess | CallFailure


def node_output(content: list[JsonValue]) -> JsonValue:
    """Return a node's output from content blocks when there was no structured content.

    One text block that parses strictly as a JSON object or array is that value; other single
    text is `{"text": …}`; nothing is `{"text": ""}`; several or non-text blocks are
    `{"content": […]}` with binaries replaced by their digest.
    """
    if not content:
        return {"text": ""}
    if len(content) == 1 and isinstance(content[0], dict) and content[0].get("type") == "text":
        text = content[0].get("text")
        if isinstance(text, str):
            parsed = _parsed_container(text)
            return {"text": text} if parsed is None else parsed
    return {"content": [_without_binary(block) for block in content]}


def _parsed_container(text: str) -> JsonValue:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        value = parse_json(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) and is_finite(value) else None


def is_finite(value: JsonValue) -> bool:
    """Return whether no number anywhere in the value is NaN or infinite."""
    match value:
        case float():
            return math.isfinite(value)
        case dict():
            return all(is_finite(item) for item in value.values())
        case list():
            return all(is_finite(item) for item in value)
        case _:
            return True


def _without_binary(block: JsonValue) -> JsonValue:
    if not isinstance(block, dict):
        return block
    shown = {key: value for key, value in block.items() if key not in ("data", "blob")}
    for key in ("data", "blob"):
        if isinstance(raw := block.get(key), str):
            shown[key] = {"$digest": digest(raw), "size": len(raw)}
    if isinstance(resource := block.get("resource"), dict):
        shown["resource"] = _without_binary(resource)
    return shown
