"""The stream benchmark: its truths, its test between conditions, its simulated operating curve."""

from __future__ import annotations

import hashlib
import random
import re

import pytest

from server.bench.errors import BenchError
from server.bench.request import BenchRequest
from server.bench.run import run_bench
from server.bench.stream_bench import StreamOptions, run_stream_bench
from server.bench.stream_report import render_stream_report
from server.bench.stream_runs import mcnemar
from server.bench.stream_tasks import FAMILIES, stream_of
from server.bench.suppression import SuppressionOptions, measure_suppression, simulate_stream
from skills_store.workflow.assertions import assertion_problem, check_assertion

pytestmark = pytest.mark.anyio


def holds(assertion, output):
    return check_assertion(assertion, output=output, inputs={}, nodes={}).passed


def test_a_stream_is_the_same_for_the_same_seed_and_has_every_family():
    stream = stream_of(134, 7)
    assert stream == stream_of(134, 7)
    assert stream != stream_of(134, 8)
    assert len({task.family for task in stream}) == len(FAMILIES) >= 8
    assert len({task.task for task in stream}) > 120
    assert all(assertion_problem(task.assertion) is None for task in stream)


def test_an_assertion_holds_for_the_right_answer_and_for_no_other():
    for task in stream_of(134, 7):
        numbers = [float(said) for said in re.findall(r"-?\d+(?:\.\d+)?", task.task)]
        if task.family == "sha256":
            text = task.task.split("'")[1].encode()
            assert holds(task.assertion, {"result": hashlib.sha256(text).hexdigest()})
            assert not holds(task.assertion, {"result": hashlib.md5(text).hexdigest()})
        elif task.family == "difference":
            assert holds(task.assertion, {"result": numbers[1] - numbers[0]})
            assert not holds(task.assertion, {"result": numbers[0] - numbers[1]})
        elif task.family == "kilometers":
            assert holds(task.assertion, {"result": {"output_value": numbers[0] * 1.609344}})
            assert not holds(task.assertion, {"result": {"output_value": numbers[0] / 1.609344}})


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
