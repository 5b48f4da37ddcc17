"""Compile accuracy: what is recovered of a family's inputs and data flow, and is it right afterwards.

Each family is called three times on live servers. Its first session is saved as a skill, then its
second under the same name; the third is held out. The same sessions go to the baselines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from catalog.result import CallSuccess
from catalog.tools import ToolId
from server.bank import Bank
from server.bank.errors import BankError
from server.bench.compile_report import Attempt, FamilyReport, Way
from server.bench.errors import BenchError
from server.bench.exact_match import compile_by_equality
from server.bench.families import Family, Sourced
from server.bench.peer import Peer
from server.bench.placed import Place, Role, compared, roles_of
from server.bench.sessions import Session, alike, expected_outputs, is_tuning, make_session
from server.planning.literals import mentions
from server.requests import SaveRequest
from server.verification import Checks
from skills_store.skill import RecordedCall, Skill
from skills_store.workflow.model import Workflow

__all__ = ["bound_inputs", "measure_family", "record"]


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A workflow that some way made of a session, and its inputs there."""

    workflow: Workflow
    inputs: Mapping[str, JsonValue]
    recorded: Sequence[RecordedCall]


async def measure_family(family: Family, bank: Bank, peer: Peer | None) -> FamilyReport:
    """Return what every way of compiling makes of one family.

    Raises:
        BenchError: a server refuses a call of the family.
    """
    sessions = [await record(family, number, bank) for number in range(3)]
    attempts = [await _saved(sessions, 1, bank), await _saved(sessions, 2, bank)]
    workflow, inputs, recorded = compile_by_equality(sessions[0])
    attempts.append(await _alone("equality alone", _Compiled(workflow, inputs, recorded), sessions, bank))
    if peer is not None:
        attempts.append(await _by_peer(peer, sessions, bank))
    return FamilyReport(
        family=family.id,
        half="tuned" if is_tuning(family) else "apart",
        kinds=family.kinds,
        servers=family.servers,
        calls=sum(len(session.calls) for session in sessions),
        attempts=tuple(attempts),
        skill=bank.context.store.head(family.id),
    )


async def record(family: Family, number: int, bank: Bank) -> Session:
    """Make one session through the bank, as a client that relays its calls; they are kept.

    Raises:
        BenchError: a server refuses a call.
    """

    async def answering(tool: ToolId, arguments: dict[str, JsonValue]) -> JsonValue:
        outcome = await bank.call_tool(tool, arguments, recording=_name(family, number))
        if not isinstance(outcome, CallSuccess):
            raise BenchError(f"{family.id}, instance {number + 1}: {tool} fails: {outcome.message}")
        return outcome.output

    return await make_session(family, number, answering)


def _name(family: Family, number: int) -> str:
    return f"{family.id}_{number + 1}"


async def _saved(sessions: Sequence[Session], run: int, bank: Bank) -> Attempt:
    """Save one more session of the family under its name, and judge the skill there is then."""
    family, session = sessions[0].family, sessions[run - 1]
    way: Way = "one run" if run == 1 else "two runs"
    request = SaveRequest(name=family.id, recording=_name(family, run - 1), task=session.task)
    try:
        saved = await bank.save(request)
    except BankError as error:
        return Attempt(way=way, compiled=False, detail=str(error))
    if saved.skill is None:
        return Attempt(way=way, compiled=False, detail=saved.reason)
    skill = await bank.describe_skill(family.id, saved.skill.version)
    base = _base_of(skill, sessions)
    made = _Compiled(skill.workflow, skill.tests[0].inputs, skill.tests[0].recorded)
    roles = roles_of(skill.workflow, skill.tests[0].recorded, base)
    bound, problem = bound_inputs(made.inputs, roles, base, sessions[2])
    right, why = (False, problem) if problem else await _runs_right(skill, bound, sessions[2], bank)
    outcome = {"state": skill.state, "detail": saved.reason, "right": right, "why_not_right": why}
    return _compared(way, roles, base).model_copy(update=outcome)


def _base_of(skill: Skill, sessions: Sequence[Session]) -> Session:
    """Return the session that a skill's first test is of."""
    recorded = skill.tests[0].recorded
    kept = [sum(_is_in(call, session) for call in recorded) for session in sessions]
    return sessions[kept.index(max(kept))]


def _is_in(call: RecordedCall, session: Session) -> bool:
    return any(own.tool == call.tool and own.arguments == call.arguments for own in session.calls)


def _compared(way: Way, roles: Mapping[Place, Role], session: Session) -> Attempt:
    found = compared(roles, session)
    return Attempt(
        way=way,
        compiled=True,
        inputs_exact=found.inputs_exact,
        links_exact=found.links_exact,
        over=found.over,
        said_constants=found.said_constants,
        under=found.under + found.lost_calls,
        wrong_links=found.wrong_links,
        places=found.places,
    )


async def _runs_right(
    skill: Skill, inputs: Mapping[str, JsonValue], third: Session, bank: Bank
) -> tuple[bool | None, str]:
    try:
        report = await bank.run_skill(skill.name, inputs, skill.version)
    except BankError as error:
        return False, str(error)
    if report.outputs is None:
        world = bool(report.faults) and all(fault.evidence == "world" for fault in report.faults)
        return None if world else False, "; ".join(fault.message for fault in report.faults)
    expected = expected_outputs(third)
    same = alike(report.outputs, expected, frozenset(third.family.volatile))
    return same, "" if same else "other outputs than recorded"


async def _alone(way: Way, made: _Compiled, sessions: Sequence[Session], bank: Bank) -> Attempt:
    """Judge a workflow that no skill is made of; it is run as a document."""
    roles = roles_of(made.workflow, made.recorded, sessions[0])
    bound, problem = bound_inputs(made.inputs, roles, sessions[0], sessions[2])
    right, why = False, problem
    if not problem:
        report = await bank.run(made.workflow.to_json(), bound, Checks())
        third = sessions[2]
        if report.outputs is None:
            why = "; ".join(fault.message for fault in report.faults)
        else:
            right = alike(report.outputs["whole"], third.calls[-1].output, frozenset(third.family.volatile))
            why = "" if right else "other outputs than recorded"
    outcome = {"right": right, "why_not_right": why}
    return _compared(way, roles, sessions[0]).model_copy(update=outcome)


async def _by_peer(peer: Peer, sessions: Sequence[Session], bank: Bank) -> Attempt:
    made = await peer.compile(sessions[0])
    if isinstance(made, str):
        return Attempt(way="trace2mcp", compiled=False, detail=made)
    workflow, inputs, recorded = made
    return await _alone("trace2mcp", _Compiled(workflow, inputs, recorded), sessions, bank)


def bound_inputs(
    inputs: Mapping[str, JsonValue], roles: Mapping[Place, Role], one: Session, other: Session
) -> tuple[dict[str, JsonValue], str]:
    """Return the inputs for another session by what its task gives, and what no task gives, if anything.

    An input is the value that the task gives at its places. One that stands for a constant of the
    family keeps its value: whoever reads the other task reads it there too.
    """
    bound: dict[str, JsonValue] = {}
    for name, value in inputs.items():
        places = [place for place, role in roles.items() if name in role.inputs]
        truths = [one.calls[number].leaves[pointer] for number, pointer in places]
        named = {given for truth in truths for given in truth.given}
        fitting = [given for given in sorted(named) if _is_same(one.given[given], value)]
        if fitting:
            bound[name] = _like(other.given[fitting[0]], value)
        elif places and (_are_constants(truths) or mentions(one.family.task, value)):
            bound[name] = value
        else:
            return {}, f"no task gives the input {name} ({value!r:.60})"
    return bound, ""


def _are_constants(truths: Sequence[Sourced]) -> bool:
    return all(not truth.given and not truth.calls for truth in truths)


def _is_same(given: JsonValue, value: JsonValue) -> bool:
    if isinstance(given, str) and isinstance(value, str):
        return given.strip().lower() == value.strip().lower()
    return given == value or str(given) == str(value)


def _like(value: JsonValue, sample: JsonValue) -> JsonValue:
    """Return a value as text where the input takes text."""
    is_text = isinstance(sample, str) and isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_text else value
