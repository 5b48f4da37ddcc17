"""Asking a person: one question at a time, and what is shown."""

from __future__ import annotations

import anyio
import pytest

from catalog.effects import Effect
from catalog.tools import ToolId
from server.execution.calls import CallRequest
from server.execution.consent import (
    Approvals,
    ConsentQuestion,
    GrantAll,
    NoConsent,
    TerminalConsent,
    render_question,
)

pytestmark = pytest.mark.anyio

SEND = ToolId("mail", "send")


def question(tool: ToolId = SEND, **arguments: str) -> ConsentQuestion:
    return ConsentQuestion(tool, dict(arguments), Effect.WRITE, "write and not allowed yet")


@pytest.mark.parametrize(("typed", "answer"), [("y", True), ("a", True), ("n", False), (None, None)], ids=str)
async def test_what_is_typed_is_the_answer(typed, answer):
    assert await TerminalConsent(lambda _: typed).ask(question()) is answer


async def test_all_counts_for_every_later_call_of_the_tool_and_of_no_other():
    shown: list[str] = []

    def prompt(text: str) -> str:
        shown.append(text)
        return "a"

    consent = TerminalConsent(prompt)
    for tool in (SEND, SEND, ToolId("mail", "delete"), SEND):
        assert await consent.ask(question(tool)) is True
    assert [text.split(" ")[0] for text in shown] == ["mail/send", "mail/delete"]


async def test_without_a_terminal_nobody_answers():
    assert await TerminalConsent().ask(question()) is None


async def test_nobody_and_everything():
    assert await NoConsent().ask(question()) is None
    assert await GrantAll().ask(question()) is True


def test_the_question_shows_call_and_reason_without_control_characters():
    text = render_question(question(ToolId("mail", "se\x1b[2Jnd"), to="\x1b[31mboss"))
    assert text.startswith("mail/send (write and not allowed yet)\n")
    assert "\x1b" not in text
    assert '"\\u001b[31mboss"' in text


def test_a_long_call_is_cut_and_says_so():
    text = render_question(question(body="x" * 5_000))
    assert len(text) < 2_200
    assert "(5016 characters)" in text


class Slow:
    """Counts how many questions wait at once."""

    def __init__(self) -> None:
        self.open = 0
        self.most = 0
        self.asked = 0

    async def ask(self, question: ConsentQuestion) -> bool | None:
        del question
        self.asked += 1
        self.open += 1
        self.most = max(self.most, self.open)
        await anyio.lowlevel.checkpoint()
        self.open -= 1
        return True


async def test_questions_come_one_at_a_time_and_once_for_each_node():
    slow = Slow()
    approvals = Approvals(slow)
    async with anyio.create_task_group() as tasks:
        for node in ("a", "b", "a", "b"):
            request = CallRequest(node, None, SEND, {})
            tasks.start_soon(approvals.granted, request, Effect.WRITE, "why")
    assert (slow.asked, slow.most) == (2, 1)
