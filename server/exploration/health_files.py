"""Health reports in the forms that build systems read: SARIF 2.1.0 and JUnit XML."""

from __future__ import annotations

import json
import re
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from pydantic import JsonValue

from server.exploration.findings import RULES, Finding, HealthReport, Severity

__all__ = ["render_junit", "render_sarif"]

_NOT_XML: Final = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SARIF: Final = "https://json.schemastore.org/sarif-2.1.0.json"


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
    """Return the report as one test suite: a test case for each tool, findings as bad as that as failures."""
    tools = sorted({finding.tool for finding in report.findings if finding.tool} | set(report.slowest))
    named = [*tools, None] if any(f.tool is None for f in report.findings) else [*tools]
    suite = Element("testsuite", name=_clean(report.server), tests=str(len(named)))
    failures = 0
    for tool in named:
        name = _clean(tool or "the server itself")
        case = SubElement(suite, "testcase", classname=_clean(report.server), name=name)
        for finding in report.findings:
            if finding.tool != tool:
                continue
            if not finding.reaches(fail_on):
                SubElement(case, "system-out").text = _clean(f"{finding.rule}: {finding.message}")
                continue
            failures += 1
            failure = SubElement(case, "failure", type=finding.rule, message=_clean(finding.message))
            failure.text = _clean(_told(finding))
    suite.set("failures", str(failures))
    indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(suite, encoding="unicode") + "\n"


def _told(finding: Finding) -> str:
    if finding.call is None:
        return finding.remedy
    arguments = json.dumps(finding.call.arguments, ensure_ascii=False)
    return f"{finding.remedy}\ncalled with: {arguments}\nanswered: {finding.call.answer}"


def _clean(text: str) -> str:
    """Return a text without characters that XML cannot hold."""
    return _NOT_XML.sub("", text)
