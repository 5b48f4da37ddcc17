"""Which skills clients see as tools, and under which names.

The set changes here and nowhere else: after an admission, a rollback, a retirement, a drift.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from server.bank.context import Context
from server.listed_skill import listed_characters
from skills_store.skill import Skill

__all__ = [
    "PUBLISHED_AT_MOST",
    "PUBLISHED_CHARACTERS",
    "PublishedSkill",
    "published_skills",
    "refresh_published",
]

PUBLISHED_AT_MOST = 12
"""Skills listed as tools where nothing is configured, as far as they fit into `PUBLISHED_CHARACTERS`.

Paper: FlowEvo (bank size; facts §7). Differs: a bank may hold any number; those past the cap are found by
`find_skills`.
"""

PUBLISHED_CHARACTERS = 3_180
"""Characters of their entries together: with the always-there tools a client's model is shown at most
3,000 tokens, however many skills there are. `--publish` sets a number instead."""

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
    heads = {skill.name: skill for skill in context.store.heads() if skill.state == "active"}
    if (most := context.config.publish) is None:
        return _fitting(heads, context)
    return tuple(sorted(_by_use(heads, context)[:most] if len(heads) > most else heads))


def _fitting(heads: Mapping[str, Skill], context: Context) -> tuple[str, ...]:
    """Return the most used skills that fit into the room for them; one that does not is passed over."""
    sizes = {name: listed_characters(skill) for name, skill in heads.items()}
    chosen, left = list[str](), PUBLISHED_CHARACTERS
    if len(heads) <= PUBLISHED_AT_MOST and sum(sizes.values()) <= left:
        return tuple(sorted(heads))
    for name in _by_use(heads, context):
        if len(chosen) < PUBLISHED_AT_MOST and sizes[name] <= left:
            chosen.append(name)
            left -= sizes[name]
    return tuple(sorted(chosen))


def _by_use(names: Iterable[str], context: Context) -> list[str]:
    successes = {name: context.store.use_counts(name).successes for name in names}
    return sorted(successes, key=lambda name: (-successes[name], name))
