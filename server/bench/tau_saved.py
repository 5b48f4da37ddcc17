"""What a recorded session gives the inputs of the skill that it became, or that it was another proof of."""

from __future__ import annotations

from collections.abc import Mapping

from server.bank import Bank
from server.bank.admission.saving import kept_run
from server.bench.tau_second import MadeCalls
from server.compilation.compile import Compiled, Surroundings, compile_skill
from server.compilation.errors import NotCompilable
from server.compilation.widening import as_second_run
from server.requests import SaveRequest
from skills_store.skill import ReplayTest, Skill

__all__ = ["of_session"]


async def of_session(skill: Skill, request: SaveRequest, calls: MadeCalls, bank: Bank) -> Skill | None:
    """Return a skill with the one test that a session is of it, None where the session is none.

    Args:
        skill: what a save of the session left.
        request: that save.
        calls: of the session, those that succeeded.
        bank: where it was saved.
    """
    test = _kept(skill, calls) or await _compiled(skill, request, bank)
    return None if test is None else skill.model_copy(update={"tests": (test,)})


def _kept(skill: Skill, calls: MadeCalls) -> ReplayTest | None:
    """Return the test of a skill whose calls are a session's."""
    made = [(tool, dict(arguments)) for tool, arguments in calls]
    return next(
        (
            test
            for test in skill.tests
            if test.recorded and all((call.tool.tool, call.arguments) in made for call in test.recorded)
        ),
        None,
    )


async def _compiled(skill: Skill, request: SaveRequest, bank: Bank) -> ReplayTest | None:
    """Return the test that a session is of a skill whose workflow it compiles to as well."""
    context = bank.context
    run = await kept_run(request, context)
    around = Surroundings(context.known(), context.effects, context.store.version, context.clock())
    try:
        readings = compile_skill(run, request.name, around, explicit=True)
    except NotCompilable:
        return None
    same = next((one for one in readings if one.skill.content_hash == skill.content_hash), None)
    if same is None:
        return None
    test = same.skill.tests[0]
    return as_second_run(test, test.inputs, _ids(same, skill))


def _ids(compiled: Compiled, skill: Skill) -> Mapping[str, str]:
    """Return the ids of a skill's nodes by those of an equal workflow."""
    pairs = zip(compiled.skill.workflow, skill.workflow, strict=True)
    return {mine.id: theirs.id for mine, theirs in pairs}
