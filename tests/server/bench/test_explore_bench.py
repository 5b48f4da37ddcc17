"""The explore benchmark: what is measured of a server, how it is told, and that a broken-off run goes on."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from server.bank.upstreams.exploration import Exploration
from server.bench.errors import BenchError
from server.bench.explore_bench import ExploreBenchOptions, quick_explore_options, run_explore_bench
from server.bench.explore_credit import OFF, ON, CreditMeasured, measure_credit
from server.bench.explore_report import ExploreBenchReport, ServerExplored, render_explore_report
from server.bench.explore_servers import DEMO_EXPLORED, FETCHED, Defect, explored_document
from server.bench.registry import benchmark, refuse_untaken
from server.bench.request import BenchRequest
from server.exploration.health.findings import Finding
from server.exploration.health.rules import RULES
from server.exploration.options import ExplorationOptions
from server.progress import ignore_progress
from server.requests import Budget

pytestmark = pytest.mark.anyio
ROOT = Path(__file__).parents[3]


def explored(**changed: Any) -> ServerExplored:
    counts = {"tools": 4, "called": 4, "kept": 3, "resolved": 3, "held_out": 3, "before": 1, "after": 2}
    return ServerExplored(**{"server": "one", **counts, **changed})


def report(*servers: ServerExplored) -> ExploreBenchReport:
    return ExploreBenchReport(quick=False, budget_calls=400, seed=0, servers=servers)


def test_the_table_sums_and_says_what_was_gained_and_missed():
    two = explored(server="two", set_aside=True, warts=3, found=2, missed=("slow",), before=0, after=3)
    table = render_explore_report(report(explored(), two))
    assert "| two* | 4/4 |" in table
    assert "| all | 8/8 |" in table
    assert "- two: missed slow" in table
    assert "16.7% before, 83.3% after exploring and learning: +66.7 points" in table


def test_a_server_that_cannot_be_had_is_told_and_counts_nothing():
    table = render_explore_report(report(explored(), ServerExplored(server="gone", problem="pip failed")))
    assert "- gone: not measured: pip failed" in table
    assert "| all | 4/4 |" in table


def test_a_reference_that_does_not_solve_again_is_named_with_its_reason():
    table = render_explore_report(
        report(explored(resolved=2, remarks=("add then list: not at all: thread",)))
    )
    assert "- one: solved again: add then list: not at all: thread" in table
    assert "| 2/3 |" in table


def test_what_a_model_gains_is_told_server_by_server():
    with_model = (explored(tokens_before=900, tokens_after=20), explored(server="two", before=2, after=3))
    table = render_explore_report(
        report(explored()).model_copy(update={"model": "local:m", "with_model": with_model})
    )
    assert "| one | 1/3 | 2/3 | 900 | 20 |" in table
    assert "3/6 before, 5/6 after: +33.3 points." in table


async def test_a_model_is_asked_on_the_servers_that_have_something_to_hold_out():
    asked: list[tuple[str, bool]] = []

    async def measure(name: str, size: Any) -> ServerExplored:
        asked.append((name, size.model is not None))
        return explored(server=name, held_out=3 if name == "hashlib" else 0)

    options = ExploreBenchOptions(servers=("time", "hashlib"), model="local:qwen2.5-coder-1.5b")
    await run_explore_bench(options, measure)
    assert asked == [("time", False), ("hashlib", False), ("hashlib", True)]


def test_attribution_is_compared_on_plans_that_both_repaired():
    credit = CreditMeasured(
        plans=4,
        solved_without=2,
        solved_with=3,
        both=2,
        candidates_without=20,
        candidates_with=10,
        fewer=1,
    )
    table = render_explore_report(report(explored(credit=credit), explored(credit=credit)))
    assert "8 references of kept tasks" in table
    assert "| off | 4/8 | 10.0 |" in table
    assert "| on | 6/8 | 5.0 |" in table
    assert "With it 2 took fewer candidates, 0 more, 2 as many." in table


def test_attribution_is_off_in_one_of_the_two_conditions_and_on_in_the_other():
    assert (OFF.options.switches.attribution, ON.options.switches.attribution) == (False, True)


async def test_damaged_references_are_repaired_with_attribution_and_without(open_desk):
    async with open_desk() as desk:
        options = ExplorationOptions(budget_calls=200, tasks=2, calls_per_second=10_000)
        found = await desk.bank.explore(Exploration("calculator", options, learn=False))
        credit = await measure_credit(found.tasks, desk.bank, Budget(seconds=4.0), seed=1)
    assert credit.plans > 0
    assert credit.solved_without > 0
    assert credit.solved_with > 0
    assert credit.both <= min(credit.solved_without, credit.solved_with)
    assert credit.candidates_with >= credit.both


async def test_finished_servers_are_kept_and_those_that_cannot_be_had_are_tried_again(
    tmp_path: Path,
):
    asked: list[str] = []

    async def measure(name: str, size: Any) -> ServerExplored:
        del size
        asked.append(name)
        if name == "gone":
            raise BenchError("it is not there")
        return explored(server=name)

    options = ExploreBenchOptions(servers=("one", "gone"), keep=tmp_path / "kept.jsonl")
    first = await run_explore_bench(options, measure)
    again = await run_explore_bench(options, measure)
    assert asked == ["one", "gone", "gone"]
    assert again.servers == first.servers
    assert again.servers[1].problem == "it is not there"


def test_what_is_known_to_be_wrong_is_said_by_rules_there_are():
    named = {defect.rule for server in FETCHED for defect in server.defects if defect.rule is not None}
    assert named <= set(RULES)
    assert len(ExploreBenchOptions().servers) >= 8
    assert all(server.set_aside == bool(server.defects) for server in FETCHED)


def test_servers_that_were_set_aside_are_named_nowhere_else():
    apart = [server for server in FETCHED if server.set_aside]
    names = {server.distribution for server in apart}
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    files = [ROOT / name for name in tracked.decode().split("\0") if name]
    naming = {
        str(file.relative_to(ROOT))
        for file in files
        if file.is_file() and any(name in file.read_text(errors="replace") for name in names)
    }
    assert apart
    data = {f"server/bench/data/{name}" for name in ("labelled_tools.jsonl", "paraphrases.json")}  # listings
    assert naming <= {"server/bench/explore_servers.py", *data}
    assert not {server.name for server in apart} & set(DEMO_EXPLORED)


def test_a_defect_is_found_where_its_rule_is_reported_of_one_of_its_tools():
    def finding(rule: str, tool: str) -> Finding:
        return Finding(rule=rule, severity="error", tool=tool, message="m", remedy="r")

    defect = Defect("crash", "ends", ("one", "two"))
    assert defect.is_found([finding("hang", "one"), finding("crash", "two")])
    assert not defect.is_found([finding("hang", "one"), finding("crash", "three")])
    assert Defect("crash", "ends").is_found([finding("crash", "three")])
    assert not Defect(None, "no rule").is_found([finding("crash", "three")])
    assert (Defect("no-annotations", "").is_easy, defect.is_easy) == (True, False)


def test_the_quick_size_is_smaller_and_says_so():
    quick = quick_explore_options()
    assert quick.size.budget_calls < ExploreBenchOptions().size.budget_calls
    assert "Quick size." in render_explore_report(report(explored()).model_copy(update={"quick": True}))


def test_a_demo_server_is_configured_as_the_demo_does(tmp_path: Path):
    document = explored_document("hashlib", tmp_path, ignore_progress)
    assert list(json.loads(json.dumps(document))["mcpServers"]) == ["hashlib"]


def test_it_keeps_and_takes_no_model():
    refuse_untaken(benchmark("explore"), BenchRequest("explore", keep=Path("kept.jsonl")))
    with pytest.raises(BenchError, match="explore takes no --tape"):
        refuse_untaken(benchmark("explore"), BenchRequest("explore", tape=Path("tape.jsonl")))
