"""Questions that wait between two requests of 2026-07-28, and what an answer counts for."""

from __future__ import annotations

from typing import Any

import anyio
import mcp.types as types
import pytest
from fake_bank import MAIL, FakeBank
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client, MCPError

from catalog.effects import Effect
from catalog.tools import ToolId
from server.execution.consent import ConsentQuestion
from server.surface import BankServer
from server.surface.consent import asking, can_ask, consent_form, question_digest
from server.surface.failures import error_result
from server.surface.progress import ProgressFeed
from server.surface.suspension import SuspendedCalls

pytestmark = pytest.mark.anyio

WORKFLOW: dict[str, Any] = {"name": "send", "inputs": {"type": "object"}, "nodes": [], "outputs": {}}
ANN: dict[str, Any] = {"workflow": WORKFLOW, "inputs": {"to": ["ann"]}}
ANN_AND_BOB: dict[str, Any] = {"workflow": WORKFLOW, "inputs": {"to": ["ann", "bob"]}}
YES: dict[str, Any] = {
    "consent": types.ElicitResult(action="accept", content={"decision": "allow this call"})
}


async def never_called(context: Any, params: Any) -> types.ElicitResult:
    raise AssertionError(f"asked {params} of {context}")


def client_of(bank: FakeBank) -> Client:
    """Return a client that shows forms, as it declares, and answers by hand."""
    return Client(BankServer(bank), elicitation_callback=never_called)


async def first_question(client: Client, arguments: dict[str, Any]) -> types.InputRequiredResult:
    result = await client.session.call_tool("run_workflow", arguments, allow_input_required=True)
    assert isinstance(result, types.InputRequiredResult)
    return result


async def answered(client: Client, arguments: dict[str, Any], **answer: Any) -> Any:
    return await client.session.call_tool("run_workflow", arguments, allow_input_required=True, **answer)


async def test_nothing_happens_before_the_answer_and_nothing_happens_twice(bank: FakeBank):
    async with client_of(bank) as client:
        first = await first_question(client, ANN_AND_BOB)
        assert bank.sent == []
        second = await answered(client, ANN_AND_BOB, input_responses=YES, request_state=first.request_state)
        assert bank.sent == ["ann"]
        result = await answered(client, ANN_AND_BOB, input_responses=YES, request_state=second.request_state)
    assert result.structured_content["status"] == "succeeded"
    assert bank.sent == ["ann", "bob"]


async def test_an_answer_counts_once(bank: FakeBank):
    async with client_of(bank) as client:
        first = await first_question(client, ANN_AND_BOB)
        answer = {"input_responses": YES, "request_state": first.request_state}
        await answered(client, ANN_AND_BOB, **answer)
        with pytest.raises(MCPError) as raised:
            await answered(client, ANN_AND_BOB, **answer)
    assert raised.value.code == types.INVALID_PARAMS
    assert bank.sent == ["ann"]


async def test_an_answer_does_not_count_for_other_arguments(bank: FakeBank):
    async with client_of(bank) as client:
        first = await first_question(client, ANN)
        with pytest.raises(MCPError) as raised:
            await answered(client, ANN_AND_BOB, input_responses=YES, request_state=first.request_state)
    assert raised.value.code == types.INVALID_PARAMS
    assert bank.sent == []


async def test_an_answer_without_its_sealed_state_is_no_answer(bank: FakeBank):
    async with client_of(bank) as client:
        await first_question(client, ANN)
        again = await answered(client, ANN, input_responses=YES)
    assert isinstance(again, types.InputRequiredResult)
    assert bank.sent == []


@pytest.mark.parametrize("state", ["", "{}", "v1.AAAA"])
async def test_a_state_that_is_not_ours_is_refused(bank: FakeBank, state: str):
    async with client_of(bank) as client:
        with pytest.raises(MCPError) as raised:
            await answered(client, ANN, input_responses=YES, request_state=state)
    assert raised.value.code == types.INVALID_PARAMS


async def test_a_state_of_another_server_is_refused(bank: FakeBank):
    async with client_of(FakeBank()) as other, client_of(bank) as client:
        foreign = await first_question(other, ANN)
        with pytest.raises(MCPError) as raised:
            await answered(client, ANN, input_responses=YES, request_state=foreign.request_state)
    assert raised.value.code == types.INVALID_PARAMS


async def test_a_retry_without_an_answer_leaves_the_call_waiting_for_approval(bank: FakeBank):
    async with client_of(bank) as client:
        first = await first_question(client, ANN)
        result = await answered(client, ANN, request_state=first.request_state)
    assert result.structured_content["status"] == "needs_approval"
    assert bank.sent == []


async def test_a_call_that_nobody_answers_is_given_up():
    ended = anyio.Event()

    async def ask_and_wait(ask: Any) -> types.CallToolResult:
        try:
            await asking(ask)(ConsentQuestion(MAIL, {}, Effect.WRITE, "write"))
        finally:
            ended.set()
        raise AssertionError("nobody answered")

    async def silent(done: float, total: float | None, message: str | None) -> None:
        del done, total, message

    async with anyio.create_task_group() as tasks:
        calls = SuspendedCalls(tasks, wait_seconds=0)
        question = await calls.begin(ask_and_wait, ProgressFeed(), silent)
        assert isinstance(question, types.InputRequiredResult)
        with anyio.fail_after(5):
            await ended.wait()
        with pytest.raises(MCPError):
            await calls.resume(
                types.CallToolRequestParams(name="run_workflow", request_state=question.request_state), silent
            )


async def test_more_waiting_calls_than_are_kept_are_told_that_nobody_can_be_asked():
    async def ask(ask_client: Any) -> types.CallToolResult:
        answer = await asking(ask_client)(ConsentQuestion(MAIL, {}, Effect.WRITE, "write"))
        return error_result(f"the answer was {answer}")

    async def silent(done: float, total: float | None, message: str | None) -> None:
        del done, total, message

    async with anyio.create_task_group() as tasks:
        calls = SuspendedCalls(tasks, most_waiting=1)
        kept = await calls.begin(ask, ProgressFeed(), silent)
        told = await calls.begin(ask, ProgressFeed(), silent)
        tasks.cancel_scope.cancel()
    assert isinstance(kept, types.InputRequiredResult)
    assert told == error_result("the answer was None")


@pytest.mark.parametrize(
    ("elicitation", "expected"),
    [
        pytest.param(None, False, id="not-declared"),
        pytest.param(types.ElicitationCapability(), True, id="declared-empty-means-forms"),
        pytest.param(types.ElicitationCapability(form=types.FormElicitationCapability()), True, id="forms"),
        pytest.param(
            types.ElicitationCapability(url=types.UrlElicitationCapability()), False, id="addresses-only"
        ),
    ],
)
def test_only_a_client_that_shows_forms_can_ask(elicitation, expected):
    assert can_ask(types.ClientCapabilities(elicitation=elicitation)) is expected


QUESTIONS = st.builds(
    ConsentQuestion,
    tool=st.builds(ToolId, st.sampled_from(["a", "b"]), st.sampled_from(["a", "b"])),
    arguments=st.dictionaries(st.sampled_from(["x", "y"]), st.integers(0, 2)),
    effect=st.sampled_from(Effect),
    reason=st.just("because"),
)


@given(QUESTIONS, QUESTIONS)
def test_two_questions_have_one_digest_exactly_if_they_are_about_one_call(one, other):
    assert (question_digest(one) == question_digest(other)) == (one == other)


def test_a_long_argument_is_cut_where_the_person_sees_that_it_is():
    question = ConsentQuestion(MAIL, {"body": "x" * 9_000}, Effect.WRITE, "write")
    message = consent_form(question).message
    assert len(message) < 2_500
    assert message.endswith("… (9016 characters)")
