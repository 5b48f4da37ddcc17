"""Health reports as files: text for the author of the server, JSON, SARIF 2.1.0 and JUnit XML for tools."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from pydantic import JsonValue

from catalog.plain_text import plain_text
from server.exploration.health.findings import Finding, HealthReport
from server.exploration.health.rules import RULES, SEVERITIES, Severity

__all__ = ["render_health", "render_junit", "render_sarif"]

_NOT_XML: Final = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ANSWER: Final = 240
"""Characters of an answer that the text shows."""
_LINE: Final = 4_000
_SARIF: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def render_health(report: HealthReport) -> str:
    """Return the report as text for the author of the server: by severity and rule, each with its remedy."""
    counts = [(report.count(severity), severity) for severity in ("error", "warning", "note")]
    found = ", ".join(f"{count} {name}{'' if count == 1 else 's'}" for count, name in counts if count)
    lines = [
        f"Health of {report.server}: {found or 'nothing found'}"
        f" ({report.tools} tools listed, {report.called} called with {report.calls} calls)"
    ]
    for (severity, rule), findings in groupby(_by_rule(report.findings), key=lambda f: (f.severity, f.rule)):
        lines += ["", f"{severity}  {rule}: {RULES[rule].says}", f"  remedy: {RULES[rule].remedy}"]
        lines += [line for finding in findings for line in _finding_lines(finding)]
    if report.skipped:
        lines += ["", "not called:", *(f"  {name}: {why}" for name, why in report.skipped.items())]
    if report.slowest:
        lines += ["", "slowest:", *(f"  {name}: {seconds:g} s" for name, seconds in report.slowest.items())]
    return "\n".join(_one_line(line) for line in lines) + "\n"


def _one_line(line: str) -> str:
    """Return a line safe to draw, its indentation kept."""
    indentation = line[: len(line) - len(line.lstrip(" "))]
    return indentation + " ".join(plain_text(line, _LINE).split("\n"))


def _by_rule(findings: Iterable[Finding]) -> list[Finding]:
    order = list(RULES)
    return sorted(findings, key=lambda f: (SEVERITIES.index(f.severity), order.index(f.rule), f.tool or ""))


def _finding_lines(finding: Finding) -> Iterator[str]:
    times = f" ({finding.count} times)" if finding.count > 1 else ""
    yield f"  {finding.rule}  {finding.tool or 'the server'}: {finding.message}{times}"
    if finding.call is not None:
        arguments = json.dumps(finding.call.arguments, ensure_ascii=False)
        yield f"      called with {arguments} ({finding.call.seconds:g} s)"
        yield f"      answered {plain_text(finding.call.answer, _ANSWER)}"


def render_sarif(report: HealthReport, version: str) -> str:
    """Return the report as one SARIF run; places are logical: server and tool."""
    used = sorted({finding.rule for finding in report.findings})
    rules: list[JsonValue] = [
        {
            "id": rule,
            "shortDescription": {"text": RULES[rule].says},
            "help": {"text": RULES[rule].remedy},
            "defaultConfiguration": {"level": RULES[rule].severity},
        }
        for rule in used
    ]
    results: list[JsonValue] = [_result(finding, report.server) for finding in report.findings]
    document: dict[str, JsonValue] = {
        "$schema": _SARIF,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "skillbank", "version": version, "rules": rules}},
                "results": results,
            }
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _result(finding: Finding, server: str) -> dict[str, JsonValue]:
    place = "/".join(part for part in (server, finding.tool, finding.argument) if part)
    properties: dict[str, JsonValue] = {"remedy": finding.remedy, "count": finding.count}
    if finding.call is not None:
        properties["call"] = finding.call.model_dump(mode="json")
    return {
        "ruleId": finding.rule,
        "level": finding.severity,
        "message": {"text": f"{finding.tool or server}: {finding.message}"},
        "locations": [
            {
                "logicalLocations": [
                    {"fullyQualifiedName": place, "kind": "function" if finding.tool else "module"}
                ]
            }
        ],
        "properties": properties,
    }


def render_junit(report: HealthReport, fail_on: Severity = "warning") -> str:
    """Return the report as one test suite: a test case for each tool of the server, and the server itself.

    Findings as bad as `fail_on` are failures, the others are printed; a tool that was not called and of
    which nothing as bad was found is skipped, with the reason.
    """
    named = {finding.tool for finding in report.findings if finding.tool}
    tools = sorted({*report.listed, *report.slowest, *named})
    suite = Element("testsuite", name=_clean(report.server), tests=str(len(tools) + 1))
    for tool in (*tools, None):
        case = SubElement(suite, "testcase", classname=_clean(report.server))
        case.set("name", _clean(tool or "the server itself"))
        if tool in report.slowest:
            case.set("time", f"{report.slowest[tool]:.3f}")
        _fill(case, [f for f in report.findings if f.tool == tool], fail_on, report.skipped.get(tool or ""))
    for kind, counted in (("failures", "failure"), ("skipped", "skipped")):
        suite.set(kind, str(len(list(suite.iter(counted)))))
    indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(suite, encoding="unicode") + "\n"


def _fill(case: Element, findings: Sequence[Finding], fail_on: Severity, skipped: str | None) -> None:
    """Add the findings of one test case: skipped first, then failures, then what is only told."""
    failing = [finding for finding in findings if finding.reaches(fail_on)]
    if skipped is not None and not failing:
        SubElement(case, "skipped", message=_clean(skipped))
    for finding in failing:
        failure = SubElement(case, "failure", type=finding.rule, message=_clean(finding.message))
        failure.text = _clean(_told(finding))
    told = [f"{finding.rule}: {finding.message}" for finding in findings if finding not in failing]
    if told:
        SubElement(case, "system-out").text = _clean("\n".join(told))


def _told(finding: Finding) -> str:
    if finding.call is None:
        return finding.remedy
    arguments = json.dumps(finding.call.arguments, ensure_ascii=False)
    return f"{finding.remedy}\ncalled with: {arguments}\nanswered: {finding.call.answer}"


def _clean(text: str) -> str:
    """Return a text without characters that XML cannot hold."""
    return _NOT_XML.sub("", text)
