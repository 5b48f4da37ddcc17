"""Curation in use: watches a skill after each use, takes the one step that is due, recovers what is stale.

Which step is due is `server.curation.stepping`; running tests is `auditing`, repairing `mending`. Every
move is logged with its reason, is a person's to undo, and reaches clients by the change feed.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from catalog.drift import Drift
from server.bank.admission.proving import prove
from server.bank.context import Context
from server.bank.curation.auditing import audit_skill
from server.bank.curation.mending import Mended, mend
from server.bank.curation.observing import contrast_for, entered_at
from server.bank.curation.slowing import slowed
from server.bank.publishing import refresh_published
from server.bank.recalling import doubts_about
from server.curation.stepping import Step, Watch, next_step
from server.curation.withholding import Draw
from server.progress import Progress
from skills_store.episodes import Audit
from skills_store.errors import IllegalTransition
from skills_store.skill import Skill, SkillState

__all__ = [
    "Taken",
    "curate_skill",
    "curate_used",
    "recover",
    "recover_all",
    "recover_beside",
    "recover_stale",
    "take",
    "watch",
]

_LOG = logging.getLogger(__name__)
_READ = 200
_MOST_STEPS = 3
"""An audit, what follows from it, and nothing more at once."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A step that was taken, and what came of it."""

    skill: str
    version: int
    step: str
    reason: str


async def curate_used(drawn: Draw | None, context: Context) -> None:
    """Look at the skill of an episode: beside what is going on where that is attended, else now."""
    if drawn is None:
        return
    work = partial(_curated, drawn.skill.name, context)
    if not context.afterwards.start(work):
        await work()


async def _curated(name: str, context: Context) -> None:
    await curate_skill(name, context)


async def curate_skill(name: str, context: Context) -> list[Taken]:
    """Take the steps that are due for a skill in use, and return them; one against it at most."""
    async with context.curation:
        return await _steps(name, context)


async def _steps(name: str, context: Context) -> list[Taken]:
    taken: list[Taken] = []
    for _ in range(_MOST_STEPS):
        skill = context.store.head(name)
        if skill is None:
            return taken
        if (slow := slowed(skill, context)) and skill.state in ("active", "context_only"):
            _move(skill, "stale", slow, context)
            return [*taken, Taken(name, skill.version, "stale", slow), *await _recovered(skill, context)]
        step = next_step(watch(skill, context))
        if step is None:
            return taken
        taken.extend(await take(step, skill, context))
        if step.kind != "audit":
            return taken
    return taken


async def take(step: Step, skill: Skill, context: Context) -> list[Taken]:
    """Take one step. A skill that is restricted for a failed audit is repaired at once."""
    if step.to is None:
        audit = await audit_skill(skill, context)
        said = {True: "passed", False: "failed", None: "could not be run"}[audit.passed]
        return [Taken(skill.name, skill.version, "audit", f"{step.reason}: it {said} ({audit.detail})")]
    try:
        _move(skill, step.to, step.reason, context)
    except IllegalTransition as error:
        _LOG.info("%s@%d was moved by somebody else meanwhile: %s", skill.name, skill.version, error)
        return []
    taken = [Taken(skill.name, skill.version, step.kind, step.reason)]
    audits = _audits(skill, context)
    if step.kind == "restrict" and audits and audits[0].passed is False:
        taken.append(_repair(skill, await mend(skill, context)))
    return taken


def _move(skill: Skill, to: SkillState, reason: str, context: Context) -> None:
    context.store.move(skill.name, skill.version, to, reason=reason, by="system", at=context.clock())
    refresh_published(context)
    _LOG.warning("skill %s@%d is %s: %s", skill.name, skill.version, to, reason)
    context.progress(Progress("curate", f"{skill.name}@{skill.version} is {to}: {reason}"))


def _repair(skill: Skill, mended: Mended) -> Taken:
    return Taken(skill.name, skill.version, "repair", mended.reason)


def watch(skill: Skill, context: Context) -> Watch:
    """Return what is known of a skill version since it came into its state."""
    since = entered_at(skill, context)
    audits = [audit for audit in _audits(skill, context) if audit.at > since]
    looked = max([since, *(audit.at for audit in audits)])
    uses = [
        use
        for use in context.store.uses(skill.name, _READ)
        if use.version == skill.version and not use.world_fault and use.at > looked
    ]
    doubts = doubts_about(skill, context)
    return Watch(
        skill=skill,
        contrast=contrast_for(skill, context, since),
        audits=tuple(audits),
        uses_since_audit=len(uses),
        failures_in_a_row=doubts.in_a_row,
        fails_with=", ".join(kind for kind, _ in doubts.faults),
        is_held=skill.origin == "user" or context.store.pinned(skill.name) is not None,
        audit_every=context.config.curation.audit_every,
    )


def _audits(skill: Skill, context: Context) -> Sequence[Audit]:
    found = context.store.audits(skill.name, _READ)
    return [audit for audit in found if audit.version == skill.version and audit.kind == "audit"]


def recover_beside(drift: Drift, context: Context) -> None:
    """Begin to recover what a change upstream has made stale, where works beside are attended."""
    if drift.broken:
        context.afterwards.start(partial(recover_all, context))


async def recover_all(context: Context) -> None:
    """Recover every stale skill; what came of it is kept with the skills."""
    await recover_stale(context)


async def recover_stale(context: Context) -> list[Taken]:
    """Verify every stale skill again; repair what does not pass, and park what cannot be repaired."""
    taken: list[Taken] = []
    for skill in context.store.heads():
        if skill.state == "stale":
            taken.extend(await recover(skill, context))
    return taken


async def recover(skill: Skill, context: Context) -> list[Taken]:
    """Verify one stale skill again; repair it where it does not pass."""
    async with context.curation:
        return await _recovered(skill, context)


async def _recovered(skill: Skill, context: Context) -> list[Taken]:
    now = context.store.version(skill.name, skill.version)
    if now is None or now.state != "stale":
        return []
    report = await prove(now, context)
    if report.passed:
        return [Taken(now.name, report.version, "verified again", "its tests pass after the change upstream")]
    failed = "; ".join(f"{test.name}: {test.detail}" for test in report.tests if not test.passed)
    mended = await mend(now, context)
    why = f"{failed or 'it has no tests'}; {mended.reason}"
    return [Taken(now.name, now.version, "repair" if mended.skill else "parked", why)]
