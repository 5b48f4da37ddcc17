"""One candidate's calls, each as far as the effect policy lets it happen.

Decides with `catalog.effects.decide` and carries it out: on the shared connection, in the
candidate's own process, from memory, from the ledger, or not at all. What is shared between the
candidates of an episode comes from `server.execution.episode`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

from opentelemetry.trace import Span, StatusCode

from catalog.effects import Activity, Decision, Effect, EffectTable, Reset, Verdict, decide
from catalog.result import CallFailure, CallOutcome, CallSuccess, FailureKind, RanUpstream
from catalog.tools import Snapshot
from server.execution.calls import Answer, CallRequest
from server.execution.consent import Approvals
from server.execution.isolation import OwnProcess, OwnProcesses
from server.execution.journal import Journal, journaled
from server.execution.ledger import CallBook, Ledger, Reservation, has_run
from server.execution.memory import CallMemory
from server.execution.servers import ToolServers
from server.reports import NotRepeated
from server.telemetry import span, with_content

__all__ = ["Candidate", "Shared"]

_WORLD = frozenset({FailureKind.TIMEOUT, FailureKind.SERVER_UNAVAILABLE})
_PLAN_RUNS = frozenset({Activity.FIRST_RUN, Activity.RERUN})


@dataclass
class Shared:
    """What the candidates of one episode have in common."""

    servers: ToolServers
    effects: EffectTable
    snapshot: Snapshot
    approvals: Approvals
    principal: str
    memoise: bool = True
    memory: CallMemory = field(default_factory=CallMemory)
    ledger: Ledger = field(default_factory=Ledger)
    not_repeated: list[NotRepeated] = field(default_factory=list[NotRepeated])
    calls: int = 0
    book: CallBook | None = None
    """Keeps beyond the process what happens once; None: nobody does."""
    journal: Journal | None = None
    """Of the job that this is, None outside of one."""

    def hold_back(self, held: NotRepeated) -> None:
        """Note a call that was held back, once for equal ones."""
        if held not in self.not_repeated:
            self.not_repeated.append(held)


@dataclass(frozen=True, slots=True)
class _Call:
    """A request with what the operator says of its tool."""

    request: CallRequest
    effect: Effect
    reset: Reset
    is_allowed: bool

    def decide(self, activity: Activity, *, consented: bool = False) -> Decision:
        """Return what the policy says."""
        return decide(self.effect, self.reset, activity, consented=consented or self.is_allowed)


@dataclass(frozen=True, slots=True)
class Candidate:
    """The `Caller` of one candidate. `number` tells the candidates of an episode apart."""

    shared: Shared
    activity: Activity
    number: int
    processes: OwnProcesses

    async def call(self, request: CallRequest) -> Answer:
        """Return the answer to one request."""
        effects, tool = self.shared.effects, request.tool
        call = _Call(request, effects.effect(tool), effects.reset_mode(tool.server), effects.allows(tool))
        described = _described(call, self.activity)
        with span(f"execute_tool {tool.server}.{tool.tool}", "execute_tool", described) as current:
            with_content(current, "gen_ai.tool.call.arguments", request.arguments)
            answer = await self._answer(call)
            _tell(current, answer)
            return answer

    async def _answer(self, call: _Call) -> Answer:
        request, decision = call.request, call.decide(self.activity)
        if decision.verdict is Verdict.ISOLATE:
            return await self._remembering(decision, call, self._in_own_process)
        if call.effect.is_free:
            return await self._remembering(decision, call, self._repeatably)
        if self.activity is Activity.CLIENT_CALL:
            ledger = self.shared.ledger
            leave = ledger.reserve(request, self.number) or ledger.grant(request, self.number)
            return await self._with_leave(call, leave)
        return await self._at_most_once(call, decision)

    async def _remembering(
        self, decision: Decision, call: _Call, make: Callable[[_Call], Awaitable[Answer]]
    ) -> Answer:
        # A replay proves that the upstream still answers the same, which memory cannot.
        shared, request = self.shared, call.request
        if not shared.memoise or not decision.memoise or self.activity is Activity.REPLAY:
            return await make(call)
        tool = shared.snapshot.get(request.tool)
        contract = tool.contract_hash if tool is not None else ""
        key = shared.memory.key(shared.principal, contract, request.tool, request.arguments)
        return await shared.memory.answer(key, partial(make, call))

    async def _repeatably(self, call: _Call) -> Answer:
        outcomes = [await self._on_shared(call)]
        if _is_world(outcomes[-1]) and call.decide(Activity.RETRY).verdict is Verdict.RUN:
            outcomes.append(await self._on_shared(call))
        return _answer(call, outcomes)

    async def _in_own_process(self, call: _Call) -> Answer:
        process = self.processes.of(call.request.tool.server)
        outcomes = [await self._on_own(call, process)]
        if _is_world(outcomes[-1]) and call.decide(Activity.RETRY).verdict is Verdict.ISOLATE:
            fresh = self.processes.renewed(process, call.effect)
            if fresh is not None:
                outcomes.append(await self._on_own(call, fresh))
        return _answer(call, outcomes)

    async def _at_most_once(self, call: _Call, decision: Decision) -> Answer:
        ledger, request = self.shared.ledger, call.request
        recorded = ledger.recorded(request, self.number)
        if recorded is not None and recorded.is_known:
            if not isinstance(recorded.outcome, CallSuccess):
                self._hold_back(call, f"{call.effect.value}: it failed and may have had its effect")
            return Answer(recorded.outcome, call.effect, from_memory=True, calls=0)
        if self.activity not in _PLAN_RUNS:
            return self._refused(call, decision.reason)
        leave = ledger.reserve(request, self.number)
        if leave is None:
            return self._refused(
                call, f"{call.effect.value}: it ran already, or may have, and runs only once"
            )
        journal = self.shared.journal
        is_settled = journal is not None and journal.is_settled(request)
        refusal = None if is_settled else await self._refusal(call, leave)
        return refusal or await self._with_leave(call, leave)

    async def _refusal(self, call: _Call, leave: Reservation) -> Answer | None:
        """Return the denial of a first run, its leave given back, or None when it may happen."""
        is_refused = True
        try:
            first = call.decide(Activity.FIRST_RUN)
            if first.verdict is Verdict.ASK:
                consented = await self.shared.approvals.granted(call.request, call.effect, first.reason)
                if consented is False:
                    return self._refused(call, "a person said no")
                first = call.decide(Activity.FIRST_RUN, consented=consented is True)
            is_refused = first.verdict is not Verdict.RUN
            return self._unapproved(call, first.reason) if is_refused else None
        finally:
            if is_refused:
                self.shared.ledger.release(leave)

    async def _with_leave(self, call: _Call, leave: Reservation) -> Answer:
        """Return the answer to a call that is not free; its leave is spent unless it provably did not run."""
        shared, ran = self.shared, True
        if shared.book is not None:
            shared.book.begun(call.request)
        try:
            outcome = await self._on_shared(call)
            if shared.book is not None:
                shared.book.ended_call(call.request, outcome)
            ran = has_run(outcome)
            if ran:
                shared.ledger.record(call.request, self.number, outcome)
            return _answer(call, [outcome])
        finally:
            if not ran:
                shared.ledger.release(leave)

    async def _on_shared(self, call: _Call) -> CallOutcome:
        request = call.request
        make = partial(self.shared.servers.call, request.tool, request.arguments)
        timed = partial(make, timeout_seconds=request.timeout_seconds)
        return await self._counted(call, partial(journaled, self.shared.journal, request, call.effect, timed))

    async def _on_own(self, call: _Call, process: OwnProcess) -> CallOutcome:
        return await self._counted(call, partial(process.call, call.request, call.effect))

    async def _counted(self, call: _Call, make: Callable[[], Awaitable[CallOutcome]]) -> CallOutcome:
        sent, may_have_run = True, not call.effect.is_free
        try:
            outcome = await make()
            sent = _was_sent(outcome)
            may_have_run = may_have_run and has_run(outcome)
            return outcome
        finally:
            self.shared.calls += sent
            if may_have_run:
                self.shared.memory.advance(call.request.tool.server)

    def _refused(self, call: _Call, reason: str) -> Answer:
        self._hold_back(call, reason)
        return _denied(call, f"{call.request.tool} was not called: {reason}")

    def _unapproved(self, call: _Call, reason: str) -> Answer:
        self._hold_back(call, reason, allow=f"--allow {call.request.tool}")
        message = f"{call.request.tool} was not called: {reason} (--allow {call.request.tool})"
        return _denied(call, message, needs_approval=True)

    def _hold_back(self, call: _Call, reason: str, allow: str | None = None) -> None:
        request = call.request
        repeatable = f"skillbank effects set {request.tool} read"
        self.shared.hold_back(
            NotRepeated(
                node=request.node,
                tool=request.tool,
                effect=call.effect,
                reason=reason,
                allow=allow or repeatable,
            )
        )


def _described(call: _Call, activity: Activity) -> dict[str, str | None]:
    return {
        "gen_ai.tool.name": call.request.tool.tool,
        "skillbank.server": call.request.tool.server,
        "skillbank.node": call.request.node,
        "skillbank.effect": call.effect.value,
        "skillbank.activity": activity.value,
    }


def _tell(current: Span, answer: Answer) -> None:
    current.set_attribute("skillbank.from_memory", answer.from_memory)
    if isinstance(answer.outcome, CallFailure):
        current.set_attribute("error.type", answer.outcome.kind.value)
        current.set_status(StatusCode.ERROR)
    elif answer.outcome.large_bytes is None:
        with_content(current, "gen_ai.tool.call.result", answer.outcome.output)


def _denied(call: _Call, message: str, *, needs_approval: bool = False) -> Answer:
    failure = CallFailure(FailureKind.DENIED, message, 0.0, RanUpstream.NO)
    return Answer(failure, call.effect, calls=0, needs_approval=needs_approval)


def _answer(call: _Call, outcomes: list[CallOutcome]) -> Answer:
    return Answer(outcomes[-1], call.effect, calls=sum(_was_sent(outcome) for outcome in outcomes))


def _was_sent(outcome: CallOutcome) -> bool:
    """Whether a call reached its server, rather than finding none."""
    lost = isinstance(outcome, CallFailure) and outcome.kind is FailureKind.SERVER_UNAVAILABLE
    return not (lost and not has_run(outcome))


def _is_world(outcome: CallOutcome) -> bool:
    return isinstance(outcome, CallFailure) and outcome.kind in _WORLD
