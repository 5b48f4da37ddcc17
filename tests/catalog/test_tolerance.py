"""Tool servers of every quality, each a process of its own: what is usable of them stays usable."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from catalog.config import Config, ServerSpec
from catalog.connections import Connections, open_connections, open_upstreams
from catalog.effects import EffectTable, Reset
from catalog.link import Era
from catalog.result import CallFailure, CallSuccess, FailureKind, RanUpstream
from catalog.schema import is_valid
from catalog.testing.defects import DIALECTS, ODD_NAMES, defect_command
from catalog.tools import ToolId
from catalog.transport import LastWords, open_transport
from catalog.upstream import Upstream
from catalog.wire import Transport

pytestmark = pytest.mark.anyio


Defective = Callable[[str, str], ServerSpec]


@pytest.fixture(params=["modern", "legacy"])
def defective(request: pytest.FixtureRequest) -> Defective:
    """Make a server with a defect, of each era."""

    def made(name: str, defect: str) -> ServerSpec:
        command, args = defect_command(defect, modern=request.param == "modern")
        return ServerSpec(name, command=command, args=args)

    return made


@asynccontextmanager
async def opened(*specs: ServerSpec) -> AsyncGenerator[Connections]:
    with anyio.fail_after(60):
        async with open_connections(Config({spec.name: spec for spec in specs})) as connections:
            yield connections


async def listed(connections: Connections) -> list[str]:
    return [tool.id.tool for tool in await connections.snapshot()]


async def test_a_list_whose_text_is_broken_loses_only_what_cannot_be_read(defective: Defective) -> None:
    async with opened(defective("odd", "unreadable_tools")) as connections:
        assert await listed(connections) == ["good", "latin", "lone", "last"]
        (report,) = connections.reports()
        outcome = await connections.call(ToolId("odd", "last"), {})
        assert isinstance(outcome, CallSuccess)
    assert report.quarantined == {"endless": "input schema: schema is nested deeper than 64"}
    assert [problem.partition(": ")[2] for problem in report.problems] == [
        "it is not UTF-8; what is not was replaced",
        "it is nested deeper than 250 levels; what is below was cut",
        "it holds characters that no text can; they were replaced",
    ]
    described = {tool.id.tool: tool.description for tool in report.tools}
    assert described["latin"] == "gr\ufffd\ufffde"


async def test_a_tool_with_a_hostile_schema_is_kept_back_with_its_reason(defective: Defective) -> None:
    async with opened(defective("odd", "hostile_schemas")) as connections:
        assert await listed(connections) == ["good"]
        (report,) = connections.reports()
        refused = await connections.call(ToolId("odd", "exponential"), {})
        assert isinstance(await connections.call(ToolId("odd", "good"), {}), CallSuccess)
    reasons = {name: reason for name, reason in report.quarantined.items() if name.startswith("in_")}
    assert {name: reason.partition(": ")[2][:40] for name, reason in reasons.items()} == {
        "in_remote": "$ref leaves the document, it is not fetc",
        "in_exponential": "schema expands to more than 20000 subsch",
        "in_nonsense": 'malformed schema: "nonsense" is not vali',
        "in_bottomless": "schema is nested deeper than 64",
        "in_vast": "schema has 388924 bytes, over the limit ",
        "in_no_pattern": "malformed schema: 5 is not valid under a",
    }
    assert {f"in_{name}" for name in report.quarantined if not name.startswith("in_")} == set(reasons)
    assert isinstance(refused, CallFailure)
    assert (refused.kind, refused.ran) == (FailureKind.UNKNOWN_TOOL, RanUpstream.NO)
    assert "quarantined" in refused.message


async def test_every_dialect_of_schemas_is_evaluated_as_it_says(defective: Defective) -> None:
    async with opened(defective("odd", "dialects")) as connections:
        assert await listed(connections) == [*DIALECTS]
        (report,) = connections.reports()
    assert report.quarantined == {}
    for tool in report.tools:
        admitted = [value for value in (1, 0, -1, None) if is_valid(tool.input_schema, {"n": value})]
        assert (tool.id.tool, admitted) == (tool.id.tool, [1])
    (problem,) = report.problems
    assert problem == "tool 'look_around': not checked, for no engine bounds its cost: '^(?!\\\\.)(?=.+@).+$'"


async def test_a_tool_of_any_name_is_called_by_that_name_and_no_other_runs(defective: Defective) -> None:
    async with opened(defective("odd", "odd_names")) as connections:
        names = await listed(connections)
        assert names == [*dict.fromkeys(ODD_NAMES)]
        for name in names:
            outcome = await connections.call(ToolId("odd", name), {})
            assert isinstance(outcome, CallSuccess)
            assert outcome.output == {"text": name}
        (report,) = connections.reports()
    assert report.problems == ("tool 'with space' is listed twice; the first definition counts",)


async def test_a_list_in_one_huge_line_is_read_whole(defective: Defective) -> None:
    async with opened(defective("odd", "huge_list"), defective("good", "none")) as connections:
        assert len(await listed(connections)) == 5_001


async def test_the_other_servers_are_as_they_were_beside_all_of_these(defective: Defective) -> None:
    sick = ["unreadable_tools", "hostile_schemas", "odd_names", "endless_pages", "noise", "wrong_protocol"]
    specs = [defective(defect, defect) for defect in sick]
    async with opened(*specs, defective("good", "none")) as connections:
        await connections.snapshot()
        reports = {report.name: report for report in connections.reports()}
        assert isinstance(await connections.call(ToolId("good", "good"), {}), CallSuccess)
    assert reports["good"].findings == ()
    assert reports["wrong_protocol"].status == "failed"
    assert "1999-01-01" in reports["wrong_protocol"].problems[0]
    assert all(reports[name].status == "ready" and reports[name].findings for name in sick[:-1])


@pytest.mark.parametrize(
    ("defect", "kind"),
    [
        ("none", None),
        ("noise", None),
        ("malformed_result", None),
        ("wrong_shape", FailureKind.TOOL_ERROR),
        ("unreadable_answer", FailureKind.TOOL_ERROR),
        ("nan", FailureKind.DISGUISED_ERROR),
        ("bad_output", FailureKind.OUTPUT_SCHEMA_MISMATCH),
    ],
)
async def test_an_answer_is_repaired_or_fails_that_call_alone(
    defective: Defective, defect: str, kind: FailureKind | None
) -> None:
    async with opened(defective("odd", defect), defective("good", "none")) as connections:
        for _ in range(2):
            outcome = await connections.call(ToolId("odd", "good"), {})
            assert (outcome.kind if isinstance(outcome, CallFailure) else None) == kind
        assert isinstance(await connections.call(ToolId("good", "good"), {}), CallSuccess)
        assert connections.reports()[1].status == "ready"


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_an_answer_over_http_is_bounded_too(tmp_path: Path, era: Era) -> None:
    answers = [{"$reply": {"content": [{"type": "text", "text": "x" * size}]}} for size in (500_000, 5)]
    tools = [{"name": "say", "answers": [answers[0], answers[0], answers[1]]}]
    scenario = tmp_path / "scenario.json"
    scenario.write_text(json.dumps({"tools": tools, "serve": "http"}))
    command = [sys.executable, "-m", "catalog.testing", str(scenario)]
    with anyio.fail_after(60):
        async with await anyio.open_process(command, stderr=None) as process:
            assert process.stdout is not None
            url = (await process.stdout.receive()).decode().strip()
            spec = ServerSpec("far", url=url, transport="http")

            def opened_transport(_: Reset, words: LastWords) -> Transport:
                return open_transport(spec, words, max_message_bytes=100_000)

            upstream = Upstream("far", opened_transport, "http", era=era)
            async with open_upstreams([upstream], EffectTable()) as connections:
                outcomes = [await connections.call(ToolId("far", "say"), {}) for _ in range(3)]
            process.kill()
    assert [o.kind if isinstance(o, CallFailure) else None for o in outcomes[:2]] == [
        FailureKind.OVER_LIMIT
    ] * 2
    assert isinstance(outcomes[2], CallSuccess)
