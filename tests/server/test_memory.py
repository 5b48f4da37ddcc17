"""Remembered answers: one call for equal requests, until the state they rest on changes."""

from __future__ import annotations

import anyio
import pytest

from catalog.effects import Effect
from catalog.result import CallFailure, CallOutcome, CallSuccess, FailureKind, RanUpstream
from catalog.tools import ToolId
from server.execution.calls import Answer
from server.execution.memory import CallMemory, MemoKey, is_repeatable

pytestmark = pytest.mark.anyio

TOOL = ToolId("s", "t")


class Upstream:
    """Counts the calls made, and holds them back while `gate` is closed."""

    def __init__(self, outcome: CallOutcome | None = None, effect: Effect = Effect.PURE) -> None:
        self.calls = 0
        self.effect = effect
        self.outcome = outcome or CallSuccess({"n": 1}, [], 0.0)
        self.gate = anyio.Event()
        self.gate.set()

    async def make(self) -> Answer:
        self.calls += 1
        await self.gate.wait()
        return Answer(self.outcome, self.effect)


def key(memory: CallMemory, **changed: str) -> MemoKey:
    parts = {"principal": "me", "contract_hash": "c", "tool": "t", "argument": "a"} | changed
    tool = ToolId("s", parts["tool"])
    return memory.key(parts["principal"], parts["contract_hash"], tool, {"x": parts["argument"]})


async def test_an_equal_call_is_answered_from_memory():
    memory, upstream = CallMemory(), Upstream()
    first = await memory.answer(key(memory), upstream.make)
    second = await memory.answer(key(memory), upstream.make)
    assert (first.from_memory, first.calls) == (False, 1)
    assert (second.from_memory, second.calls, second.outcome) == (True, 0, first.outcome)
    assert upstream.calls == 1


@pytest.mark.parametrize("changed", ["principal", "contract_hash", "tool", "argument"])
async def test_a_call_that_differs_in_any_part_of_the_key_is_made(changed):
    memory, upstream = CallMemory(), Upstream()
    await memory.answer(key(memory), upstream.make)
    await memory.answer(key(memory, **{changed: "other"}), upstream.make)
    assert upstream.calls == 2


async def test_a_new_epoch_of_its_server_forgets_and_of_another_does_not():
    memory, upstream = CallMemory(), Upstream()
    await memory.answer(key(memory), upstream.make)
    memory.advance("another")
    assert (await memory.answer(key(memory), upstream.make)).from_memory
    memory.advance("s")
    assert not (await memory.answer(key(memory), upstream.make)).from_memory


async def test_equal_calls_on_their_way_share_one():
    memory, upstream = CallMemory(), Upstream()
    upstream.gate = anyio.Event()
    answers: list[Answer] = []

    async def ask() -> None:
        answers.append(await memory.answer(key(memory), upstream.make))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            upstream.gate.set()
    assert upstream.calls == 1
    assert sorted(answer.from_memory for answer in answers) == [False, True, True]


async def test_those_who_wait_for_a_cancelled_call_make_their_own():
    memory, upstream = CallMemory(), Upstream()
    upstream.gate = anyio.Event()
    answers: list[Answer] = []

    async def lead(scope: anyio.CancelScope) -> None:
        with scope:
            await memory.answer(key(memory), upstream.make)

    async def follow() -> None:
        answers.append(await memory.answer(key(memory), upstream.make))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            scope = anyio.CancelScope()
            tasks.start_soon(lead, scope)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(follow)
            await anyio.wait_all_tasks_blocked()
            scope.cancel()
            await anyio.wait_all_tasks_blocked()
            upstream.gate.set()
    assert upstream.calls == 2
    assert not answers[0].from_memory


def failure(kind: FailureKind) -> CallFailure:
    return CallFailure(kind, "no", 0.0, RanUpstream.YES)


@pytest.mark.parametrize(
    ("kind", "pure", "read"),
    [
        (FailureKind.UNKNOWN_TOOL, True, True),
        (FailureKind.INVALID_ARGUMENT, True, True),
        (FailureKind.TOOL_ERROR, True, False),
        (FailureKind.DISGUISED_ERROR, True, False),
        (FailureKind.OUTPUT_SCHEMA_MISMATCH, True, False),
        (FailureKind.OVER_LIMIT, True, False),
        (FailureKind.TIMEOUT, False, False),
        (FailureKind.SERVER_UNAVAILABLE, False, False),
        (FailureKind.DENIED, False, False),
    ],
    ids=lambda value: str(value),
)
def test_a_failure_is_repeatable_when_it_says_something_about_the_arguments(kind, pure, read):
    assert is_repeatable(failure(kind), Effect.PURE) is pure
    assert is_repeatable(failure(kind), Effect.READ) is read


async def test_what_the_world_did_is_asked_again():
    memory, upstream = CallMemory(), Upstream(failure(FailureKind.TIMEOUT))
    for _ in range(2):
        await memory.answer(key(memory), upstream.make)
    assert upstream.calls == 2


async def test_the_least_recently_used_answers_go_when_the_bound_is_passed():
    memory = CallMemory(limit_bytes=250)
    upstream = Upstream(CallSuccess("x" * 80, [], 0.0))
    for argument in ("a", "b", "a", "c"):
        await memory.answer(key(memory, argument=argument), upstream.make)
    assert upstream.calls == 3
    assert memory.bytes <= 250
    assert (await memory.answer(key(memory, argument="a"), upstream.make)).from_memory
    assert not (await memory.answer(key(memory, argument="b"), upstream.make)).from_memory


async def test_an_answer_larger_than_the_bound_is_not_kept():
    memory, upstream = CallMemory(limit_bytes=10), Upstream(CallSuccess("x" * 80, [], 0.0))
    for _ in range(2):
        await memory.answer(key(memory), upstream.make)
    assert (upstream.calls, memory.bytes) == (2, 0)
