"""Streams over worlds of others: their order, what is told of them, and the file of a served world."""

from __future__ import annotations

import json

import pytest

from server.bench.request import Measured
from server.bench.stream_bench import quick_stream_options
from server.bench.stream_foreign_report import (
    Attempt,
    ForeignLine,
    ForeignReport,
    ForeignWorldReport,
    render_foreign,
)
from server.bench.stream_foreign_tasks import FAMILIES, WORLDS, ForeignTask, in_turns
from server.environments.errors import BadRequest
from server.environments.tool_server import WorldTask, begin_world_task, calls_of, main, read_world_task

NOT_OPEN = Attempt(ran=False, detail="no active skill is this task's")
RIGHT = Attempt(ran=True, right=True, detail="won")
WRONG = Attempt(ran=True, detail="a constant differs: 0 of 1")


def line(**given):
    base = {"family": "coin", "task": "coin/1", "number": 1, "direct": NOT_OPEN, "seeded": NOT_OPEN}
    return ForeignLine.model_validate({**base, "called": None, "recorded": True, **given})


def test_a_stream_has_the_first_of_each_family_before_the_second_of_any():
    one, two = FAMILIES["textworld"][:2]
    tasks = [ForeignTask(family, f"{family.id}{n}", "", (), "") for family in (one, two) for n in (1, 2)]
    said = [task.id for task in in_turns(tasks)]
    assert said == [f"{one.id}1", f"{two.id}1", f"{one.id}2", f"{two.id}2"]


def test_every_world_has_families_of_different_names():
    assert set(FAMILIES) == set(WORLDS)
    for families in FAMILIES.values():
        assert len({family.id for family in families}) == len(families) >= 3


def test_the_table_counts_what_ran_and_names_why_the_rest_did_not():
    lines = (
        line(compiled=True, state="proposed", approved=True, again=RIGHT),
        line(task="coin/2", number=2, seeded=WRONG, called=WRONG, compiled=True, again=RIGHT),
        line(task="coin/3", number=3, direct=RIGHT, seeded=None, called=RIGHT, recorded=False),
    )
    world = ForeignWorldReport(world="textworld", server="textworld", families=("coin",), lines=lines)
    table = render_foreign(ForeignReport(worlds=(world,), missing=("bfcl: no network",)))
    assert "| textworld | coin | 3 | 2, 2 | 1 proposed, 1 known already | 2/2 | 1/1 | 0/1 | 1/2 |" in table
    assert "approved by a person, played: 1 of 1 new versions" in table
    assert "textworld, called, not right: a constant differs: 0 of 1 1 (coin/2)" in table
    assert "textworld, direct, not right: not open: no active skill is this task's 2 (coin/1)" in table
    assert "- not measured: bfcl: no network" in table


def test_the_quick_size_is_one_family_of_each_world():
    assert quick_stream_options().foreign.families == 1
    assert Measured(line(), "").written == {}


def test_a_task_that_is_begun_has_no_calls_whatever_was_called_before(tmp_path):
    file = tmp_path / "task.json"
    begin_world_task(file, WorldTask(id="coin", seed=3))
    (tmp_path / "task.json.calls").write_text(json.dumps({"tool_name": "ls", "arguments": {}}) + "\n")
    assert calls_of(file) == [{"tool_name": "ls", "arguments": {}}]
    begin_world_task(file, WorldTask(id="coin", seed=3, attempt=1))
    assert (calls_of(file), read_world_task(file)) == ([], WorldTask(id="coin", seed=3, attempt=1))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "write the task there first"),
        ("{", "is no task of a world: the whole: Invalid JSON"),
        ('{"id": 3}', "is no task of a world: id: "),
        ('{"id": "a", "sede": 1}', "is no task of a world: sede: "),
    ],
    ids=["missing", "cut off", "wrong type", "unknown field"],
)
def test_a_file_that_says_no_task_is_named_with_what_is_wrong(tmp_path, text, said):
    file = tmp_path / "task.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(BadRequest) as refused:
        read_world_task(file)
    assert str(file) in str(refused.value)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [([], "which world?"), (["tau-retail"], "which world?"), (["bfcl"], "has to name the file")],
    ids=["no world", "a server of its own", "no file"],
)
def test_a_server_without_a_world_or_a_file_says_so(arguments, said, capsys, monkeypatch):
    monkeypatch.delenv("SKILLBANK_WORLD_TASK", raising=False)
    assert main(arguments) == 2
    assert said in capsys.readouterr().err
