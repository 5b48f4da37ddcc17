"""The planning benchmark: answers on tape resume and replay, plans run on real servers, the table adds up."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from server.backends.backend import Message, Request
from server.backends.scripted import ScriptedBackend
from server.bench.errors import BenchError
from server.bench.planning_bench import PlanningOptions, recorded_tape, run_planning_bench
from server.bench.planning_report import PlanReport, render_planning_report, ways_of
from server.bench.planning_tape import About, NotRecorded, Tape, new_tape, read_tape
from server.bench.planning_ways import CONDITIONS
from server.bench.tasks import planning_tasks
from server.wiring import open_bank

pytestmark = pytest.mark.anyio

ABOUT = About(model="m", quantisation="Q4", machine="here", context_tokens=8_192)


def request(text: str) -> Request:
    return Request((Message("user", text),))


async def test_what_was_answered_is_kept_at_once_and_replayed_without_the_model(tmp_path: Path):
    path = tmp_path / "tape.jsonl"
    live = ScriptedBackend(["in /tmp/x7/a", "again"])
    taped = new_tape(path, ABOUT).at("free", "task", live, {"${FIXTURES}": "/tmp/x7"})
    first = await taped.complete(request("look in /tmp/x7"))
    tokens = await taped.count_tokens("look in /tmp/x7")
    assert "/tmp/x7" not in path.read_text("utf-8")

    replay = read_tape(path).at("free", "task", None, {"${FIXTURES}": "/home/y"})
    again = await replay.complete(request("look in /home/y"))
    assert again.text == "in /home/y/a"
    assert again.usage.total == first.usage.total
    assert await replay.count_tokens("look in /home/y") == tokens
    with pytest.raises(NotRecorded):
        await replay.complete(request("more"))


async def test_a_run_goes_on_where_the_last_one_ended(tmp_path: Path):
    path = tmp_path / "tape.jsonl"
    await new_tape(path, ABOUT).at("free", "one", ScriptedBackend(["1"])).complete(request("a"))
    tape, live = read_tape(path, extend=True), ScriptedBackend(["2"])
    assert (await tape.at("free", "one", live).complete(request("a"))).text == "1"
    assert (await tape.at("free", "two", live).complete(request("b"))).text == "2"
    assert len(live.requests) == 1
    assert (await read_tape(path).at("free", "two").complete(request("b"))).text == "2"


async def test_a_prompt_that_changed_is_asked_anew_or_counted(tmp_path: Path):
    path = tmp_path / "tape.jsonl"
    await new_tape(path, ABOUT).at("free", "one", ScriptedBackend(["1"])).complete(request("a"))
    tape = read_tape(path)
    await tape.at("free", "one").complete(request("another"))
    assert tape.changed == {("free", "one")}
    live = ScriptedBackend(["new"])
    assert (
        await read_tape(path, extend=True).at("free", "one", live).complete(request("another"))
    ).text == "new"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ("{}\n", "line 1 is no line"),
        ('{"kind":"count","text":"a","tokens":1}\n', "who answers"),
    ],
)
def test_a_file_that_is_no_tape_is_refused_by_line(tmp_path: Path, content: str, said: str):
    path = tmp_path / "tape.jsonl"
    path.write_text(content, "utf-8")
    with pytest.raises(BenchError, match=said):
        read_tape(path)


def test_a_gzipped_tape_is_read(tmp_path: Path):
    path = tmp_path / "tape.jsonl.gz"
    path.write_bytes(gzip.compress(ABOUT.model_dump_json().encode()))
    assert read_tape(path).about == ABOUT


def test_there_are_at_least_forty_tasks_in_words_with_checks():
    tasks = planning_tasks()
    assert len(tasks) >= 40
    assert len({task.id for task in tasks}) == len(tasks)
    assert all(task.task and task.assertions for task in tasks)


def test_the_recorded_answers_cover_forty_tasks_in_each_way_of_asking():
    tape = recorded_tape()
    for condition in CONDITIONS[:3]:
        answered = {task for name, task, _ in tape.answers if name == condition.name}
        assert len(answered & {task.id for task in planning_tasks()}) >= 40, condition.name
    assert "qwen" in tape.about.model
    assert tape.about.quantisation
    assert tape.about.machine


def plan(task: str, condition: str, **more: object) -> PlanReport:
    return PlanReport.model_validate({"task": task, "condition": condition, "parseable": True, **more})


def test_the_table_counts_what_became_of_the_plans():
    ways = ways_of(
        [
            plan("a", "free", right=True, repaired=True, seconds=1, right_on_held_out=True, output_tokens=10),
            plan("b", "free", repaired=True, seconds=3, right_on_held_out=False, output_tokens=30),
            plan("a", "constrained", existing_tools=True),
        ]
    )
    assert [(w.condition, w.plans) for w in ways] == [("constrained", 1), ("free", 2)]
    free = ways[1]
    assert (free.right, free.repaired, free.held_out, free.held_out_of) == (1, 2, 1, 2)
    assert (free.median_seconds, free.mean_output_tokens) == (2, 20)


@pytest.mark.live
async def test_recorded_plans_are_run_on_the_real_servers():
    report = await run_planning_bench(PlanningOptions(_small(recorded_tape()), quick=True), open_bank)
    assert report.recorded
    assert report.tasks == 2
    assert {way.condition for way in report.ways} == {"constrained", "free", "two-stage"}
    constrained = report.ways[0]
    assert constrained.parseable == constrained.existing_tools == constrained.schema_valid == 2
    assert constrained.right >= 1
    table = render_planning_report(report)
    assert "replayed from a recording" in table
    assert "Q4_K_M" in table


def _small(tape: Tape) -> Tape:
    kept = {place: a for place, a in tape.answers.items() if place[1] in ("two_prices", "seats_left")}
    return Tape(tape.about, None, kept, tape.counts)


async def test_a_tape_without_answers_is_told_and_not_a_table_of_nothing():
    with pytest.raises(BenchError, match="--model"):
        await run_planning_bench(PlanningOptions(Tape(ABOUT), quick=True), open_bank)
