"""Episodes over real connections to scripted servers: what may run, how often, and where."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.canonical import JsonValue
from catalog.connections import Connections
from catalog.effects import Activity, Effect, EffectTable, Reset
from catalog.errors import ServerUnavailable
from catalog.result import CallFailure, CallOutcome, CallSuccess, FailureKind, RanUpstream
from catalog.testing import Refuse, Reply, ScriptedServer, ScriptedTool, open_test_connections
from catalog.tools import Snapshot, ToolId
from server.execution.calls import Answer, Caller, CallRequest
from server.execution.consent import Consent, ConsentQuestion, GrantAll, NoConsent
from server.execution.episode import Episode
from server.execution.run import Run, execute_workflow
from skills_store.workflow.model import Workflow, parse_workflow

pytestmark = pytest.mark.anyio

FIRST, RERUN, REPLAY, CLIENT = Activity.FIRST_RUN, Activity.RERUN, Activity.REPLAY, Activity.CLIENT_CALL
READ, SEND, PURE = ToolId("mail", "read"), ToolId("mail", "send"), ToolId("mail", "shout")
OTHER = ToolId("mail", "delete")


def mail_server() -> ScriptedServer:
    """Return a server whose `read` counts what `send` sent in the same process."""

    def tools() -> list[ScriptedTool]:
        sent: list[JsonValue] = []

        def send(arguments: dict[str, JsonValue]) -> JsonValue | Reply | Refuse:
            match arguments.get("to"):
                case "nobody":
                    return Reply.text("Error: no such mailbox, but one letter less", is_error=True)
                case "refused":
                    return Refuse(-32602, "Invalid params: to")
                case to:
                    sent.append(to)
                    return {"sent": len(sent)}

        return [
            ScriptedTool("read", lambda _: {"count": len(sent)}),
            ScriptedTool("send", send),
            ScriptedTool("delete", lambda _: {"deleted": True}),
            ScriptedTool("shout", lambda arguments: {"text": str(arguments.get("text")).upper()}),
        ]

    return ScriptedServer(tools)


def table(*, allow: tuple[str, ...] = (), reset: Reset = Reset.NONE) -> EffectTable:
    effects = {"read": Effect.READ, "send": Effect.WRITE, "shout": Effect.PURE}
    return EffectTable({"mail": effects}, {"mail": reset}, {"mail": allow})


@dataclass
class Mail:
    """A mail server with an episode over it."""

    server: ScriptedServer
    episode: Episode
    snapshot: Snapshot
    connections: Connections

    def count(self, tool: ToolId = SEND) -> int:
        return self.server.log.count(tool.tool)

    async def run(self, planned: Workflow, activity: Activity) -> Run:
        async with self.episode.candidate(activity) as caller:
            return await execute_workflow(planned, {}, caller, snapshot=self.snapshot)


@asynccontextmanager
async def mail(
    effects: EffectTable | None = None, consent: Consent | None = None, plan: Workflow | None = None
) -> AsyncIterator[Mail]:
    server, chosen = mail_server(), effects or table()
    with anyio.fail_after(30):
        async with open_test_connections({"mail": server}, effects=chosen) as connections:
            snapshot = await connections.snapshot()
            episode = Episode(connections, chosen, snapshot, consent or NoConsent(), "me")
            if plan is not None:
                episode.set_plan(plan)
            yield Mail(server, episode, snapshot, connections)


def workflow(*nodes: tuple[str, ToolId, dict[str, Any]], **more: Any) -> Workflow:
    """Return a workflow whose nodes run one after the other."""
    planned = [
        {
            "id": node_id,
            "tool": {"server": tool.server, "tool": tool.tool},
            "arguments": arguments,
            "after": [nodes[index - 1][0]] if index else [],
            **more,
        }
        for index, (node_id, tool, arguments) in enumerate(nodes)
    ]
    outputs = {"last": f"$nodes.{nodes[-1][0]}.output"}
    return parse_workflow({"name": "w", "inputs": {"type": "object"}, "nodes": planned, "outputs": outputs})


def asked(tool: ToolId, node: str = "n", **arguments: Any) -> CallRequest:
    return CallRequest(node, None, tool, arguments)


def kind_of(answer: Answer) -> str:
    return "succeeded" if isinstance(answer.outcome, CallSuccess) else answer.outcome.kind.value


SENDING = workflow(("count", READ, {}), ("send", SEND, {"to": "a"}))


class Person:
    """Somebody who can be asked, and gives the same answer to everything."""

    def __init__(self, answer: bool | None) -> None:
        self.answer = answer
        self.questions: list[ConsentQuestion] = []

    async def ask(self, question: ConsentQuestion) -> bool | None:
        self.questions.append(question)
        return self.answer


class TestFreeCalls:
    async def test_a_read_is_remembered_between_candidates(self):
        async with mail() as it:
            for activity in (FIRST, RERUN, RERUN):
                await it.run(workflow(("r", READ, {})), activity)
            assert (it.count(READ), it.episode.calls) == (1, 1)

    async def test_what_is_not_free_makes_reads_be_asked_again(self):
        plan = workflow(("before", READ, {}), ("send", SEND, {"to": "a"}), ("later", READ, {}))
        async with mail(table(allow=("send",)), plan=plan) as it:
            run = await it.run(plan, FIRST)
            assert run.result == {"last": {"count": 1}}
            assert it.count(READ) == 2

    async def test_a_replay_is_never_answered_from_memory(self):
        async with mail() as it:
            for _ in range(2):
                await it.run(workflow(("r", READ, {})), REPLAY)
            assert it.count(READ) == 2

    async def test_nothing_is_remembered_when_memory_is_off(self):
        async with mail() as it:
            episode = Episode(it.connections, table(), it.snapshot, NoConsent(), memoise=False)
            for _ in range(2):
                async with episode.candidate(RERUN) as caller:
                    await caller.call(asked(READ))
            assert (it.count(READ), episode.calls) == (2, 2)


class TestConsent:
    async def test_a_first_run_that_nobody_allows_needs_approval(self):
        async with mail(plan=SENDING) as it:
            run = await it.run(SENDING, FIRST)
            (fault,) = run.faults
            assert (fault.kind, fault.needs_approval, fault.arguments) == ("denied", True, {"to": "a"})
            assert run.trace.status == "needs_approval"
            assert run.outputs == {"count": {"count": 0}}
            assert (it.count(), it.episode.calls) == (0, 1)
            (held,) = it.episode.not_repeated
            assert (held.node, held.tool, held.allow) == ("send", SEND, "--allow mail/send")

    @pytest.mark.parametrize(
        ("effects", "consent"),
        [
            pytest.param(table(allow=("se*",)), NoConsent(), id="config"),
            pytest.param(table(), GrantAll(), id="person"),
        ],
    )
    async def test_an_allowed_first_run_happens(self, effects, consent):
        async with mail(effects, consent, SENDING) as it:
            assert (await it.run(SENDING, FIRST)).result == {"last": {"sent": 1}}
            assert it.episode.not_repeated == []

    @pytest.mark.parametrize("answer", [False, None])
    async def test_a_person_is_asked_once_for_each_tool_and_node(self, answer):
        person = Person(answer)
        async with mail(consent=person, plan=SENDING) as it:
            for activity in (FIRST, RERUN, RERUN):
                await it.run(SENDING, activity)
            (question,) = person.questions
            assert (question.tool, question.arguments, question.effect) == (SEND, {"to": "a"}, Effect.WRITE)
            assert it.count() == 0

    async def test_a_tool_outside_of_the_plan_is_asked_for_in_later_candidates_and_runs_once(self):
        person = Person(True)
        async with mail(consent=person, plan=SENDING) as it:
            async with it.episode.candidate(RERUN) as caller:
                answers = [await caller.call(asked(OTHER, node, x=1)) for node in ("new", "newer")]
            assert [kind_of(answer) for answer in answers] == ["succeeded", "denied"]
            assert len(person.questions) == 1


class TestAtMostOnce:
    async def test_the_same_call_of_the_same_node_is_answered_from_the_ledger(self):
        async with mail(table(allow=("send",)), plan=SENDING) as it:
            await it.run(SENDING, FIRST)
            again = await it.run(SENDING, RERUN)
            assert again.result == {"last": {"sent": 1}}
            assert [step.from_memory for step in again.trace.steps if step.node == "send"] == [True]
            assert (it.count(), it.episode.not_repeated) == (1, [])

    async def test_changed_arguments_are_refused_once_the_node_ran(self):
        async with mail(table(allow=("send",)), plan=SENDING) as it:
            await it.run(SENDING, FIRST)
            run = await it.run(workflow(("send", SEND, {"to": "b"})), RERUN)
            (fault,) = run.faults
            assert (fault.kind, fault.needs_approval, run.trace.status) == ("denied", False, "failed")
            (held,) = it.episode.not_repeated
            assert held.allow == "skillbank effects set mail/send read"
            assert it.count() == 1

    async def test_another_node_gets_no_second_call(self):
        async with mail(table(allow=("send",)), plan=SENDING) as it:
            await it.run(SENDING, FIRST)
            run = await it.run(workflow(("other", SEND, {"to": "a"})), RERUN)
            assert [fault.kind for fault in run.faults] == ["denied"]

    async def test_a_call_that_was_refused_before_any_effect_may_be_mended(self):
        plan = workflow(("send", SEND, {"to": "refused"}))
        async with mail(table(allow=("send",)), plan=plan) as it:
            assert [fault.kind for fault in (await it.run(plan, FIRST)).faults] == ["invalid_argument"]
            run = await it.run(workflow(("send", SEND, {"to": "a"})), RERUN)
            assert run.result == {"last": {"sent": 1}}

    async def test_a_call_that_failed_after_it_may_have_acted_is_not_repeated(self):
        plan = workflow(("send", SEND, {"to": "nobody"}))
        async with mail(table(allow=("send",)), plan=plan) as it:
            await it.run(plan, FIRST)
            same = await it.run(plan, RERUN)
            assert [fault.kind for fault in same.faults] == ["tool_error"]
            changed = await it.run(workflow(("send", SEND, {"to": "a"})), RERUN)
            assert [fault.kind for fault in changed.faults] == ["denied"]
            assert it.count() == 1
            assert len(it.episode.not_repeated) == 2

    async def test_a_planned_node_that_was_never_reached_has_its_first_run_in_a_repair(self):
        plan = workflow(("count", ToolId("mail", "misspelt"), {}), ("send", SEND, {"to": "a"}))
        async with mail(table(allow=("send",)), plan=plan) as it:
            await it.run(plan, FIRST)
            assert it.count() == 0
            assert (await it.run(SENDING, RERUN)).result == {"last": {"sent": 1}}

    async def test_a_replay_makes_no_call_that_is_not_free_even_when_it_is_allowed(self):
        async with mail(table(allow=("send",)), GrantAll(), SENDING) as it:
            run = await it.run(SENDING, REPLAY)
            assert [fault.kind for fault in run.faults] == ["denied"]
            assert it.count() == 0

    async def test_a_clients_own_call_runs_each_time_and_a_repair_after_it_does_not(self):
        async with mail(plan=SENDING) as it:
            for _ in range(2):
                await it.run(SENDING, CLIENT)
            run = await it.run(workflow(("send", SEND, {"to": "b"})), RERUN)
            assert [fault.kind for fault in run.faults] == ["denied"]
            assert it.count() == 2

    async def test_each_item_of_a_planned_map_runs_once(self):
        mapped = workflow(("send", SEND, {"to": "$item"}), for_each={"$literal": ["a", "a", "b"]})
        longer = workflow(("send", SEND, {"to": "$item"}), for_each={"$literal": ["a", "b", "c"]})
        async with mail(table(allow=("send",)), plan=mapped) as it:
            first = await it.run(mapped, FIRST)
            assert it.count() == 3
            assert (await it.run(mapped, RERUN)).result == first.result
            assert [(f.kind, f.item) for f in (await it.run(longer, RERUN)).faults] == [("denied", 2)]
            assert it.count() == 3

    async def test_an_episode_has_one_plan(self):
        async with mail(plan=SENDING) as it:
            with pytest.raises(RuntimeError, match="one base plan"):
                it.episode.set_plan(SENDING)


class TestOwnProcesses:
    @pytest.mark.parametrize("activity", [FIRST, RERUN, REPLAY])
    async def test_each_candidate_starts_from_a_fresh_process(self, activity):
        plan = workflow(("send", SEND, {"to": "a"}), ("later", READ, {}))
        async with mail(table(reset=Reset.PROCESS), plan=plan) as it:
            started = it.server.starts
            for _ in range(2):
                assert (await it.run(plan, activity)).result == {"last": {"count": 1}}
            assert it.server.starts == started + 2
            assert it.episode.not_repeated == []

    async def test_no_process_is_started_that_is_not_called(self):
        async with mail(table(reset=Reset.PROCESS)) as it:
            started = it.server.starts
            async with it.episode.candidate(RERUN):
                pass
            assert it.server.starts == started

    async def test_a_pure_answer_is_remembered_across_processes(self):
        async with mail(table(reset=Reset.PROCESS)) as it:
            for _ in range(2):
                await it.run(workflow(("s", PURE, {"text": "x"})), RERUN)
            assert it.count(PURE) == 1

    async def test_an_exception_of_the_candidate_arrives_as_itself(self):
        async with mail(table(reset=Reset.PROCESS)) as it:

            async def fail() -> None:
                async with it.episode.candidate(RERUN) as caller:
                    await caller.call(asked(READ))
                    raise KeyError("mine")

            with pytest.raises(KeyError, match="mine"):
                await fail()

    async def test_a_cancelled_candidate_lets_its_process_go(self):
        servers = Fake()
        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:

                async def hang() -> None:
                    async with servers.episode(table(reset=Reset.PROCESS)).candidate(RERUN) as caller:
                        await caller.call(asked(READ))
                        await anyio.sleep_forever()

                tasks.start_soon(hang)
                await servers.opened.wait()
                await anyio.wait_all_tasks_blocked()
                tasks.cancel_scope.cancel()
        assert servers.closed == ["mail"]


TIMEOUT = CallFailure(FailureKind.TIMEOUT, "slow", 0.0, RanUpstream.UNSURE)
NEVER_SENT = CallFailure(FailureKind.SERVER_UNAVAILABLE, "down", 0.0, RanUpstream.NO)
FINE = CallSuccess({"ok": True}, [], 0.0)


@dataclass
class Fake:
    """Tool servers that answer from a list, where a real one could not be made to fail on cue."""

    answers: list[CallOutcome] = field(default_factory=list[CallOutcome])
    made: list[ToolId] = field(default_factory=list[ToolId])
    processes: int = 0
    closed: list[str] = field(default_factory=list[str])
    opened: anyio.Event = field(default_factory=anyio.Event)
    cannot_start: bool = False

    async def call(
        self, tool: ToolId, arguments: dict[str, JsonValue], *, timeout_seconds: float | None = None
    ) -> CallOutcome:
        del arguments, timeout_seconds
        await anyio.lowlevel.checkpoint()
        self.made.append(tool)
        return self.answers.pop(0) if self.answers else FINE

    @asynccontextmanager
    async def isolated(self, server: str) -> AsyncIterator[FakeProcess]:
        if self.cannot_start:
            raise ServerUnavailable(server, "no such program")
        self.processes += 1
        self.opened.set()
        try:
            yield FakeProcess(self, server)
        finally:
            self.closed.append(server)

    def episode(self, effects: EffectTable, consent: Consent | None = None) -> Episode:
        return Episode(self, effects, Snapshot({}), consent or NoConsent())


@dataclass
class FakeProcess:
    servers: Fake
    server: str

    async def call(
        self, tool: str, arguments: dict[str, JsonValue], *, timeout_seconds: float
    ) -> CallOutcome:
        return await self.servers.call(ToolId(self.server, tool), arguments, timeout_seconds=timeout_seconds)


class TestWorldFaults:
    @pytest.mark.parametrize(
        ("answers", "kind", "calls"),
        [
            pytest.param([TIMEOUT, FINE], "succeeded", 2, id="mended"),
            pytest.param([TIMEOUT, TIMEOUT, FINE], "timeout", 2, id="persists"),
            pytest.param([NEVER_SENT, NEVER_SENT], "server_unavailable", 0, id="never sent"),
        ],
    )
    async def test_a_free_call_is_tried_once_more(self, answers, kind, calls):
        servers = Fake(list(answers))
        episode = servers.episode(table())
        async with episode.candidate(FIRST) as caller:
            answer = await caller.call(asked(READ))
        assert (kind_of(answer), answer.calls, episode.calls) == (kind, calls, calls)
        assert len(servers.made) == 2

    async def test_a_call_that_is_not_free_is_not_and_nobody_knows_whether_it_ran(self):
        servers = Fake([TIMEOUT])
        episode = servers.episode(table(allow=("send",)))
        episode.set_plan(workflow(("n", SEND, {"to": "a"})))
        async with episode.candidate(FIRST) as caller:
            assert kind_of(await caller.call(asked(SEND, to="a"))) == "timeout"
        async with episode.candidate(RERUN) as caller:
            assert kind_of(await caller.call(asked(SEND, to="a"))) == "denied"
        assert servers.made == [SEND]

    async def test_a_call_that_was_never_sent_keeps_its_leave(self):
        servers = Fake([NEVER_SENT])
        episode = servers.episode(table(allow=("send",)))
        async with episode.candidate(FIRST) as caller:
            assert kind_of(await caller.call(asked(SEND))) == "server_unavailable"
            assert kind_of(await caller.call(asked(SEND))) == "succeeded"

    async def test_an_own_process_is_replaced_while_it_holds_nothing(self):
        servers = Fake([TIMEOUT])
        async with servers.episode(table(reset=Reset.PROCESS)).candidate(RERUN) as caller:
            assert kind_of(await caller.call(asked(SEND))) == "succeeded"
        assert (servers.processes, len(servers.closed)) == (2, 2)

    async def test_an_own_process_that_holds_state_is_not_replaced(self):
        servers = Fake([FINE, TIMEOUT])
        async with servers.episode(table(reset=Reset.PROCESS)).candidate(RERUN) as caller:
            await caller.call(asked(SEND))
            assert kind_of(await caller.call(asked(READ))) == "timeout"
        assert servers.processes == 1

    async def test_a_process_that_cannot_start_is_a_value(self):
        servers = Fake(cannot_start=True)
        episode = servers.episode(table(reset=Reset.PROCESS))
        async with episode.candidate(RERUN) as caller:
            answer = await caller.call(asked(SEND))
        assert (kind_of(answer), episode.calls) == ("server_unavailable", 0)
        assert "no such program" in answer.outcome.message

    async def test_a_cancelled_call_that_is_not_free_counts_as_run(self):
        servers = Fake()
        episode = servers.episode(table(allow=("send",)))
        with anyio.move_on_after(0):
            async with episode.candidate(FIRST) as caller:
                await caller.call(asked(SEND, to="a"))
        async with episode.candidate(RERUN) as caller:
            assert kind_of(await caller.call(asked(SEND, to="a"))) == "denied"


OUTCOMES = st.sampled_from(
    [
        FINE,
        TIMEOUT,
        NEVER_SENT,
        CallFailure(FailureKind.INVALID_ARGUMENT, "no", 0.0, RanUpstream.NO),
        CallFailure(FailureKind.TOOL_ERROR, "no", 0.0, RanUpstream.YES),
    ]
)
NODES, TOOLS = st.sampled_from(["a", "b", "c"]), st.sampled_from([SEND, OTHER, READ])
CALLS = st.lists(st.tuples(NODES, TOOLS, st.integers(0, 2), st.booleans()), max_size=6)
CANDIDATES = st.lists(st.tuples(st.sampled_from([FIRST, RERUN, REPLAY]), CALLS), max_size=6)


@settings(max_examples=150, deadline=None)
@given(
    planned=st.lists(TOOLS, min_size=1, max_size=3),
    candidates=CANDIDATES,
    answers=st.lists(OUTCOMES, max_size=20),
    consent=st.sampled_from([NoConsent(), GrantAll(), Person(False)]),
    allow=st.sampled_from([(), ("send",), ("*",)]),
)
def test_no_sequence_of_candidates_makes_more_costly_calls_than_the_plan(
    planned, candidates, answers, consent, allow
):
    plan = workflow(*((name, tool, {}) for name, tool in zip("abc", planned, strict=False)))
    ran = anyio.run(_played, plan, candidates, answers, consent, allow)
    costly = {place: count for place, count in ran.items() if place[0] != READ}
    assert set(costly.values()) <= {1}
    by_tool = Counter(tool for tool, _ in costly)
    assert all(by_tool[tool] <= max(1, Counter(planned)[tool]) for tool in by_tool)
    if isinstance(consent, NoConsent) and allow == ():
        assert not costly


async def _played(
    plan: Workflow, candidates: Any, answers: list[CallOutcome], consent: Consent, allow: tuple[str, ...]
) -> Counter[tuple[ToolId, JsonValue]]:
    """Return how often each tool ran, or may have, by the node that called it."""
    servers = Counting(list(answers))
    episode = servers.episode(table(allow=allow), consent)
    episode.set_plan(plan)
    for activity, calls in candidates:
        async with episode.candidate(activity) as caller, anyio.create_task_group() as tasks:
            for node, tool, argument, waits in calls:
                request = asked(tool, node, x=argument, by=node)
                if waits:
                    await caller.call(request)
                else:
                    tasks.start_soon(_ask, caller, request)
    return servers.ran


async def _ask(caller: Caller, request: CallRequest) -> None:
    await caller.call(request)


@dataclass
class Counting(Fake):
    """Counts the calls that had their effect, or may have had."""

    ran: Counter[tuple[ToolId, JsonValue]] = field(default_factory=Counter[tuple[ToolId, JsonValue]])

    async def call(
        self, tool: ToolId, arguments: dict[str, JsonValue], *, timeout_seconds: float | None = None
    ) -> CallOutcome:
        outcome = await super().call(tool, arguments, timeout_seconds=timeout_seconds)
        if isinstance(outcome, CallSuccess) or outcome.ran is not RanUpstream.NO:
            self.ran[tool, arguments["by"]] += 1
        return outcome
