"""The audit of a bank: every skill in use looked at, due steps taken, old traces dropped, the budget kept.

Steps of one skill are `curating`, near-duplicates `server.curation.merging`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from server.bank.context import Context
from server.bank.curation.auditing import audit_skill
from server.bank.curation.curating import Taken, curate_skill, recover_stale, take, watch
from server.bank.curation.observing import before_admission, entered_at
from server.bank.publishing import refresh_published
from server.bank.recalling import doubts_about
from server.bank.using import require_skill
from server.curation.merging import merge_suggestions
from server.curation.stepping import Step, next_step, suspicion
from server.curation.withholding import why_not_compared
from server.reports.audit import (
    AuditReport,
    BudgetReport,
    ContrastReport,
    GrowthReport,
    RateReport,
    RetentionReport,
    SavedPerUse,
    SkillStanding,
    StepTaken,
)
from skills_store.contrast import Contrast
from skills_store.skill import Skill
from skills_store.utility import UseCounts, success_interval
from skills_store.worth import Cost, Saving, Worth, cost_of, worth_of

__all__ = ["audit_bank", "standing_of", "worth_for"]

_DAY: Final = 86_400.0
_READ: Final = 1_000
_MOST_USED: Final = 3
"""Paper: FlowEvo (lifecycle): the three most used are audited anyway."""
_ENOUGH_USES: Final = 5
_MARGINAL: Final = 0.5
_WATCHED = ("active", "context_only", "suppressed")
_UNDO = {"restrict", "suppress", "retire", "budget"}


async def audit_bank(names: Sequence[str], context: Context, *, dry_run: bool) -> AuditReport:
    """Look at the skills in use and take what is due.

    Args:
        names: skills that are audited in any case; empty: the most used, and those something speaks against.
        context: the bank.
        dry_run: whether to say what is due and do nothing.

    Raises:
        UnknownSkill: there is none of a name.
    """
    context.afterwards.finish()
    asked = [require_skill(name, None, context) for name in names]
    taken = [] if dry_run else await _done(asked, context)
    retention = RetentionReport() if dry_run else _forget(context)
    budget = _budget(context, dry_run=dry_run)
    if not dry_run:
        taken += [
            Taken(n, _version(n, context), "budget", "the bank is over its budget")
            for n in budget.to_guidance
        ]
    heads = context.store.heads()
    chosen = [head for head in heads if not names or head.name in names]
    return AuditReport(
        dry_run=dry_run,
        skills=tuple(standing_of(head, context) for head in chosen if head.state in (*_WATCHED, "stale")),
        taken=tuple(_told(step) for step in taken),
        merge=tuple(merge_suggestions([head for head in heads if head.state == "active"])),
        growth=_growth(heads, context),
        retention=retention,
        budget=budget,
    )


def _version(name: str, context: Context) -> int:
    head = context.store.head(name)
    return head.version if head is not None else 0


def _told(taken: Taken) -> StepTaken:
    undo = f"skillbank skills restore {taken.skill}" if taken.step in _UNDO else ""
    return StepTaken(
        skill=taken.skill, version=taken.version, step=taken.step, reason=taken.reason, undo=undo
    )


async def _done(asked: Sequence[Skill], context: Context) -> list[Taken]:
    """Recover what is stale, audit what is asked for or due, and take what follows."""
    taken = await recover_stale(context)
    for skill in asked or _to_audit(context):
        now = context.store.version(skill.name, skill.version)
        if now is None or now.state not in _WATCHED or _moved(skill.name, taken):
            continue
        taken += await _audited(now, "it was asked for" if asked else "it is among the most used", context)
    for head in context.store.heads():
        if head.state in _WATCHED and not _moved(head.name, taken):
            taken += await curate_skill(head.name, context)
    return taken


def _moved(name: str, taken: Sequence[Taken]) -> bool:
    return any(step.skill == name and step.step != "audit" for step in taken)


async def _audited(skill: Skill, why: str, context: Context) -> list[Taken]:
    audit = await audit_skill(skill, context)
    said = {True: "passed", False: "failed", None: "could not be run"}[audit.passed]
    taken = [Taken(skill.name, skill.version, "audit", f"{why}: it {said} ({audit.detail})")]
    step = next_step(watch(skill, context))
    return [*taken, *(await take(step, skill, context) if step is not None and step.to else [])]


def _to_audit(context: Context) -> list[Skill]:
    """Return the most used skills that were used since they were looked at, and all that are suppressed."""
    heads = context.store.heads()
    open_ = [head for head in heads if head.state in ("active", "context_only")]
    used = [head for head in open_ if watch(head, context).uses_since_audit]
    used.sort(key=lambda head: (-context.store.use_counts(head.name).uses, head.name))
    return [*used[:_MOST_USED], *(head for head in heads if head.state == "suppressed")]


def worth_for(skill: Skill, context: Context) -> Worth:
    """Return what a skill is worth: over all its versions, against runs of its family without it."""
    episodes = [e for e in context.store.episodes(_READ, skill.name) if e.outcome == "right"]
    own = [cost_of(e) for e in episodes if e.arm != "withheld"]
    planned: list[Cost] = [cost_of(e) for e in episodes if e.arm == "withheld"]
    planned += [cost_of(e) for e in before_admission(skill, context) if e.outcome == "right"]
    return worth_of(context.store.uses(skill.name, _READ), own, planned)


def standing_of(skill: Skill, context: Context) -> SkillStanding:
    """Return how one skill stands."""
    seen, worth = watch(skill, context), worth_for(skill, context)
    due = next_step(seen)
    audits = [a for a in context.store.audits(skill.name, 1) if a.kind == "audit"]
    unused = (context.clock() - _last_used(skill, context)) / _DAY
    return SkillStanding(
        name=skill.name,
        version=skill.version,
        state=skill.state,
        utility=worth.utility,
        at_least=worth.at_least,
        unasked=_rate(worth.unasked),
        asked=_rate(worth.asked),
        faults=dict(doubts_about(skill, context).faults),
        contrast=_contrast(seen.contrast),
        tokens_saved=_saved(worth.tokens),
        calls_saved=_saved(worth.calls),
        seconds_saved=_saved(worth.seconds),
        suspicion=suspicion(seen),
        due=_due(due),
        held=seen.is_held,
        not_compared=why_not_compared(
            skill, context.effects, is_pinned=context.store.pinned(skill.name) is not None
        ),
        audited_at=audits[0].at if audits else None,
        unused_days=max(0.0, unused),
        notes=tuple(_notes(worth, unused, context)),
    )


def _due(step: Step | None) -> str:
    return f"{step.kind}: {step.reason}" if step is not None else ""


def _last_used(skill: Skill, context: Context) -> float:
    uses = context.store.uses(skill.name, 1)
    return max([entered_at(skill, context), *(use.at for use in uses)])


def _notes(worth: Worth, unused_days: float, context: Context) -> list[str]:
    bound = context.config.curation.unused_days
    notes = ["unused"] if bound and unused_days >= bound else []
    saves_nothing = worth.calls is not None and worth.calls.high <= 0
    is_poor = worth.all.judged >= _ENOUGH_USES and worth.utility < _MARGINAL
    return [*notes, *(["marginal"] if saves_nothing or is_poor else [])]


def _rate(counts: UseCounts) -> RateReport:
    interval = success_interval(counts)
    return RateReport(right=counts.successes, of=counts.judged, low=interval.low, high=interval.high)


def _saved(saving: Saving | None) -> SavedPerUse | None:
    return None if saving is None else SavedPerUse(mean=saving.mean, low=saving.low, high=saving.high)


def _contrast(contrast: Contrast) -> ContrastReport:
    return ContrastReport(
        guided=_rate(contrast.guided),
        withheld=_rate(contrast.withheld),
        before=_rate(contrast.before),
        delta=contrast.delta,
        evidence=contrast.most_evidence,
        needed=1 / contrast.error_rate,
        paper_delta=contrast.paper_delta,
        paper_would_suppress=contrast.paper_would_suppress,
    )


def _growth(heads: Sequence[Skill], context: Context) -> GrowthReport:
    sizes, since = context.store.sizes(), context.clock() - 30 * _DAY
    added = [v for head in heads for v in context.store.versions(head.name) if v.created_at >= since]
    return GrowthReport(
        skills=sizes.skills,
        versions=sizes.versions,
        by_state=dict(sorted(Counter(head.state for head in heads).items())),
        uses=sizes.uses,
        traces=sizes.traces,
        recorded_calls=sizes.recorded_calls,
        episodes=sizes.episodes,
        audits=sizes.audits,
        bytes=sizes.bytes,
        versions_in_30_days=len(added),
        skills_in_30_days=sum(version.version == 1 for version in added),
    )


def _forget(context: Context) -> RetentionReport:
    """Drop traces and drives that are too old; traces that a skill was made of stay."""
    spec, now, store = context.config.curation, context.clock(), context.store
    versions = (version for head in store.heads() for version in store.versions(head.name))
    keep = {trace for version in versions for trace in version.provenance.traces}
    runs = spec.keep_runs_days and store.drop_traces(
        now - spec.keep_runs_days * _DAY, recorded=False, keep=keep
    )
    calls = spec.keep_recordings_days and store.drop_traces(
        now - spec.keep_recordings_days * _DAY, recorded=True, keep=keep
    )
    drives = spec.keep_runs_days and store.drives(context.principal).drop(now - spec.keep_runs_days * _DAY)
    return RetentionReport(runs=int(runs), recorded_calls=int(calls), drives=int(drives))


def _budget(context: Context, *, dry_run: bool) -> BudgetReport:
    """Keep the bank within its budget: the least useful skills past it are guidance only."""
    spec, store = context.config.curation, context.store
    active = [head for head in store.heads() if head.state == "active"]
    sizes = {head.name: len(head.model_dump_json()) for head in active}
    count, total = len(active), sum(sizes.values())
    most_bytes = spec.most_megabytes * 1_000_000
    spared = [h for h in active if h.origin != "user" and store.pinned(h.name) is None]
    spared.sort(key=lambda head: _usefulness(head, context))
    demoted: list[str] = []
    for head in spared:
        is_over = (spec.most_active and count > spec.most_active) or (most_bytes and total > most_bytes)
        if not is_over:
            break
        demoted.append(head.name)
        count, total = count - 1, total - sizes[head.name]
        if not dry_run:
            why = f"the bank is over its budget of {spec.most_active} skills or {spec.most_megabytes:g} MB"
            store.move(head.name, head.version, "context_only", reason=why, by="system", at=context.clock())
    if demoted and not dry_run:
        refresh_published(context)
    return BudgetReport(
        active=len(active),
        most_active=spec.most_active,
        megabytes=sum(sizes.values()) / 1_000_000,
        most_megabytes=spec.most_megabytes,
        to_guidance=tuple(demoted),
    )


def _usefulness(skill: Skill, context: Context) -> tuple[float, float, str]:
    """Return what orders skills, the least useful first: successes and how sure they are, then age."""
    counts = context.store.use_counts(skill.name)
    return counts.successes * success_interval(counts).low, _last_used(skill, context), skill.name
