"""The advantages of the steps of every group of runs.

Paper: AgentEvolver (ADCA-GRPO; facts §4.4). Differs: runs that nobody scored have none, and a group in
which nothing varies has none rather than zeros, so that no exporter takes it for something to learn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from server.attribution.advantage import ALPHA, Trajectory, advantages
from server.training.episode import Episode, EpisodeStep

__all__ = ["credited"]


@dataclass
class _Run:
    """The episodes of one run: more than one where its context was rewritten on the way."""

    outcome: float
    places: list[int] = field(default_factory=list[int])
    steps: list[EpisodeStep] = field(default_factory=list[EpisodeStep])

    def trajectory(self) -> Trajectory:
        self.steps.sort(key=lambda step: step.index)
        return Trajectory(tuple(step.reward for step in self.steps), self.outcome)


def credited(episodes: Iterable[Episode], alpha: float = ALPHA) -> list[Episode]:
    """Return the episodes with their advantages, in the same order.

    Raises:
        ValueError: alpha is negative.
    """
    listed = list(episodes)
    for group in _groups(listed).values():
        runs = [run for run in group.values() if run.steps]
        found = advantages([run.trajectory() for run in runs], alpha) if len(runs) > 1 else []
        if not any(value for steps in found for value in steps):
            continue
        for run, values in zip(runs, found, strict=True):
            known = {step.index: value for step, value in zip(run.steps, values, strict=True)}
            for place in run.places:
                listed[place] = _with(listed[place], known)
    return listed


def _groups(episodes: Sequence[Episode]) -> dict[str, dict[str, _Run]]:
    groups: dict[str, dict[str, _Run]] = {}
    for place, episode in enumerate(episodes):
        if (score := episode.outcome.score) is not None:
            runs = groups.setdefault(episode.group, {})
            run = runs.setdefault(episode.provenance.id, _Run(score))
            run.places.append(place)
            run.steps.extend(episode.steps)
    return groups


def _with(episode: Episode, known: dict[int, float]) -> Episode:
    steps = tuple(step.model_copy(update={"advantage": known[step.index]}) for step in episode.steps)
    return episode.model_copy(update={"steps": steps})
