"""A person's word on a proposed skill: approved it is put in use, rejected it is remembered.

What evidence alone makes of a candidate is `learning`; which moves there are is the lifecycle's.
"""

from __future__ import annotations

from server.bank.admission.wording import words_when_active
from server.bank.context import Context
from server.bank.errors import NotDecided
from server.bank.publishing import refresh_published
from server.bank.using import require_skill, skill_report
from server.reports import SkillReport
from skills_store.skill import AdmissionCheck, Skill

__all__ = ["approvable_skill", "approve_skill", "reject_skill"]


_PAST = {"approve": "approved", "reject": "rejected"}


def approvable_skill(name: str, version: int | None, context: Context) -> Skill:
    """Return a proposed skill that a person may approve, its head where no version is given.

    Raises:
        UnknownSkill: no such skill or version.
        NotDecided: it is not proposed, or its verdict shows it to be wrong.
    """
    skill = _proposed_skill(name, version, "approve", context)
    named = f"{skill.name}@{skill.version}"
    if skill.verdict is None:
        raise NotDecided(f"{named} cannot be approved: no gate has looked at it")
    if wrong := _shown_wrong(skill, context):
        details = "; ".join(f"{check.name}: {check.detail}" for check in wrong)
        raise NotDecided(f"{named} cannot be approved, it is shown to be wrong: {details}")
    return skill


async def approve_skill(name: str, version: int | None, context: Context) -> SkillReport:
    """Make a proposed skill active and put the version in use, in the best words there are.

    Raises:
        UnknownSkill: no such skill or version.
        NotDecided: it is not proposed, or its verdict shows it to be wrong.
        VersionConflict: somebody moved the head meanwhile; the version is active and not in use.
    """
    skill = approvable_skill(name, version, context)
    head = require_skill(name, None, context)
    if context.store.pinned(name) not in (None, skill.version):
        raise NotDecided(f"{name} is pinned to version {head.version}: `skillbank skills unpin {name}` first")
    reworded = await words_when_active(skill, context)
    approved = context.store.move(
        name,
        skill.version,
        "active",
        reason="; ".join(part for part in ("approved by a person", reworded.problem) if part),
        by="person",
        at=context.clock(),
        words=reworded.words,
    )
    if head.version != skill.version:
        context.store.set_head(name, skill.version, expected_head=head.version)
    refresh_published(context)
    return skill_report(approved, context)


def reject_skill(name: str, version: int | None, reason: str, context: Context) -> SkillReport:
    """Turn a proposed skill down; its workflow is not proposed again.

    Raises:
        UnknownSkill: no such skill or version.
        NotDecided: it is not proposed.
    """
    skill = _proposed_skill(name, version, "reject", context)
    rejected = context.store.move(
        name, skill.version, "rejected", reason=reason, by="person", at=context.clock()
    )
    refresh_published(context)
    return skill_report(rejected, context)


def _proposed_skill(name: str, version: int | None, verb: str, context: Context) -> Skill:
    skill = require_skill(name, version, context)
    if skill.state == "proposed":
        return skill
    said = f"{skill.name}@{skill.version} is {skill.state}"
    said += f" ({skill.reason})" if skill.reason else ""
    waiting = [s.version for s in context.store.versions(name) if s.state == "proposed"]
    hints = ", ".join(f"`skillbank skills {verb} {name} --version {number}`" for number in waiting)
    hint = f"; proposed is another version: {hints}" if hints else ""
    raise NotDecided(f"{said}: only a proposed skill can be {_PAST[verb]}{hint}")


def _shown_wrong(skill: Skill, context: Context) -> list[AdmissionCheck]:
    """Return the failed checks that would set a skill aside and still stand.

    A version that came back from `shadow` was proved again since its verdict was written.
    """
    proved_again = any(
        (change.version, change.before, change.after) == (skill.version, "shadow", "proposed")
        for change in context.store.changes(skill.name)
    )
    checks = skill.verdict.checks if skill.verdict and not proved_again else ()
    return [check for check in checks if not check.passed and check.leaves == "shadow"]
