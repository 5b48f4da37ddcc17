"""The seeded route: which known skills a plan starts from, and what is told with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from server.bank.context import Context
from server.bank.episode.routing import DirectRun, NotRun
from server.bank.recalling import doubts_about, recall, was_right_with
from server.compilation.prose import guidance_lines
from server.curation.withholding import Draw
from server.planning.router import match_skill
from server.planning.seeding import Seed
from server.requests import SolveRequest
from skills_store.retrieval import SAME_PATTERN, SkillHit, confusable
from skills_store.skill import Skill

__all__ = ["Before", "Seeds", "look_back"]

_POOL = 5
_NEAR = 0.45
"""Score from which on a skill is near enough to start a plan from."""
_NEAR_WHEN_ASKED = 0.15
_MOST_SHOWN = 2
_WITHIN = 0.1
"""How far behind the nearest a second skill may be to be shown to a model too."""


@dataclass(frozen=True, slots=True)
class Seeds:
    """The skills a plan starts from, the best first; none where none is near or clearly meant."""

    seeds: tuple[Seed, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Before:
    """What is known of a task before it is planned."""

    direct: DirectRun | NotRun
    hits: Sequence[SkillHit] | None = None
    """The skills that fit it, best first; None where nobody looked for them."""

    @property
    def tried(self) -> DirectRun | None:
        """The skill that was run first and failed, None when there was none."""
        return self.direct if isinstance(self.direct, DirectRun) else None

    @property
    def left_out(self) -> Draw | None:
        """The skill that would have been run and was left out to compare, None when there was none."""
        return self.direct.left_out if isinstance(self.direct, NotRun) else None

    @property
    def nearest(self) -> Skill | None:
        """The skill that is nearest to the task, None when none is near."""
        return self.hits[0].skill if self.hits and self.hits[0].score >= _NEAR else None

    @property
    def slot_calls(self) -> int:
        """Calls that looking for open inputs took."""
        return self.direct.report.slot_calls if isinstance(self.direct, DirectRun) else self.direct.slot_calls

    @property
    def calls(self) -> int:
        """Calls that were made so far."""
        return self.direct.report.calls if isinstance(self.direct, DirectRun) else self.direct.slot_calls

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why no skill has solved the task directly."""
        if isinstance(self.direct, NotRun):
            return self.direct.reasons
        report = self.direct.report
        why = "; ".join(fault.message for fault in report.faults) or report.status
        return (*report.route_reasons, f"it did not come out right: {why}", "so it was planned anew")

    def seeds(self, request: SolveRequest, context: Context, *, has_model: bool) -> Seeds:
        """Return the skills to start from, with the reasons, for a planner with a model or without.

        Without one the first seed is run as it stands, so it has to be clearly the one that is meant,
        and either say the same as the task or be checked.
        """
        is_asked_for = request.route == "seeded"
        least = _NEAR_WHEN_ASKED if is_asked_for else _NEAR
        near = [hit for hit in self.hits or () if hit.score >= least]
        if not near:
            why = f"no skill is near the task (a score of {least} or more)"
            return Seeds((), (why,) if self.hits is not None else ())
        if has_model:
            return _seeded(
                [hit for hit in near if near[0].score - hit.score < _WITHIN][:_MOST_SHOWN], context
            )
        if alike := confusable(near):
            return Seeds(
                (), (f"several skills fit about alike and none is clearly meant: {', '.join(alike)}",)
            )
        first = near[0]
        has_checks = bool(request.checks.assertions or request.checks.schema)
        if not (is_asked_for or has_checks or first.alike >= SAME_PATTERN):
            why = (
                f"{first.skill.name} is near the task, but says something else, and nothing checks the answer"
            )
            return Seeds((), (why,))
        if not is_asked_for and (veto := doubts_about(first.skill, context).veto):
            return Seeds((), (f"{first.skill.name} is near the task, but {veto}",))
        return _seeded([first], context)


async def look_back(task: str, request: SolveRequest, context: Context, direct: DirectRun | NotRun) -> Before:
    """Return what is known for a task that no skill has solved: how it was tried, and the skills near it.

    A skill that was just run and failed is no seed, nor is one that was wrong with this task's words.
    """
    if request.route == "dynamic" or isinstance(direct, DirectRun) or not context.findable_skills():
        return Before(direct)
    hits = (await recall(task, _POOL, context)).hits
    left_out = direct.left_out.skill.name if direct.left_out else None
    fit = [hit for hit in hits if hit.skill.name != left_out and not _was_wrong(task, request, hit, context)]
    return Before(direct, fit)


def _was_wrong(task: str, request: SolveRequest, hit: SkillHit, context: Context) -> bool:
    bound = match_skill(task, request.inputs, hit.skill)
    return bound is not None and was_right_with(bound, context) is False


def _seeded(hits: Sequence[SkillHit], context: Context) -> Seeds:
    seeds = [Seed(hit.skill, guidance_lines(hit.skill, doubts_about(hit.skill, context))) for hit in hits]
    told = [
        f"{hit.skill.name}@{hit.skill.version} is near it ({hit.score:.2f}; {hit.reasons[0]})" for hit in hits
    ]
    return Seeds(tuple(seeds), tuple(told))
