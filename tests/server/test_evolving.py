"""Evolving a bank: which tasks a round picks, what rounds bring, and what is never called meanwhile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from catalog.effects import Effect
from catalog.testing import Reply, ScriptedServer, ScriptedTool, Vanish
from server.bank.upstreams.exploration import Exploration
from server.evolving.evolve import evolve
from server.evolving.options import EvolveOptions
from server.evolving.picking import Standing, pick
from server.evolving.practice import Instance, PracticeTask, practice_of, read_user_tasks
from server.exploration.errors import TaskFileRejected
from server.exploration.options import ExplorationOptions
from server.exploration.tasks import ExploredTask, HeldOutInstance
from server.requests import SolveRequest
from server.verification import Checks

pytestmark = pytest.mark.anyio

CHECK = ("output.result == `8`",)


def options(**changed: Any) -> EvolveOptions:
    base = {"rounds": 2, "budget_calls": 260, "tasks": 2, "seconds": 8.0, "calls_per_second": 10_000}
    return EvolveOptions(**{**base, **changed})


def user(name: str, *, attempts: int = 0, right: int = 0) -> Standing:
    return Standing(PracticeTask(name, (Instance("Add 3 and 5", CHECK),), None, None), attempts, right)


def synthetic(name: str, *, attempts: int = 0, right: int = 0) -> Standing:
    task = ExploredTask(
        id=name,
        task="Add 3 and 5",
        servers=("calculator",),
        inputs={"a": 3, "b": 5},
        workflow={"name": "add", "nodes": [{"id": "add", "tool": "calculator/add", "arguments": {}}]},
        assertions=CHECK,
        held_out=(HeldOutInstance(task="Add 1 and 2", inputs={"a": 1, "b": 2}, assertions=CHECK),),
    )
    return Standing(practice_of(task), attempts, right)


def test_the_least_certain_tasks_are_picked():
    sure = synthetic("sure", attempts=6, right=6)
    hopeless = synthetic("hopeless", attempts=6)
    half = synthetic("half", attempts=6, right=3)
    often = synthetic("often", attempts=6, right=4)
    assert [one.task.id for one in pick([sure, hopeless, often, half], 2, 0.0)] == ["half", "often"]


def test_a_new_task_is_picked_before_one_that_is_as_uncertain_but_was_tried():
    tried, new = synthetic("tried", attempts=4, right=2), synthetic("new")
    assert [one.task.id for one in pick([tried, new], 1, 0.0)] == ["new"]


@pytest.mark.parametrize(
    ("mix", "of_user"), [(0.0, 0), (0.25, 1), (0.5, 2), (1.0, 4)], ids=["none", "quarter", "half", "all"]
)
def test_user_tasks_are_mixed_in_by_the_stated_share(mix: float, of_user: int):
    everything = [*(user(f"u{n}") for n in range(4)), *(synthetic(f"s{n}") for n in range(4))]
    picked = pick(everything, 4, mix)
    assert len(picked) == 4
    assert sum(not one.task.is_synthetic for one in picked) == of_user


def test_where_one_kind_has_too_few_the_other_fills():
    assert len(pick([user("u"), *(synthetic(f"s{n}") for n in range(9))], 6, 0.5)) == 6
    assert len(pick([*(user(f"u{n}") for n in range(9)), synthetic("s")], 6, 0.5)) == 6
    assert len(pick([user(f"u{n}") for n in range(9)], 6, 0.0)) == 6


def test_the_last_instance_of_a_task_is_never_practised():
    one = synthetic("s")
    assert one.task.exam == Instance("Add 1 and 2", CHECK)
    assert [one.next_instance.task for one.attempts in range(4)] == ["Add 3 and 5"] * 4


async def test_rounds_bring_tasks_skills_and_success(open_desk):
    async with open_desk() as desk:
        report = await evolve(desk.bank, ["calculator", "units"], options(budget_calls=400))
        listed = {s.name for s in (await desk.bank.list_skills()).skills if s.state == "active"}
    first, *_ = report.rounds
    assert set(first.explored) == {"calculator", "units"}
    assert (first.picked_synthetic, first.picked_user) == (2, 0)
    assert first.attempts == 4
    brought = {name for one in report.rounds for name in one.skills}
    assert brought
    assert brought <= listed
    assert sum(one.examined_right for one in report.rounds) > 0
    assert sum(one.calls for one in report.rounds) == report.calls <= report.budget_calls


async def test_a_task_that_came_in_an_earlier_round_is_not_made_again(open_desk):
    async with open_desk() as desk:
        report = await evolve(desk.bank, ["units"], options(rounds=3))
    shapes = [task.workflow["nodes"] for task in report.made]
    assert len({json.dumps([node["tool"] for node in nodes]) for nodes in shapes}) == len(shapes)


async def test_what_writes_or_is_unknown_is_never_called_while_a_bank_evolves(open_desk):
    log = ScriptedServer(
        lambda: [
            ScriptedTool("look_up", lambda a: {"length": len(str(a))}, description="Look up a word."),
            ScriptedTool("change", lambda _: {"n": 2}, description="Change a word."),
            ScriptedTool("mystery", lambda _: {"n": 3}, description="Do something with a word."),
        ]
    )
    wish = Instance("Change a word and do something with it", ("output.n == `2`",))
    own = [PracticeTask("mine", (wish,), None, None)]
    async with open_desk(
        {"odd": log}, effects={"odd": {"look_up": Effect.READ, "change": Effect.WRITE}}
    ) as desk:
        report = await evolve(desk.bank, ["odd"], options(), own)
    assert (log.log.count("change"), log.log.count("mystery")) == (0, 0)
    assert log.log.count("look_up") > 0
    assert sum(one.picked_user for one in report.rounds) > 0


async def test_a_server_that_nobody_named_is_not_called_even_where_its_tools_fit(open_desk):
    units = ScriptedServer(
        lambda: [ScriptedTool("look_up", lambda a: {"length": len(str(a))}, description="Look up a word.")]
    )
    other = ScriptedServer(
        lambda: [ScriptedTool("change", lambda _: {"n": 2}, description="Change a word and look it up.")]
    )
    wish = Instance("Change a word and look it up", ("output.n == `2`",))
    effects = {"odd": {"*": Effect.READ}, "other": {"*": Effect.PURE}}
    async with open_desk({"odd": units, "other": other}, effects=effects) as desk:
        before = await desk.bank.solve(wish.task, SolveRequest(checks=Checks(assertions=wish.assertions)))
        called = other.log.count("change")
        report = await evolve(desk.bank, ["odd"], options(), [PracticeTask("mine", (wish,), None, None)])
        after = other.log.count("change")
    assert before.status == "verified"
    assert called > 0
    assert after == called
    assert sum(one.attempts for one in report.rounds) > 0


async def test_a_task_is_taught_by_its_reference_and_the_reserved_instance_stays_unseen(open_desk):
    asked = Exploration(
        "units", ExplorationOptions(budget_calls=200, tasks=1, calls_per_second=10_000), learn=False
    )
    async with open_desk() as desk:
        [task] = (await desk.bank.explore(asked)).tasks
        assert (await desk.bank.list_skills()).skills == ()
        taught = await desk.bank.teach(task, reserved=1)
        proofs = {trace.task for trace in desk.store.traces(100)}
        again = await desk.bank.solve(
            task.held_out[-1].task, SolveRequest(checks=Checks(assertions=task.held_out[-1].assertions))
        )
    assert taught.skill is not None
    assert (taught.skill.state, taught.reason) == ("active", "")
    assert taught.calls == 2 * len(task.reference.nodes)
    assert task.held_out[-1].task not in proofs
    assert (again.status, again.route) == ("verified", "direct")


async def test_a_reference_that_fails_now_teaches_nothing_and_says_why(open_desk):
    asked = Exploration(
        "units", ExplorationOptions(budget_calls=200, tasks=1, calls_per_second=10_000), learn=False
    )
    async with open_desk() as desk:
        [task] = (await desk.bank.explore(asked)).tasks
        gone = task.model_copy(update={"inputs": dict.fromkeys(task.inputs)})
        taught = await desk.bank.teach(gone)
        assert (await desk.bank.list_skills()).skills == ()
    assert taught.skill is None
    assert taught.reason.startswith("its reference fails now: ")


async def test_a_sick_server_is_reported_and_the_rest_goes_on(open_desk):
    sick = ScriptedServer(lambda: [ScriptedTool("boom", lambda _: Vanish(), description="Boom.")])
    fine = ScriptedServer(
        lambda: [
            ScriptedTool(
                "measure",
                lambda a: {"length": len(a["text"])},
                {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
                description="Measure the length of a text.",
            )
        ]
    )
    nothing = ScriptedServer(
        lambda: [ScriptedTool("write", lambda _: Reply.text("done"), description="Write.")]
    )
    effects = {"sick": {"*": Effect.READ}, "fine": {"*": Effect.PURE}, "closed": {"*": Effect.WRITE}}
    servers = {"sick": sick, "fine": fine, "closed": nothing}
    async with open_desk(servers, effects=effects) as desk:
        report = await evolve(desk.bank, ["sick", "closed", "fine"], options(rounds=1))
    [one] = report.rounds
    assert "none of the 1 tools of 'closed' may be explored" in one.problems["closed"]
    assert one.explored["fine"] > 0
    assert nothing.log.count() == 0


async def test_it_ends_where_the_budget_does(open_desk):
    async with open_desk() as desk:
        report = await evolve(desk.bank, ["units"], options(rounds=9, budget_calls=60))
    assert report.calls <= 60


async def test_user_tasks_are_practised_without_any_explored_ones(open_desk, tmp_path: Path):
    path = tmp_path / "mine.jsonl"
    entry = {"task": "Add 3 and 5", "assertions": ["output.result == `8`"]}
    path.write_text(json.dumps(entry) + "\n")
    async with open_desk() as desk:
        report = await evolve(desk.bank, [], options(rounds=1), read_user_tasks(path))
    [standing] = report.tasks
    assert (standing.id, standing.is_synthetic) == ("user-01", False)
    assert standing.attempts == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it has no task"),
        ("{", "mine.jsonl:1: no JSON"),
        ('{"task": "x"}', "mine.jsonl:1: assertions"),
        ('\n[{"task": "", "assertions": ["a"]}]', "task 1: task"),
        ('{"task": "x", "assertions": ["output.["]}', "mine.jsonl:1: assertion"),
        ('{"id": "a", "task": "x", "assertions": ["a"]}\n' * 2, "not unique: a"),
    ],
    ids=["empty", "no json", "no check", "no words", "no assertion", "twice"],
)
def test_a_bad_file_of_tasks_is_named_with_its_place(text: str, message: str, tmp_path: Path):
    path = tmp_path / "mine.jsonl"
    path.write_text(text)
    with pytest.raises(TaskFileRejected, match=message):
        read_user_tasks(path)


@pytest.mark.parametrize("changed", [{"rounds": 0}, {"mix": 1.5}, {"seconds": 0.0}])
def test_senseless_options_are_refused(changed: dict[str, Any]):
    with pytest.raises(ValueError, match=r"at least|share|positive"):
        options(**changed)
