"""What is wrong with a server as it answers: from the calls of an exploration to findings."""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from typing import Final

from catalog.failure_text import is_malformed
from catalog.result import CallSuccess, FailureKind
from catalog.schema import types
from catalog.size import rough_size
from server.evolution.run_faults import offered_values
from server.exploration.arguments import argument_schemas
from server.exploration.equal_calls import differing_pairs, equal_pairs
from server.exploration.feasibility import Flake
from server.exploration.health.annotations import contradictions
from server.exploration.health.findings import Finding, ShownCall, finding_of, shown_call
from server.exploration.health.refusals import undeclared_refusals, what_was_lacked
from server.exploration.health.rules import Severity
from server.exploration.observation import Observation

__all__ = ["call_findings", "check_finding"]

_GONE: Final = frozenset({FailureKind.TIMEOUT, FailureKind.SERVER_UNAVAILABLE})
_SLOW_SECONDS: Final = 5.0
_LARGE_BYTES: Final = 100_000
_TRACE: Final = re.compile(
    r"Traceback \(most recent call last\)|\n\s+at \S+ \(.+:\d+:\d+\)|(?:/[\w.-]+){3,}\.(?:py|js|ts)\b",
    re.MULTILINE,
)
_LONGEST_READ: Final = 20_000
"""Of a text that is searched or read as a literal: a hostile one may be any length."""
_PYTHON: Final = re.compile(r"^\s*(?:\[\s*[\[({]|\{\s*'|\[\s*'|\()")


def call_findings(observations: Sequence[Observation], changing: Set[str]) -> list[Finding]:
    """Return what the calls show, one finding for each call that shows something.

    Args:
        observations: in order.
        changing: names of the tools that may change what later calls answer.
    """
    found = [finding for observation in observations for finding in _of_call(observation)]
    by_tool: dict[str, list[Observation]] = defaultdict(list)
    for observation in observations:
        by_tool[observation.probe.tool.id.tool].append(observation)
    for calls in by_tool.values():
        found.extend(_of_tool(calls))
    found.extend(_undeclared(observations))
    found.extend(_contradicting(observations))
    said = "an equal call gives another answer than before, with no change in between"
    found.extend(_finding("volatile", two, said) for _, two in differing_pairs(observations, changing))
    return [*found, *_flaky(observations, changing)]


def _of_call(call: Observation) -> Iterator[Finding]:
    failure, probe = call.failure, call.probe
    if failure is not None:
        yield from _of_failure(call)
    elif probe.breaks_schema:
        yield _accepted(call)
    if call.outcome.seconds > _SLOW_SECONDS and (failure is None or failure.kind is not FailureKind.TIMEOUT):
        yield _finding("slow", call, f"it took {call.outcome.seconds:.1f} s")
    if call.succeeded:
        yield from _of_answer(call)


def _of_failure(call: Observation) -> Iterator[Finding]:
    failure = call.failure
    if failure is None:
        return
    match failure.kind:
        case _ if is_malformed(failure.message):
            yield _finding("malformed-answer", call, failure.message[:300])
        case FailureKind.TIMEOUT:
            yield _finding("hang", call, f"no answer within {failure.seconds:.2g} s")
        case FailureKind.SERVER_UNAVAILABLE:
            yield _finding("crash", call, f"the server went away: {failure.message[:200]}")
        case FailureKind.DISGUISED_ERROR:
            yield _finding("disguised-error", call, f"a success that says: {failure.message[:200]}")
        case FailureKind.OVER_LIMIT:
            yield _finding("large-answer", call, failure.message[:200])
        case FailureKind.OUTPUT_SCHEMA_MISMATCH:
            yield _finding("output-schema-mismatch", call, failure.message[:300])
        case _:
            yield from _of_refusal(call)
    if failure.kind is not FailureKind.SERVER_UNAVAILABLE and _TRACE.search(failure.message[:_LONGEST_READ]):
        yield _finding("leaks-internals", call, "its error shows a stack trace or a path")


def _of_refusal(call: Observation) -> Iterator[Finding]:
    failure, probe = call.failure, call.probe
    if failure is None or probe.breaks_schema:
        return
    offered = offered_values(failure.message)
    argument = probe.about or _text_argument(call)
    if len(offered) > 1 and argument and not _enumerates(call, argument):
        shown = ", ".join(map(repr, offered[:6]))
        yield _finding(
            "undeclared-values", call, f"argument {argument!r} takes only some values: {shown}", argument
        )
    elif failure.kind is FailureKind.INVALID_ARGUMENT:
        yield _finding(
            "schema-too-wide", call, f"a valid call is refused: {failure.message[:200]}", probe.about
        )


def _text_argument(call: Observation) -> str:
    message = call.failure.message.lower() if call.failure is not None else ""
    texts = [name for name, value in call.probe.arguments.items() if isinstance(value, str)]
    named = [n for n in texts if n.lower() in message or str(call.probe.arguments[n]).lower() in message]
    return next(iter(named or (texts if len(texts) == 1 else [])), "")


def _enumerates(call: Observation, argument: str) -> bool:
    schema = argument_schemas(call.probe.tool).get(argument, {})
    return "enum" in schema or "const" in schema or not types(schema) & {"string", "array"}


def _accepted(call: Observation) -> Finding:
    kind, about = call.probe.kind, call.probe.about
    if kind == "unknown_argument":
        return _finding("unknown-argument-ignored", call, "an argument that is not declared is ignored")
    said = {
        "missing_argument": f"required argument {about!r} may be left out",
        "wrong_type": f"argument {about!r} takes a value of another type",
        "outside_enum": f"argument {about!r} takes a value that is not enumerated",
        "outside_bounds": f"argument {about!r} takes a value outside of its bounds",
    }
    return _finding("invalid-accepted", call, said[kind], about)


def _of_answer(call: Observation) -> Iterator[Finding]:
    outcome = call.outcome
    if not isinstance(outcome, CallSuccess):
        return
    size = outcome.large_bytes or rough_size(outcome.output)
    if size > _LARGE_BYTES:
        yield _finding("large-answer", call, f"an answer of {size // 1000} kB")
    text = outcome.output.get("text") if isinstance(outcome.output, dict) else None
    if isinstance(text, str) and _PYTHON.match(text) and _is_python(text):
        yield _finding("unreadable-text", call, "data is answered as a Python literal, not as JSON")
    if outcome.has_structured and call.probe.tool.output_schema is None:
        yield _finding("no-output-schema", call, "it answers with structured content and declares no schema")


def _is_python(text: str) -> bool:
    if len(text) > _LONGEST_READ:
        return False
    try:
        return isinstance(ast.literal_eval(text), list | dict | tuple | set)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False


def _of_tool(calls: list[Observation]) -> Iterator[Finding]:
    valid = [call for call in calls if not call.probe.breaks_schema]
    if not valid or any(call.succeeded for call in valid):
        return
    failed = valid[-1].failure
    said = failed.message[:200] if failed is not None else ""
    lacked = what_was_lacked(valid)
    guessing = f"; the exploration may have lacked {lacked}" if lacked else ""
    message = f"{len(valid)} valid calls failed{guessing}; the last: {said}"
    yield _finding("always-fails", valid[-1], message, severity="warning" if lacked else None)


def _undeclared(observations: Sequence[Observation]) -> Iterator[Finding]:
    for call, is_named in undeclared_refusals(observations):
        failure = call.failure
        if failure is None:
            continue
        value = " with a value that its schema names" if is_named else ""
        said = f"a valid call{value} is refused ({failure.kind.value}): {failure.message[:200]}"
        severity: Severity | None = "warning" if is_named else None
        yield _finding("undeclared-error", call, said, call.probe.about, severity)


def _contradicting(observations: Sequence[Observation]) -> Iterator[Finding]:
    for one in contradictions(observations):
        look = one.after.probe
        arguments = json.dumps(look.arguments, ensure_ascii=False)
        said = (
            f"it says that it only reads; after it {look.tool.id.tool} with {arguments[:200]} answers"
            f" {str(one.after.output)[:200]}, without it {str(one.without.output)[:200]}"
        )
        yield _finding("contradicts-annotation", one.change, said)


def check_finding(flake: Flake) -> Finding:
    """Return the finding of a call that failed by its server while a task was checked."""
    told = {
        "flaky": "the same calls succeed in another fresh process; now",
        "hang": "no answer while a task was checked",
        "crash": "the server went away while a task was checked",
    }
    said = f"{told[flake.rule]}: {flake.message[:200]}"
    shown = ShownCall(arguments=flake.arguments, answer=flake.message[:300], seconds=0.0)
    return finding_of(flake.rule, flake.tool.tool, said, call=shown)


def _flaky(observations: Sequence[Observation], changing: Set[str]) -> Iterator[Finding]:
    """Yield the calls that failed though an equal one succeeded, but for those that lost the server."""
    for pair in equal_pairs(observations, changing):
        failed = next((call for call in pair if not call.succeeded), None)
        if failed is None or failed.failure is None or all(not call.succeeded for call in pair):
            continue
        if failed.failure.kind not in _GONE:
            said = (
                f"an equal call succeeds, with no change in between; it says: {failed.failure.message[:200]}"
            )
            yield _finding("flaky", failed, said)


def _finding(
    rule: str,
    call: Observation,
    message: str,
    argument: str | None = None,
    severity: Severity | None = None,
) -> Finding:
    tool, shown = call.probe.tool.id.tool, shown_call(call)
    return finding_of(rule, tool, message, argument=argument, call=shown, severity=severity)
