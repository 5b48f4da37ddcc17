"""The harder stream: what is shown, what comes with a check, and what a bank makes of both."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from server.bench.errors import BenchError
from server.bench.stream_compared import compare_conditions
from server.bench.stream_episodes import Memory, PlayedLines, play, solved
from server.bench.stream_hard import FOUND_FAMILIES, SHOWN_FAMILIES, hard_stream
from server.bench.stream_report import HardReport, StreamBenchReport, StreamsReport
from server.bench.stream_shown import show
from server.bench.stream_table import render_stream_report
from server.bench.stream_tasks import PlannedCall, stream_of
from server.bench.stream_world import WAYS, open_stream_bank
from skills_store.workflow.assertions import assertion_problem, check_assertion

pytestmark = pytest.mark.anyio


def family(name):
    return next(one for one in (*FOUND_FAMILIES, *SHOWN_FAMILIES) if one.id == name)


def test_the_harder_stream_is_the_same_for_the_same_seed_and_shows_two_tasks_of_each_shown_family():
    stream = hard_stream(134, 7)
    assert stream == hard_stream(134, 7)
    assert stream != hard_stream(134, 8)
    shown = Counter(task.family.id for task in stream if task.is_shown)
    assert shown == {one.id: 2 for one in SHOWN_FAMILIES}
    for name in shown:
        of_family = [task.is_shown for task in stream if task.family.id == name]
        assert of_family == sorted(of_family, reverse=True)
    asked = [task for task in stream if not task.is_shown]
    assert 0.4 < sum(task.is_checked for task in asked) / len(asked) < 0.6


@pytest.mark.parametrize("one", [*FOUND_FAMILIES, *SHOWN_FAMILIES], ids=lambda one: one.id)
def test_a_harder_familys_check_holds_for_its_answer_alone(one):
    for task in stream_of(5, 3, (one,)):
        assert assertion_problem(task.assertion) is None
        other = "T99" if isinstance(task.answer, str) else 1.01 * task.answer + 1
        for answer, holds in ((task.answer, True), (other, False)):
            found = check_assertion(task.assertion, output={"result": answer}, inputs={}, nodes={})
            assert found.passed is holds
            assert task.is_answered_by({"result": answer}) is holds


async def test_what_a_client_showed_is_answered_by_its_skill_without_a_check(tmp_path):
    stream = stream_of(3, 5, (family("change"),))
    shown, asked = [replace(task, is_shown=True) for task in stream[:2]], replace(stream[2], is_checked=False)
    async with open_stream_bank(tmp_path, WAYS["+ reuse"], servers=("calculator",)) as bank:
        before = await solved(asked, WAYS["+ reuse"], bank)
        played = await play([*shown, asked], WAYS["+ reuse"], bank)
    assert (before.right, before.direct) == (False, False)
    assert [(answer.right, answer.direct_right) for answer in played.answers] == [(True, True)]
    kept = PlayedLines.model_validate_json(PlayedLines.of(played).model_dump_json())
    assert kept.played([*shown, asked]) == played


async def test_a_memory_is_shown_the_same(tmp_path):
    task = replace(stream_of(1, 5, (family("change"),))[0], is_shown=True)
    memory = Memory()
    async with open_stream_bank(tmp_path, WAYS["text memory"], servers=("calculator",)) as bank:
        played = await play([task], WAYS["text memory"], bank, memory)
        assert bank.context.store.heads() == []
    assert played.answers == []
    assert ["multiply" in line and "subtract" in line for line in memory.like(task.task)] == [True]


async def test_a_call_that_fails_while_it_is_shown_says_which(tmp_path):
    broken = replace(family("change"), plan=(PlannedCall("calculator/divide", {"a": 1, "b": "no number"}),))
    task = stream_of(1, 5, (broken,))[0]
    async with open_stream_bank(tmp_path, WAYS["+ reuse"], servers=("calculator",)) as bank:
        with pytest.raises(BenchError, match="change: calculator/divide failed"):
            await show(task, bank)


async def test_the_table_names_what_was_not_right(tmp_path):
    task = replace(stream_of(1, 5, (family("change"),))[0], is_checked=False)
    async with open_stream_bank(tmp_path, WAYS["none"], servers=("calculator",)) as bank:
        played = await play([task], WAYS["none"], bank)
    runs = compare_conditions("no model", {"none": played})
    hard = HardReport(shown=0, asked=1, checked=0, families=("change",), planners=(runs,))
    streams = StreamsReport(seed=7, length=1, families=(), servers=(), planners=(), hard=hard)
    table = render_stream_report(StreamBenchReport(quick=True, streams=streams))
    assert "Harder stream: 1 tasks asked, 0 of them with their check, and 0 that a client" in table
    assert "- not right under none: change 1" in table
