"""How tool servers word their failures: rejections before any effect, and errors told as success.

Pure functions over what a server said. Patterns are anchored at the beginning of short texts and
at keys that carry a verdict, so that a document which merely speaks of errors passes.
"""

from __future__ import annotations

import json
import re

from catalog.canonical import JsonValue
from catalog.large_json import parse_json
from catalog.result import FailureKind, RanUpstream, is_finite

__all__ = ["NOT_JSON_RPC", "NO_TOOL_RESULT", "disguised", "is_malformed", "rejection_kind"]

NOT_JSON_RPC = "the server's answer cannot be read as JSON-RPC"
NO_TOOL_RESULT = "the server's answer is no tool result"
_NO_NUMBER = "the answer contains NaN or Infinity, which is no JSON number"

_HEAD = 1_000
_WEAK_TEXT = 400
_STRONG_TEXT = 4_000

_LEAD = r"(?:(?:error|mcp error -?\d+|error (?:calling|executing) tool [^:\n]{1,120})\s*:\s*)*"
_UNKNOWN_TOOL = re.compile(
    _LEAD
    + r"(?:unknown tool\b|no such tool\b|no tool (?:named|called)\b|tool not found\b|tool does not exist\b"
    r"|(?:the )?tool [`'\"]?(?P<name>[\w./:-]+)[`'\"]? (?:was |is )?(?:not found|unknown|does not exist))",
    re.IGNORECASE,
)
_MODEL = re.compile(r"validation errors? for (?P<model>[\w.]+(?:\[[^\]\n]*\])?)")
_INPUT_MODEL = re.compile(
    r"call\[.*\]|\w*(?:Arguments|Args|Input|Inputs|Params|Parameters|Request)", re.DOTALL
)
_REJECTED = re.compile(
    r"missing required (?:argument|parameter|field|propert|keyword)|unexpected keyword argument"
    r"|invalid arguments? for|invalid (?:tool )?(?:arguments|parameters|params)\b|input validation error"
    r"|input should be a valid|field required|unknown (?:field|argument|parameter|keyword)"
    r"|missing \d+ required (?:positional|keyword-only) argument|is a required property"
    r"|additional properties are not allowed|unexpected (?:argument|parameter|field)"
    r"|unrecognized (?:key|argument)"
    r"|required (?:argument|parameter) .{0,80}(?:missing|not provided)",
    re.IGNORECASE,
)


def rejection_kind(message: str, tool: str | None) -> tuple[FailureKind, RanUpstream]:
    """Return the kind of an error a server reported in words, and whether its tool may have run.

    Args:
        message: the words.
        tool: name of the called tool; None when unknown.
    """
    head = message.strip()[:_HEAD]
    if (unknown := _UNKNOWN_TOOL.match(head)) is not None and unknown["name"] in (None, tool):
        return FailureKind.UNKNOWN_TOOL, RanUpstream.NO
    if (model := _MODEL.search(head)) is not None:
        return _judge_model(model["model"], tool)
    if _REJECTED.search(head):
        return FailureKind.INVALID_ARGUMENT, RanUpstream.NO
    return FailureKind.TOOL_ERROR, RanUpstream.YES


def _judge_model(model: str, tool: str | None) -> tuple[FailureKind, RanUpstream]:
    """Tell a server's check of its arguments from a check of its output or of data it fetched."""
    if model.endswith("Output"):
        return FailureKind.OUTPUT_SCHEMA_MISMATCH, RanUpstream.YES
    if model == tool or _INPUT_MODEL.fullmatch(model):
        return FailureKind.INVALID_ARGUMENT, RanUpstream.NO
    return FailureKind.TOOL_ERROR, RanUpstream.YES


_STRONG = re.compile(
    r"(?:[❌✗✘🚫⚠️\s]*)(?:\[error\]|errors?\s*[:!]"
    r"|(?!(?:no|of|without|any|found)\b)[a-z]+ (?:(?!of\b)[a-z]+ )?error\s*:(?!\s*[\d.+-]*\d)"
    r"|traceback \(most recent call last\)"
    r"|[A-Za-z_.]*(?:Error|Exception)\s*:|exception (?:occurred|while|in)\b"
    r"|error (?:calling|executing) tool\b|error (?:has )?occurred\b"
    r"|an? (?:unexpected |internal |unknown )?(?:error|exception) (?:has )?occurred\b)",
    re.IGNORECASE,
)
_WEAK = re.compile(
    r"(?:[❌✗✘🚫⚠️\s]*)"
    r"(?:error (?:while|when|fetching|reading|writing|parsing|processing|running|during|in|code|\d)"
    r"|failed to \w+|failed\s*:|failure\s*:|unable to \w+|could(?: not|n't) \w+|cannot \w+|can't \w+"
    r"|invalid [\w'\"`(-]+|sorry\b[ ,.!:]|i'm sorry\b|i am sorry\b|apologies\b|no such \w+"
    r"|(?:access|permission) denied\b|unauthorized\b|forbidden\s*[:.!]|missing required\b"
    r"|unknown [\w-]+\s*[:'\"`]|❌|🚫)",
    re.IGNORECASE,
)
_NOT_A_NUMBER = frozenset({"nan", "inf", "+inf", "-inf", "infinity", "+infinity", "-infinity", "∞", "-∞"})
_WRAPPERS = ("result", "data", "response", "output")
_TEXT_WRAPPERS = (*_WRAPPERS, "text", "content")
_LISTS = ("results", "result", "items", "responses", "outputs")


def is_malformed(message: str) -> bool:
    """Return whether the words of a failure are ours for an answer that the protocol does not know."""
    return message.startswith((NOT_JSON_RPC, NO_TOOL_RESULT, _NO_NUMBER))


def disguised(structured: JsonValue, content: list[JsonValue]) -> str | None:
    """Return what a success says went wrong, or None when it is a success.

    Args:
        structured: the structured content, None when there was none.
        content: the content blocks as JSON.
    """
    if not is_finite(structured):
        return _NO_NUMBER
    text = _single_text(content)
    value = structured if structured is not None or text is None else _parsed(text)
    if structured is None and not is_finite(value):
        return _NO_NUMBER
    if (confession := _confession(value)) is not None:
        return confession
    if isinstance(value, dict) and len(value) == 1:
        key, only = next(iter(value.items()))
        if key in _TEXT_WRAPPERS and isinstance(only, str) and (apology := _apology(only)) is not None:
            return apology
    return None if text is None else _apology(text)


def _single_text(content: list[JsonValue]) -> str | None:
    if len(content) != 1 or not isinstance(block := content[0], dict) or block.get("type") != "text":
        return None
    text = block.get("text")
    return text if isinstance(text, str) else None


def _parsed(text: str) -> JsonValue:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return parse_json(text)
    except (ValueError, RecursionError):
        return None


def _confession(value: JsonValue) -> str | None:
    match value:
        case dict():
            return _object_confession(value)
        case list():
            return _items_confession(value)
        case _:
            return None


def _object_confession(value: dict[str, JsonValue]) -> str | None:
    if _says_failed(value):
        return _reason(value)
    for key in _WRAPPERS:
        if isinstance(inner := value.get(key), dict) and _says_failed(inner):
            return _reason(inner)
    for key in _LISTS:
        if isinstance(inner := value.get(key), list) and (found := _items_confession(inner)) is not None:
            return found
    return None


def _items_confession(items: list[JsonValue]) -> str | None:
    """Return which items of a batch failed; rows of data that have an `error` column do not count."""
    failed = [
        (index, item)
        for index, item in enumerate(items)
        if isinstance(item, dict)
        and (item.get("success") is False or item.get("ok") is False or item.get("isError") is True)
    ]
    if not failed:
        return None
    index, item = failed[0]
    return f"{len(failed)} of {len(items)} items failed; item {index}: {_reason(item)}"


def _says_failed(value: dict[str, JsonValue]) -> bool:
    if value.get("success") is False or value.get("ok") is False:
        return True
    status = value.get("status")
    if isinstance(status, str) and status.lower() in ("error", "fail"):
        return True
    if value.get("success") is True or value.get("ok") is True:
        return False
    error = value.get("error")
    return error is True or (isinstance(error, str | dict | list) and bool(error))


def _reason(value: dict[str, JsonValue]) -> str:
    """Return the words a failure object uses, the short code first."""
    said: list[str] = []
    for key in ("error", "error_message", "message", "detail", "details", "reason", "errors"):
        words = _spoken(value.get(key))
        if words and words not in said:
            said.append(words)
    return ": ".join(said) or json.dumps(value, ensure_ascii=False)[:_HEAD]


def _spoken(value: JsonValue) -> str:
    match value:
        case str():
            return value.strip()
        case dict() if isinstance(message := value.get("message"), str):
            return message.strip()
        case dict() | list() if value:
            return json.dumps(value, ensure_ascii=False)[:_HEAD]
        case _:
            return ""


def _apology(text: str) -> str | None:
    stripped = text.strip()
    if stripped.lower() in _NOT_A_NUMBER:
        return f"the answer is {stripped}, which is no JSON number"
    if len(stripped) <= _STRONG_TEXT and _STRONG.match(stripped):
        return stripped
    if len(stripped) <= _WEAK_TEXT and stripped.count("\n") <= 3 and _WEAK.match(stripped):
        return stripped
    return None
