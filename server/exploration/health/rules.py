"""The rules by which a server is judged: what is wrong, how bad it is, and what its author can do."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

__all__ = ["RULES", "SEVERITIES", "Rule", "Severity"]

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""The worst first."""


class Rule(BaseModel):
    """One kind of finding."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    severity: Severity
    says: str
    """What is wrong wherever it is found."""
    remedy: str
    """What the author of the server can do."""


def _rule(rule: str, severity: Severity, says: str, remedy: str) -> Rule:
    return Rule(id=rule, severity=severity, says=says, remedy=remedy)


RULES: dict[str, Rule] = {
    rule.id: rule
    for rule in (
        _rule(
            "unavailable",
            "error",
            "the server does not start, or does not list its tools in time",
            "start it by hand with the configured command, and see what it says",
        ),
        _rule("crash", "error", "the process ends during a call", "catch the error and answer with isError"),
        _rule("hang", "error", "a call gets no answer in time", "bound the work, report progress, answer"),
        _rule(
            "output-schema-mismatch",
            "error",
            "an answer does not fit the output schema that the tool declares",
            "correct the output schema or the answer: strict clients refuse it",
        ),
        _rule(
            "malformed-answer",
            "error",
            "an answer is no message, no tool result or no JSON, as the protocol wants",
            "answer with JSON-RPC and the members of a tool result, numbers finite, text in UTF-8",
        ),
        _rule(
            "always-fails",
            "error",
            "no valid call of the tool succeeded (a warning where what it needs could only be guessed)",
            "say in schema and description what a call needs, with an example that works",
        ),
        _rule(
            "disguised-error",
            "error",
            "a failure is told as a success (isError is not set)",
            "set isError on results that report a failure",
        ),
        _rule(
            "quarantined",
            "error",
            "the definition of the tool cannot be used",
            "correct the listed definition",
        ),
        _rule("protocol", "warning", "what the server sends departs from the protocol", "see the detail"),
        _rule(
            "undeclared-values",
            "warning",
            "an argument takes only certain values, and its schema does not say which",
            "declare them as an enum in the schema",
        ),
        _rule(
            "schema-too-wide",
            "warning",
            "the server refuses as invalid what its own schema allows",
            "declare the bound or pattern in the schema",
        ),
        _rule(
            "invalid-accepted",
            "warning",
            "a call that the schema forbids is answered as if it were right",
            "check arguments against the schema before using them",
        ),
        _rule(
            "leaks-internals",
            "warning",
            "an error shows a stack trace or a path of the server's machine",
            "answer with a message for the caller and log the trace",
        ),
        _rule("slow", "warning", "a call takes long", "bound or speed up the work, or report progress"),
        _rule(
            "undeclared-error",
            "note",
            "a call that the schema allows is refused, and neither schema nor description announces it"
            " (a warning where the schema itself names the value)",
            "declare the bound, or say in the description what is refused and how",
        ),
        _rule(
            "contradicts-annotation",
            "warning",
            "the tool says that it only reads, and another tool answers otherwise after it",
            "correct readOnlyHint, or change nothing",
        ),
        _rule(
            "no-tools",
            "warning",
            "the server lists no tool that can be called",
            "list tools, or correct those whose definition cannot be used",
        ),
        _rule("no-description", "warning", "the tool does not say what it does", "write a description"),
        _rule(
            "strict-hosts",
            "warning",
            "strict hosts refuse the definition of the tool",
            "keep to the portable dialect: object at the top, no top-level unions, arrays with items",
        ),
        _rule("untyped-argument", "note", "an argument has no type", "give its schema a type"),
        _rule("no-annotations", "note", "the tool does not say whether it only reads", "set readOnlyHint"),
        _rule(
            "no-output-schema", "note", "structured answers have no declared schema", "declare outputSchema"
        ),
        _rule("long-description", "note", "the description fills a model's context", "shorten it"),
        _rule(
            "unreadable-text",
            "note",
            "data is answered as text in a form that is no JSON (a Python literal)",
            "answer with structured content or JSON",
        ),
        _rule("large-answer", "note", "an answer is very large", "page or bound it"),
        _rule(
            "unknown-argument-ignored",
            "note",
            "a misspelt optional argument goes unnoticed",
            "refuse unknown arguments (additionalProperties: false)",
        ),
        _rule(
            "flaky",
            "error",
            "an equal call fails that succeeded, with no change in between",
            "find what the call depends on beside its arguments: threads, time, order, memory",
        ),
        _rule("volatile", "note", "equal calls give different answers", "say so in the description"),
    )
}
