"""What planning a task cost, kept with the skill that was learned from it, and what uses have saved of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from server.bank.episode.repairing import Repaired
from server.reports import PlanningSaved
from skills_store.skill import Planning, Skill

__all__ = ["planning_saved", "with_planning_cost"]


def with_planning_cost(solved: Repaired) -> Repaired:
    """Return a solved task whose run says what planning it cost; only a plan from scratch does.

    The run itself, which a skill makes too, is not counted.
    """
    report, run = solved.report, solved.run
    if run is None or report.route != "dynamic":
        return solved
    cost = Planning(
        tokens=report.tokens,
        seconds=max(0.0, report.seconds - run.trace.seconds),
        calls=max(0, report.calls - run.trace.calls),
    )
    return replace(solved, run=replace(run, planning=cost))


def planning_saved(skill: Skill, successes: int) -> PlanningSaved | None:
    """Return what successful uses have saved, None where no run of its family was planned from scratch.

    Args:
        skill: any version.
        successes: uses that came out right; each would have been planned as the planned runs were.
    """
    planned: Sequence[Planning] = skill.provenance.plannings
    if not planned:
        return None
    tokens = sum(one.tokens for one in planned) / len(planned)
    seconds = sum(one.seconds for one in planned) / len(planned)
    return PlanningSaved(
        runs=len(planned),
        tokens_a_run=tokens,
        seconds_a_run=seconds,
        tokens=round(tokens * successes),
        seconds=seconds * successes,
    )
