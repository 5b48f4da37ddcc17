"""What is printed of a benchmark, and written into the documentation."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.bench.errors import BenchError
from server.bench.measures import percentile, spread_of
from server.bench.repair_report import (
    CaseReport,
    MemoryMeasure,
    RepairBenchReport,
    render_repair_report,
    tallies_of,
)
from server.bench.request import BenchRequest
from server.bench.run import run_bench, write_table


def _case(**changes: object) -> CaseReport:
    given = {
        "task": "sum",
        "kinds": ("wrong_tool",),
        "details": (),
        "lost": (),
        "seed": 1,
        "status": "verified",
        "crashed": None,
        "right_on_held_out": True,
        "calls": 4,
        "candidates": 3,
        "seconds": 0.5,
        "edits": (),
        "broken": {},
        "repaired": {},
    }
    return CaseReport.model_validate({**given, **changes})


_CASES = (
    _case(),
    _case(status="failed", right_on_held_out=None, lost=("SELECT 1",), calls=10),
    _case(right_on_held_out=False, kinds=("extra_step",)),
    _case(kinds=("wrong_tool", "extra_step", "wrong_type"), crashed="KeyError: 'x'", status="failed"),
)


def _report(cases: tuple[CaseReport, ...] = _CASES) -> RepairBenchReport:
    return RepairBenchReport.model_validate(
        {
            "quick": True,
            "seed": 7,
            "tasks": 2,
            "servers": ("sums",),
            "versions": {"skillbank": "0.1.0"},
            "still_passing": 5,
            "unplaced": 1,
            "memory": MemoryMeasure(
                cases=2, with_memory=20.0, without_memory=4.0, calls_with=8, calls_without=80
            ),
            "seconds": 12.0,
            "cases": cases,
            **tallies_of(cases),
        }
    )


def test_cases_are_tallied_by_size_by_kind_and_by_what_was_lost():
    report = _report()

    assert (report.all_cases.cases, report.all_cases.verified) == (4, 2)
    assert (report.all_cases.right, report.all_cases.false_repairs) == (1, 1)
    assert [(t.name, t.cases) for t in report.by_size] == [("one fault", 3), ("three faults", 1)]
    assert [(t.name, t.cases) for t in report.by_kind] == [("extra_step", 1), ("wrong_tool", 2)]
    assert [t.name for t in report.by_kind_among_others] == ["extra_step", "wrong_tool", "wrong_type"]
    assert report.recoverable.cases == 3


def test_the_table_says_shares_seed_size_versions_and_crashes():
    table = render_repair_report(_report())

    assert "| all                               |     4 |     50 % |  25 % |     1 | 5.5 / 4 / 10 |" in table
    assert "a quick run; seed 7, 2 tasks over sums" in table
    assert "skillbank 0.1.0" in table
    assert "5 damaged workflows passed all the same" in table
    assert "20.0 with memoised answers (8 calls), 4.0 without (80 calls): 5.0 times" in table
    assert "CRASHED on sum, seed 1: KeyError: 'x'" in table


def test_a_report_without_cases_can_be_printed():
    assert "| all                               |     0 |     none |" in render_repair_report(_report(()))


def test_a_report_survives_the_way_through_json():
    report = _report()

    assert RepairBenchReport.model_validate_json(report.model_dump_json()) == report


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([3.0, 1.0, 2.0], 0.5, 2.0),
        ([1.0, 2.0], 0.5, 1.0),
        (list(range(1, 101)), 0.95, 95),
        ([5.0], 0.01, 5.0),
    ],
    ids=["odd", "even", "hundred", "one"],
)
def test_a_percentile_is_one_of_the_measurements(values, share, expected):
    assert percentile(values, share) == expected


@given(st.lists(st.floats(0, 1e6), min_size=1))
def test_the_spread_is_ordered(values):
    spread = spread_of(values)

    assert spread.count == len(values)
    assert spread.median <= spread.p95 <= spread.max


@pytest.mark.parametrize(("values", "share"), [([], 0.5), ([1.0], 0.0), ([1.0], 1.5)])
def test_a_percentile_of_nothing_is_misuse(values, share):
    with pytest.raises(ValueError, match="percentile"):
        percentile(values, share)


def test_a_table_is_written_between_its_marks_and_again_in_the_same_place(tmp_path):
    page = tmp_path / "benchmarks.md"
    page.write_text("# B\n\n<!-- bench:repair -->\nold\n<!-- /bench:repair -->\n\nend\n", encoding="utf-8")

    write_table(page, "repair", "| new |\n")
    write_table(page, "repair", "| newer |\n")

    assert page.read_text(encoding="utf-8") == (
        "# B\n\n<!-- bench:repair -->\n| newer |\n<!-- /bench:repair -->\n\nend\n"
    )


def test_a_page_without_marks_is_left_as_it_is(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# B\n", encoding="utf-8")

    with pytest.raises(BenchError, match="no marks"):
        write_table(page, "catalog", "| new |\n")
    assert page.read_text(encoding="utf-8") == "# B\n"


@pytest.mark.anyio
async def test_a_benchmark_of_another_name_is_refused_with_those_there_are():
    with pytest.raises(BenchError, match="there are repair, catalog"):
        await run_bench(BenchRequest("speed"))


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (BenchRequest("catalog", tasks=Path("t.json")), "catalog takes no --tasks; it is for repair, search"),
        (BenchRequest("search", parts=("gate",)), "search takes no --part; it is for compile, drive, stream"),
        (BenchRequest("repair", mcp_bench=Path("m")), "repair takes no --mcp-bench; it is for evolution"),
    ],
)
async def test_an_option_that_would_be_left_unread_is_refused(asked, told):
    with pytest.raises(BenchError, match=told):
        await run_bench(asked)
