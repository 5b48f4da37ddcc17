"""The stream benchmark: its truths, its test between conditions, its simulated operating curve."""

from __future__ import annotations

import hashlib
import json
import random
import re

import anyio
import pytest

from server.backends.backend import Message, Request
from server.bench.errors import BenchError
from server.bench.request import BenchRequest
from server.bench.run import run_bench
from server.bench.stream_bench import StreamOptions, run_stream_bench
from server.bench.stream_changed import measure_changed
from server.bench.stream_compared import mcnemar
from server.bench.stream_episodes import Answer, Memory, Played, PlayedLines, solved
from server.bench.stream_planner import RIGHT_TOLD, RIGHT_UNTOLD, simulated_planner
from server.bench.stream_planted import plant
from server.bench.stream_report import StreamBenchReport
from server.bench.stream_runs import StreamSize, measure_streams
from server.bench.stream_table import render_stream_report
from server.bench.stream_tasks import FAMILIES, stream_of
from server.bench.stream_world import WAYS, Stage, open_stream_bank
from server.bench.suppression import SuppressionOptions, measure_suppression, simulate_stream
from server.reports import RepairReport
from skills_store.workflow.assertions import assertion_problem, check_assertion

pytestmark = pytest.mark.anyio


def holds(assertion, output):
    return check_assertion(assertion, output=output, inputs={}, nodes={}).passed


def test_a_stream_is_the_same_for_the_same_seed_and_has_every_family():
    stream = stream_of(134, 7)
    assert stream == stream_of(134, 7)
    assert stream != stream_of(134, 8)
    assert len({task.family.id for task in stream}) == len(FAMILIES) >= 8
    assert len({task.task for task in stream}) > 120
    assert all(assertion_problem(task.assertion) is None for task in stream)


def test_an_assertion_holds_for_the_right_answer_and_for_no_other():
    for task in stream_of(134, 7):
        numbers = [float(said) for said in re.findall(r"-?\d+(?:\.\d+)?", task.task)]
        if task.family.id == "sha256":
            text = task.task.split("'")[1].encode()
            assert holds(task.assertion, {"result": hashlib.sha256(text).hexdigest()})
            assert not holds(task.assertion, {"result": hashlib.md5(text).hexdigest()})
        elif task.family.id == "difference":
            assert holds(task.assertion, {"result": numbers[1] - numbers[0]})
            assert not holds(task.assertion, {"result": numbers[0] - numbers[1]})
        elif task.family.id == "kilometers":
            assert holds(task.assertion, {"result": {"output_value": numbers[0] * 1.609344}})
            assert not holds(task.assertion, {"result": {"output_value": numbers[0] / 1.609344}})


def test_the_truth_is_judged_without_the_check_and_agrees_with_it():
    for task in stream_of(134, 7):
        answer = {"output_value": task.answer} if "output_value" in task.family.place else task.answer
        answer = {"result": answer} if task.family.place == "result.result" else answer
        told = f"2026-11-30{answer}+00:00" if not task.family.place else answer
        other = "T99" if isinstance(task.answer, str) else 2 * task.answer + 1
        assert task.is_answered_by({"result": told})
        assert holds(task.assertion, {"result": told})
        assert not task.is_answered_by({"result": other})
    assert not task.is_answered_by(None)


def test_the_simulated_planner_makes_the_same_mistakes_again_and_fewer_when_told():
    stream = stream_of(400, 3)

    def right(seed, told):
        planner = simulated_planner(stream, seed)
        plans = []
        for task in stream:
            before = f"call {', '.join(task.family.tools)}\n" if told else ""
            asked = f"{before}Request: {task.task}\nOutputs: result"
            request = Request((Message("system", "The tools you have:\n"), Message("user", asked)))
            plans.append(anyio.run(planner.complete, request).text)
        return plans, sum(_is_reference(plan, task) for plan, task in zip(plans, stream, strict=True)) / 400

    assert right(1, told=False)[0] == right(1, told=False)[0] != right(2, told=False)[0]
    assert right(1, told=False)[1] == pytest.approx(RIGHT_UNTOLD, abs=0.06)
    assert right(1, told=True)[1] == pytest.approx(RIGHT_TOLD, abs=0.06)


def _is_reference(plan, task):
    nodes = json.loads(plan)["nodes"]
    wanted = [(call.tool.partition("/")[2], len(call.arguments)) for call in task.family.plan]
    return [(node["tool"], len(node["arguments"])) for node in nodes] == wanted


def test_a_memory_tells_of_the_most_alike_tasks_only():
    memory = Memory()
    for task in stream_of(40, 7):
        nodes = [{"tool": {"tool": tool}, "arguments": {}} for tool in task.family.tools]
        memory.keep(task.task, RepairReport(status="verified", outputs={}, workflow={"nodes": nodes}))
    told = memory.like("Compute the sha256 hash of the text 'unheard of'")
    assert 0 < len(told) <= 3
    assert all("hash_sha256" in line for line in told)
    assert memory.like("book a flight to Oslo") == ()


@pytest.mark.parametrize(
    ("one", "two", "p"), [(0, 0, 1.0), (5, 5, 1.0), (1, 9, 0.021484375), (0, 6, 0.03125)]
)
def test_mcnemars_test_is_exact(one, two, p):
    assert mcnemar(one, two) == mcnemar(two, one) == p


def test_the_operating_curve_is_the_same_for_the_same_seed_and_says_that_it_is_simulated():
    options = SuppressionOptions(streams=20)
    report = measure_suppression(options)
    assert report == measure_suppression(options)
    assert report.simulated
    harmful = report.points[0]
    assert (harmful.guided_rate, harmful.control_rate, harmful.within) == (0.15, 0.85, 14)
    assert all(point.low <= point.share <= point.high for point in report.points)


def test_a_larger_error_rate_restricts_more_of_the_same_streams():
    def restricted(error_rate):
        options = SuppressionOptions(error_rate=error_rate)
        dice = random.Random(3)
        streams = [simulate_stream(dice, (0.4, 0.8), 20, options) for _ in range(60)]
        return sum(stream.restricted_after is not None for stream in streams)

    assert restricted(0.2) > restricted(0.001)


async def test_the_simulated_part_alone_calls_no_server_and_says_so():
    options = StreamOptions(quick=True, parts=("suppression",), suppression=SuppressionOptions(streams=5))
    report = await run_stream_bench(options)
    table = render_stream_report(report)
    assert report.streams is None
    assert table.startswith("Simulated: 5 streams of each kind")
    assert table.count("\n| neutral |") == 4


async def test_a_part_of_another_benchmark_is_refused():
    with pytest.raises(BenchError, match="no part 'tau' here; there are suppression, streams"):
        await run_bench(BenchRequest("stream", quick=True, parts=("tau",)))


ONE_FAMILY = StreamSize(
    length=5,
    families=1,
    planted=0,
    changed=0,
    hard=0,
    frozen=(),
    conditions=("none", "no admission gate"),
    simulated=("none", "+ reuse", "text memory"),
)


async def test_conditions_over_real_servers_differ_in_what_they_reuse_and_spend():
    report = await measure_streams(ONE_FAMILY, Stage())
    without, simulated = report.planners
    found = {run.condition: run for run in without.runs}
    assert report.servers == ("hashlib",)
    assert (found["none"].direct, found["none"].bank, found["none"].tokens) == (0, (0, 0, 0, 0), 0)
    assert (found["no admission gate"].direct, found["no admission gate"].direct_right) == (4, 4)
    reused = {run.condition: run for run in simulated.runs}["+ reuse"]
    assert (reused.right, reused.direct, reused.direct_right) == (5, 3, 3)
    spent = {run.condition: run.tokens for run in simulated.runs}
    assert simulated.simulated
    assert 0 < spent["+ reuse"] < spent["none"] < spent["text memory"]
    assert "compact planner (simulated)" in render_stream_report(
        StreamBenchReport(quick=True, streams=report)
    )


async def test_a_skill_that_answers_wrong_counts_against_the_direct_route_though_a_plan_mends_it(tmp_path):
    family = tuple(one for one in FAMILIES if one.id == "sha256")
    way = WAYS["+ reuse"]
    async with open_stream_bank(tmp_path, way, servers=("hashlib",)) as bank:
        stream = stream_of(3, 7, family)
        for task in stream[:2]:
            await solved(task, way, bank)
        plant(bank.context.store.heads()[0], bank)
        answer = await solved(stream[2], way, bank)
    assert (answer.right, answer.direct, answer.direct_right, answer.route) == (True, True, False, "dynamic")


async def test_a_tool_that_changes_in_mid_stream_makes_its_skill_stale_and_it_comes_back_repaired():
    report = await measure_changed(9, 7, Stage(), families=("sha256",))
    assert (report.before_right, report.after_right, report.wrong_direct) == (4, 4, 0)
    assert (report.unseen_direct, report.until_direct) == (0, 0)
    assert report.stale == ("compute_sha256_hash_text",)
    assert "compute_sha256_hash_text@1: repair" in report.recovered


def test_a_played_stream_is_kept_and_read_again_with_its_tasks():
    stream = stream_of(4, 7)
    answers = [
        Answer(
            task,
            right=True,
            direct=number > 1,
            direct_right=False,
            route="direct",
            withheld=False,
            labelled=True,
            tokens=3 * number,
            calls=2,
            seconds=0.5,
        )
        for number, task in enumerate(stream)
    ]
    played = Played(answers, (0, 1, 1, 2))
    lines = PlayedLines.model_validate_json(PlayedLines.of(played).model_dump_json())
    assert lines.played(stream) == played
