"""Findings about a tool server: what is wrong, how bad it is, and the call that shows it. Values only."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from catalog.plain_text import plain_text
from server.exploration.observation import Observation

__all__ = [
    "RULES",
    "SEVERITIES",
    "Finding",
    "HealthReport",
    "Rule",
    "Severity",
    "ShownCall",
    "by_severity",
    "finding_of",
    "not_called",
    "shown_call",
]

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""The worst first."""
_SHOWN = 600


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Rule(_Record):
    """One kind of finding."""

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


class ShownCall(_Record):
    """A call as it was made, and what was answered, both cut to what a person reads."""

    arguments: dict[str, JsonValue]
    answer: str
    seconds: float


class Finding(_Record):
    """One thing that is wrong with one tool, or with the server where `tool` is None."""

    rule: str
    severity: Severity
    tool: str | None
    argument: str | None = None
    message: str
    call: ShownCall | None = None
    """The call that shows it, None where the listing does."""
    remedy: str
    count: int = 1
    """Calls that show the same."""

    def reaches(self, threshold: Severity) -> bool:
        """Return whether it is at least as bad as a threshold."""
        return SEVERITIES.index(self.severity) <= SEVERITIES.index(threshold)


class HealthReport(_Record):
    """What an exploration found out about a server, for its author."""

    server: str
    findings: tuple[Finding, ...] = ()
    tools: int = 0
    called: int = 0
    calls: int = 0
    crashes: int = 0
    slowest: dict[str, float] = Field(default_factory=dict[str, float])
    """Seconds of the slowest call of the slowest tools."""
    listed: tuple[str, ...] = ()
    """Names of all tools that the server lists."""
    skipped: dict[str, str] = Field(default_factory=dict[str, str])
    """Tools that were not called, with the reason."""

    def worst(self) -> Severity | None:
        """Return the worst severity found, None where nothing was."""
        return next((severity for severity in SEVERITIES if self.count(severity)), None)

    def count(self, severity: Severity) -> int:
        """Return how many findings have a severity."""
        return sum(finding.severity == severity for finding in self.findings)

    def reaches(self, threshold: Severity) -> bool:
        """Return whether a finding is at least as bad as a threshold."""
        return any(finding.reaches(threshold) for finding in self.findings)


def by_severity(findings: list[Finding]) -> tuple[Finding, ...]:
    """Return findings with the worst first, then by tool; equal ones of a tool once, counted.

    Of equal ones the first of the worst is kept.
    """
    merged: dict[tuple[str, str | None, str | None, str], Finding] = {}
    for finding in findings:
        key = finding.rule, finding.tool, finding.argument, "" if finding.tool else finding.message
        known = merged.get(key)
        if known is None:
            merged[key] = finding
            continue
        kept = min(known, finding, key=lambda f: SEVERITIES.index(f.severity))
        merged[key] = kept.model_copy(update={"count": known.count + finding.count})
    return tuple(
        sorted(
            merged.values(),
            key=lambda f: (SEVERITIES.index(f.severity), f.tool or "", f.rule, f.argument or ""),
        )
    )


def finding_of(
    rule: str,
    tool: str | None,
    message: str,
    *,
    argument: str | None = None,
    call: ShownCall | None = None,
    severity: Severity | None = None,
) -> Finding:
    """Return a finding of a rule, as bad as the rule where nothing else is said."""
    known = RULES[rule]
    return Finding(
        rule=rule,
        severity=severity or known.severity,
        tool=tool,
        argument=argument or None,
        message=message,
        call=call,
        remedy=known.remedy,
    )


def not_called(listed: Iterable[str], called: Collection[str], withheld: Mapping[str, str]) -> dict[str, str]:
    """Return the listed tools that were not called, with the reason."""
    passed = "it was left out, or the budget ended before it"
    return {name: withheld.get(name, passed) for name in listed if name not in called}


def shown_call(observation: Observation) -> ShownCall:
    """Return a call as a report shows it."""
    outcome = observation.outcome
    failure = observation.failure
    said = failure.message if failure is not None else str(observation.output)
    arguments = {name: _cut(value) for name, value in observation.probe.arguments.items()}
    return ShownCall(arguments=arguments, answer=plain_text(said, _SHOWN), seconds=round(outcome.seconds, 3))


def _cut(value: JsonValue) -> JsonValue:
    return f"{value[:200]}…" if isinstance(value, str) and len(value) > 200 else value
