"""What a refused call says of its tool: what the exploration lacked, and what the tool does not announce."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pydantic import JsonValue

from catalog.result import CallFailure, FailureKind
from catalog.schema import types
from catalog.similarity import words
from catalog.tools import JsonSchema, Tool
from server.evolution.run_faults import offered_values
from server.exploration.arguments import argument_schemas, is_handle, required_arguments
from server.exploration.observation import Observation
from server.exploration.prose import said_examples

__all__ = ["guessed_arguments", "undeclared_refusals", "what_was_lacked"]

_OWN_FAULTS: Final = frozenset(
    {FailureKind.TIMEOUT, FailureKind.SERVER_UNAVAILABLE, FailureKind.OUTPUT_SCHEMA_MISMATCH}
)
"""What no other value would have spared the call."""
_CREDENTIAL: Final = re.compile(
    r"api[ _-]?key|credential|unauthori[sz]ed|not authori[sz]ed|forbidden|permission denied|log ?in\b|sign in"
    r"|access token|environment variable|\b40[13]\b",
    re.IGNORECASE,
)
_NETWORK: Final = re.compile(
    r"ENOTFOUND|ECONNREFUSED|EAI_AGAIN|getaddrinfo|connection (?:refused|error|failed)|connecterror"
    r"|network|name resolution|fetch failed|unreachable|max retries",
    re.IGNORECASE,
)
_NOT_FOUND: Final = re.compile(
    r"not found|no such|not exist|n't exist|unknown|cannot find|could not find|no \w+ (?:found|named|with)"
    r"|ENOENT|\b404\b|not a (?:file|directory)|expired",
    re.IGNORECASE,
)
_PLACES: Final = frozenset({"dir", "directory", "file", "filename", "folder", "key", "path", "uri", "url"})
_FRAME: Final = re.compile(
    r"^(?:error executing tool [\w./-]+:|(?:\w+error|error|mcp error -?\d+):)\s*", re.IGNORECASE
)
_SAYS_NOTHING: Final = frozenset(
    {"a", "an", "and", "argument", "be", "by", "call", "error", "executing", "failed", "for", "in", "input"}
    | {"is", "it", "not", "of", "or", "the", "to", "tool", "value", "was", "with", "parameter", "required"}
)
_ABOUT_ONE: Final = frozenset({"enum", "boundary"})
"""Kinds of calls that differ from one that worked in a single argument."""


def what_was_lacked(calls: Sequence[Observation]) -> str:
    """Return what valid calls of one tool that all failed did not have, in words.

    Empty where nothing had to be guessed, or where the tool fails by itself (it hangs, it crashes,
    its answer departs from its schema).
    """
    failures = [call.failure for call in calls if call.failure is not None]
    if not failures or all(failure.kind in _OWN_FAULTS for failure in failures):
        return ""
    if outside := _lacked_outside(failures):
        return outside
    tool = calls[0].probe.tool
    guessed = guessed_arguments(tool, required_arguments(tool))
    return f"a valid value of {' and '.join(map(repr, guessed))}" if guessed else ""


def _lacked_outside(failures: Sequence[CallFailure]) -> str:
    if any(_CREDENTIAL.search(failure.message) for failure in failures):
        return "a credential or setting"
    if any(_NETWORK.search(failure.message) for failure in failures):
        return "a network or service that the tool needs"
    return ""


def guessed_arguments(tool: Tool, names: Iterable[str]) -> list[str]:
    """Return those of some arguments whose valid values neither schema nor description tells."""
    schemas = argument_schemas(tool)
    texts = [name for name, schema in schemas.items() if "string" in types(schema)]
    told = said_examples(tool.description) if len(texts) == 1 else []
    return [name for name in names if is_handle(name) or not _is_told(schemas.get(name, {}), told)]


def _is_told(schema: JsonSchema, of_tool: Sequence[str]) -> bool:
    if schema.keys() & {"enum", "const", "examples", "default"}:
        return True
    description = schema.get("description")
    if isinstance(description, str) and said_examples(description):
        return True
    kinds = types(schema)
    if kinds and kinds <= {"integer", "number", "boolean", "null"}:
        return True
    items = schema.get("items")
    if "array" in kinds and isinstance(items, dict):
        return _is_told(items, of_tool)
    return "string" in kinds and bool(of_tool)


def undeclared_refusals(observations: Sequence[Observation]) -> Iterator[tuple[Observation, bool]]:
    """Yield valid calls that were refused though nothing was guessed and nothing announces it.

    With each, whether the schema itself names the value: an enumerated one, a minimum, a maximum.
    Left out are tools that never succeeded, calls of which an equal one succeeded, values that only
    the server gives out, and refusals for want of something outside.
    """
    worked = {o.probe.key for o in observations if o.succeeded}
    alive = {o.probe.tool.id.tool for o in observations if o.succeeded and not o.probe.breaks_schema}
    for call in observations:
        if call.probe.key not in worked and call.probe.tool.id.tool in alive and _is_undeclared(call):
            yield call, _is_named(call)


def _is_undeclared(call: Observation) -> bool:
    failure, probe = call.failure, call.probe
    if failure is None or failure.kind is not FailureKind.TOOL_ERROR:
        return False
    if probe.breaks_schema or probe.kind == "after_change":
        return False
    varied = [probe.about] if probe.kind in _ABOUT_ONE else list(probe.arguments)
    is_guess = any(_is_place(name) for name in varied)
    if probe.kind not in _ABOUT_ONE:
        is_guess = is_guess or bool(guessed_arguments(probe.tool, varied))
    if is_guess or _lacked_outside([failure]) or _NOT_FOUND.search(failure.message):
        return False
    return len(offered_values(failure.message)) < 2 and not _is_announced(call, failure.message)


def _is_place(name: str) -> bool:
    return is_handle(name) or not _PLACES.isdisjoint(words(name))


def _is_named(call: Observation) -> bool:
    schema = argument_schemas(call.probe.tool).get(call.probe.about, {})
    value = call.probe.arguments.get(call.probe.about)
    return call.probe.kind == "enum" or value in (schema.get("minimum", ...), schema.get("maximum", ...))


def _is_announced(call: Observation, message: str) -> bool:
    """Return whether the tool's own words hold at least half of what a refusal says."""
    given = {word for value in call.probe.arguments.values() for word in words(str(value))}
    own = {word for name in argument_schemas(call.probe.tool) for word in words(name)}
    said = set(words(_FRAME.sub("", message[:400]))) - _SAYS_NOTHING - given - own
    told = set(words(" ".join(_texts(call.probe.tool))))
    return bool(said) and len(said & told) * 2 >= len(said)


def _texts(tool: Tool) -> Iterator[str]:
    yield tool.description
    for schema in argument_schemas(tool).values():
        yield from (text for text in (_text(schema.get("description")), _text(schema.get("title"))) if text)


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""
