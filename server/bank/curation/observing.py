"""What curation learns from each solved task: one episode, with or without a skill, and the coin of it."""

from __future__ import annotations

from dataclasses import replace

from server.bank.context import Context, allowing
from server.curation.withholding import Draw, draw, why_not_compared
from server.planning.router import example_of
from server.planning.task_reading import read_as
from server.reports import RepairReport
from server.requests import SolveRequest
from skills_store.contrast import Contrast, contrast_of, trials_of
from skills_store.episodes import Outcome, TaskEpisode
from skills_store.skill import Skill

__all__ = ["before_admission", "contrast_for", "entered_at", "is_of_family", "observe", "outcome_of", "throw"]

_TRIALS_READ = 5_000
_BEFORE_READ = 300
"""Episodes that are looked at for those of a skill's family before it was there."""
_RIGHT = ("verified", "succeeded")


def throw(skill: Skill, task: str, request: SolveRequest, context: Context, way: str) -> Draw:
    """Return whether a skill that would be used for a task is left out, and with which chance.

    A task of another family is no trial of it: what a plan makes of a neighbour's skill says nothing
    of how it answers its own tasks.

    Args:
        skill: that would be used.
        task: in words.
        request: how it is to be solved; where it names a route nothing is withheld.
        context: the bank.
        way: how the skill would be used: the route, and whether every input is bound.
    """
    if not is_of_family(skill, task):
        return Draw(skill)
    spec = context.config.curation
    is_pinned = context.store.pinned(skill.name) is not None
    effects = allowing(context.effects, request.allow)
    if request.route is not None or why_not_compared(skill, effects, is_pinned=is_pinned):
        return Draw(skill)
    looked = "checked" if request.checks.assertions or request.checks.schema else "unchecked"
    number = context.store.count_trials(skill.name, skill.version)
    return draw(skill, contrast_for(skill, context), number, task, spec.withhold, f"{way} {looked}")


def contrast_for(skill: Skill, context: Context, since: float | None = None) -> Contrast:
    """Return a skill version beside its absence.

    Args:
        skill: the version.
        context: the bank.
        since: Unix seconds from which trials count; None: since it last came into its state.
    """
    start = entered_at(skill, context) if since is None else since
    own = [
        episode
        for episode in context.store.episodes(_TRIALS_READ, skill.name)
        if episode.version == skill.version and episode.at >= start
    ]
    before = [episode.outcome == "right" for episode in before_admission(skill, context)]
    return contrast_of(trials_of(own), before, context.config.curation.error_rate)


def entered_at(skill: Skill, context: Context) -> float:
    """Return when a version last came into its present state, in Unix seconds."""
    moves = [move.at for move in context.store.changes(skill.name) if move.version == skill.version]
    return moves[-1] if moves else skill.created_at


def is_of_family(skill: Skill, task: str) -> bool:
    """Return whether a task is a skill's own one, with other values at most; True where none is kept."""
    own = skill.provenance.task
    return not own or read_as(task, own, example_of(skill)) is not None


def before_admission(skill: Skill, context: Context) -> list[TaskEpisode]:
    """Return a family's episodes from before it had a skill in use, the world's faults aside."""
    if not skill.provenance.task:
        return []
    first = context.store.versions(skill.name)
    born = next((move.at for move in context.store.changes(skill.name) if move.after == "active"), None)
    until = born if born is not None else (first[0].created_at if first else skill.created_at)
    return [
        episode
        for episode in context.store.unguided(_BEFORE_READ, until)
        if episode.outcome != "world" and is_of_family(skill, episode.task)
    ]


def outcome_of(report: RepairReport) -> Outcome:
    """Return what a run came to; what the world or a person stopped says nothing."""
    if report.status in _RIGHT:
        return "right"
    says_nothing = all(fault.evidence != "workflow" for fault in report.faults)
    return "world" if says_nothing or report.status in ("needs_approval", "cancelled") else "wrong"


def observe(task: str, report: RepairReport, drawn: Draw | None, context: Context) -> None:
    """Keep what became of a task.

    Args:
        task: in words.
        report: of the run that used the skill, or did without it.
        drawn: the skill that was used or left out, None where there was none.
        context: the bank.
    """
    episode = TaskEpisode(
        task=str(context.redact(task)),
        route=report.route or "dynamic",
        outcome=outcome_of(report),
        at=context.clock(),
        tokens=report.tokens,
        calls=report.calls,
        seconds=report.seconds,
        trace=report.trace_id,
    )
    if drawn is not None:
        skill = drawn.skill
        episode = replace(
            episode,
            skill=skill.name,
            version=skill.version,
            arm=drawn.arm,
            share=drawn.share,
            stratum=drawn.stratum,
        )
    context.store.record_episode(episode)
