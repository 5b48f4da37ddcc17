"""The catalog benchmark measures real processes, and says of each number whether its target is met."""

from __future__ import annotations

import subprocess
import sys
import uuid

import pytest

from server.bench.catalog_bench import CatalogOptions, run_catalog_bench
from server.bench.catalog_report import (
    CatalogBenchReport,
    findings_of,
    render_catalog_report,
    search_findings,
)
from server.bench.endurance_bench import ConnectMeasure, MemoryMeasure
from server.bench.isolation_bench import IsolationMeasure
from server.bench.measures import spread_of
from server.bench.processes import can_look, descendants, named, resident_bytes
from server.bench.readiness_bench import ReadinessMeasure
from server.bench.relay_bench import RelayMeasure
from server.bench.search_bench import SearchOptions
from server.bench.search_report import BuildCost, Recall, SearchBenchReport, WayRecall

needs_proc = pytest.mark.skipif(not can_look(), reason="needs /proc")


def relay(skillbank: float, fastmcp: float | None = 5.0) -> RelayMeasure:
    return RelayMeasure(
        calls=1,
        direct_ms=spread_of([1.0]),
        bare_ms=spread_of([2.0]),
        fastmcp_ms=None if fastmcp is None else spread_of([fastmcp]),
        skillbank_ms=spread_of([skillbank]),
    )


def search(words: float, meaning: float | None = None, milliseconds: float = 9.0) -> SearchBenchReport:
    found = {"words": words} | ({} if meaning is None else {"embeddings": meaning})
    times = {"one query": spread_of([milliseconds]), "several sub-goals": spread_of([30.0])}
    return SearchBenchReport(
        quick=True,
        tools=400,
        distinct_tools=300,
        requests=20,
        best=next(iter(found)),
        ways={
            way: WayRecall(one_thing=Recall(at_5=share), whole_tasks=Recall(), sources={})
            for way, share in found.items()
        },
        tuning_half=Recall(),
        beside_fastmcp={},
        milliseconds=dict.fromkeys(found, times),
        build=BuildCost(words_seconds=0.1, update_words_seconds=0.1),
        fastmcp=None,
    )


def report(**changes: object) -> CatalogBenchReport:
    parts = {
        "relay": relay(2.5),
        "readiness": ReadinessMeasure(
            upstreams=20, dead=2, listed_seconds=spread_of([1.0, 1.6]), found_seconds=spread_of([1.5])
        ),
        "isolation": IsolationMeasure(stuck=50, alone_ms=spread_of([2.0]), beside_ms=spread_of([2.2])),
        "memory": MemoryMeasure(cycles=100, settled_mb=80.0, last_mb=82.0, slope_kb_per_1000=3.0),
        "connects": ConnectMeasure(cycles=9, abandoned=3, left=0, descendants=0),
    } | changes
    searched = parts.pop("search", search(0.86))
    return CatalogBenchReport(
        quick=True,
        search=searched,
        findings=(*findings_of(**parts), *search_findings(searched)),
        not_measured=("search",),
        machine="2 cores",
        versions={"mcp": "2.3.0"},
        seconds=3.0,
        **parts,
    )


def met(found: CatalogBenchReport) -> list[tuple[float, bool]]:
    return [(round(finding.value, 3), finding.is_met) for finding in found.findings]


def test_every_number_stands_beside_its_target():
    assert met(report()) == [
        (1.25, False),
        (1.25, False),
        (0.375, True),
        (1.6, False),
        (1.5, True),
        (1.1, True),
        (2.5, True),
        (0.0, True),
        (14.0, True),
        (9.0, True),
    ]


def test_a_search_is_measured_by_what_it_misses_and_by_its_time():
    told = {
        f.what: (round(f.value, 2), f.at_most, f.is_met) for f in search_findings(search(0.45, 0.91, 11.0))
    }
    assert told == {
        "wanted tools not in the first five of 400, meaning and words": (9.0, 10.0, True),
        "one query over 400 tools, meaning and words, p95": (11.0, 10.0, False),
        "wanted tools not in the first five of 400, words alone": (55.0, 50.0, False),
        "one query over 400 tools, words alone, p95": (11.0, 10.0, False),
    }


def test_what_was_not_measured_has_no_number():
    found = report(relay=relay(2.4, None), memory=None, connects=None)
    assert met(found)[:5] == [(1.2, True), (1.2, True), (1.6, False), (1.5, True), (1.1, True)]
    assert len(met(found)) == 7
    assert "- not measured here: search\n" in render_catalog_report(found)


def test_the_table_shows_number_target_and_verdict():
    table = render_catalog_report(report())
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if "|" in line]
    assert ["relayed call over the bare SDK relay, p50", "1.25 times", "1.2 times", "no"] in rows
    assert ["skillbank `call_tool`", "2.50", "2.50", "2.5"] in rows
    assert "smaller size" in table
    assert "3 of 9 abandoned half-way" in table
    assert "the bare SDK relay itself adds 0.25 times" in table


def test_the_report_survives_its_own_json():
    found = report()
    assert CatalogBenchReport.model_validate_json(found.model_dump_json()) == found


@needs_proc
def test_children_and_orphans_are_seen():
    mark = uuid.uuid4().hex
    wait = f"import sys; print(1, flush=True); sys.stdin.read(); {mark!r}"
    with subprocess.Popen(
        [sys.executable, "-c", wait], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert child.pid in descendants()
        assert list(named(mark)) == [child.pid]
        assert resident_bytes(child.pid) > 2**20
    assert named(mark) == {}
    with pytest.raises(ProcessLookupError):
        resident_bytes(child.pid)


@needs_proc
@pytest.mark.live
@pytest.mark.anyio
async def test_a_tiny_run_measures_every_part():
    options = CatalogOptions(
        relay_calls=5,
        starts=1,
        isolation_turns=1,
        memory_cycles=40,
        connect_cycles=3,
        search=SearchOptions(tools=40, requests=3, fastmcp_requests=1),
        quick=True,
    )
    found = await run_catalog_bench(options)

    assert found.relay.skillbank_ms.count == 5
    assert found.search.ways["words"].one_thing.at_5 > 0
    assert found.isolation.beside_ms.count == 50
    assert found.memory is not None
    assert found.memory.settled_mb > 10
    assert found.connects == ConnectMeasure(cycles=3, abandoned=1, left=0, descendants=0)
