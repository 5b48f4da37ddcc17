"""What a person does to a skill that is there: take a version back, pin, retire, delete.

A person's word on what is only proposed is `deciding`; none of this is ever done by the system.
"""

from __future__ import annotations

from server.bank.context import Context
from server.bank.errors import NotDecided
from server.bank.publishing import refresh_published
from server.bank.using import require_skill, skill_report
from server.reports import DeletedReport, SkillReport
from skills_store.skill import Skill, SkillState

__all__ = ["delete_skill", "pin_skill", "restore_skill", "retire_skill", "roll_back", "unpin_skill"]

_RESTORED: dict[tuple[SkillState | None, SkillState], SkillState] = {
    ("active", "context_only"): "active",
    ("active", "suppressed"): "context_only",
    ("context_only", "suppressed"): "context_only",
    ("active", "retired"): "proposed",
    ("context_only", "retired"): "proposed",
    ("suppressed", "retired"): "proposed",
    ("stale", "retired"): "proposed",
}
"""By the last move: the state that a person takes a version back to."""


def roll_back(name: str, version: int, context: Context) -> SkillReport:
    """Make an earlier version the head.

    Raises:
        UnknownSkill: no such version.
        NotDecided: the version is not active, so that nothing would be in use.
        IllegalTransition: the skill is pinned to another version.
        VersionConflict: somebody moved the head meanwhile.
    """
    head = require_skill(name, None, context)
    wanted = require_skill(name, version, context)
    if wanted.state != "active":
        said = f" ({wanted.reason})" if wanted.reason else ""
        raise NotDecided(
            f"{name}@{version} is {wanted.state}{said}: only an active version can be put in use."
            f" {_way_out(wanted)}; in use stays {name}@{head.version}, which is {head.state}"
        )
    context.store.set_head(name, version, expected_head=head.version)
    refresh_published(context)
    return skill_report(require_skill(name, None, context), context)


def _way_out(skill: Skill) -> str:
    named = f"{skill.name} --version {skill.version}"
    match skill.state:
        case "proposed":
            return f"`skillbank skills approve {named}` makes it active and puts it in use"
        case "stale":
            return f"`skillbank skills test {named}` verifies it anew"
        case _:
            return f"`skillbank skills show {named}` says why; saved again, its workflow is judged anew"


def pin_skill(name: str, version: int | None, context: Context) -> SkillReport:
    """Put a version in use, the head where none is given, and keep it there until it is let go.

    Raises:
        UnknownSkill: no such version.
        NotDecided: the version is not the head and not active.
    """
    head = require_skill(name, None, context)
    wanted = head if version is None else require_skill(name, version, context)
    if wanted.version != head.version and wanted.state != "active":
        raise NotDecided(f"{name}@{version} is {wanted.state}: only an active version can be put in use")
    context.store.pin(name, wanted.version)
    refresh_published(context)
    return skill_report(wanted, context)


def unpin_skill(name: str, context: Context) -> SkillReport:
    """Let the system move a skill again; the version in use stays it.

    Raises:
        UnknownSkill: no such skill.
        NotDecided: it is not pinned.
    """
    head = require_skill(name, None, context)
    if context.store.pinned(name) is None:
        raise NotDecided(f"{name} is not pinned")
    context.store.pin(name, None)
    return skill_report(head, context)


def retire_skill(name: str, reason: str, context: Context) -> SkillReport:
    """Take a skill out of use by its head; it stays readable, and an earlier version can be put back.

    Raises:
        UnknownSkill: no such skill.
        IllegalTransition: it is retired already.
    """
    head = require_skill(name, None, context)
    retired = context.store.move(
        name, head.version, "retired", reason=reason, by="person", at=context.clock()
    )
    refresh_published(context)
    return skill_report(retired, context)


def restore_skill(name: str, version: int | None, context: Context) -> SkillReport:
    """Take back the last step that curation took against a skill: one step, and the evidence begins anew.

    Raises:
        UnknownSkill: no such skill or version.
        NotDecided: no step was taken against it that could be taken back.
    """
    skill = require_skill(name, version, context)
    moves = [move for move in context.store.changes(name) if move.version == skill.version]
    before = moves[-1].before if moves else None
    to = _RESTORED.get((before, skill.state))
    if to is None:
        raise NotDecided(
            f"{name}@{skill.version} is {skill.state}: {skill.reason or 'no reason is kept'}."
            " No step of curation led there that could be taken back"
        )
    reason = f"restored by a person, although: {skill.reason}"
    restored = context.store.move(name, skill.version, to, reason=reason, by="person", at=context.clock())
    refresh_published(context)
    return skill_report(restored, context)


def delete_skill(name: str, context: Context) -> DeletedReport:
    """Remove a skill for good: every version with its tests, its log and its uses.

    Raises:
        UnknownSkill: no such skill.
        SkillInUse: another skill calls it.
    """
    require_skill(name, None, context)
    versions, uses = len(context.store.versions(name)), context.store.use_counts(name).uses
    context.store.delete(name)
    refresh_published(context)
    return DeletedReport(name=name, versions=versions, uses=uses)
