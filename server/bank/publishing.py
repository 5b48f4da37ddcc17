"""Which skills clients see as tools, and under which names.

The set changes here and nowhere else: after an admission, a rollback, a retirement, a drift.
"""

from __future__ import annotations

from dataclasses import dataclass

from server.bank.context import Context
from skills_store.skill import Skill

__all__ = ["PUBLISHED_AT_MOST", "PublishedSkill", "published_skills", "refresh_published"]

PUBLISHED_AT_MOST = 12
"""Skills listed as tools where nothing is configured: they add at most 3,000 tokens to what a client's
model is shown, however many skills there are.

Paper: FlowEvo (bank size; facts §7). Differs: a bank may hold any number; those past the cap are found by
`find_skills`.
"""

_ATTEMPTS = 10


@dataclass(frozen=True, slots=True)
class PublishedSkill:
    """An active skill with the tool name it is published under."""

    tool_name: str
    skill: Skill


def published_skills(context: Context) -> list[PublishedSkill]:
    """Return the published skills that are active now, ordered by name."""
    heads = {skill.name: skill for skill in context.store.heads()}
    named = [heads[name] for name in context.store.published() if name in heads]
    return [PublishedSkill(skill.name, skill) for skill in named if skill.state == "active"]


def refresh_published(context: Context) -> None:
    """Publish the active heads; past the cap those used least stay findable and unpublished.

    Looks again after each write, since another process may have published an older list between.
    """
    for _ in range(_ATTEMPTS):
        names = _ranked_names(context)
        if names == context.store.published():
            return
        context.store.publish(names)


def _ranked_names(context: Context) -> tuple[str, ...]:
    active = [skill.name for skill in context.store.heads() if skill.state == "active"]
    most = PUBLISHED_AT_MOST if context.config.publish is None else context.config.publish
    if len(active) > most:
        successes = {name: context.store.use_counts(name).successes for name in active}
        active = sorted(active, key=lambda name: (-successes[name], name))[:most]
    return tuple(sorted(active))
