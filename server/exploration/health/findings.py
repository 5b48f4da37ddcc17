"""Findings about a tool server: what is wrong, how bad it is, and the call that shows it. Values only."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from catalog.plain_text import plain_text
from server.exploration.health.rules import RULES, SEVERITIES, Severity
from server.exploration.observation import Observation

__all__ = ["Finding", "HealthReport", "ShownCall", "by_severity", "finding_of", "not_called", "shown_call"]

_SHOWN = 600


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


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
