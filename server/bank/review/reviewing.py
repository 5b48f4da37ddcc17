"""What waits for a person: proposed versions with what they change, and a person's own revision.

Approving and rejecting are `deciding`.
"""

from __future__ import annotations

from collections.abc import Sequence

from catalog.errors import SchemaRejected
from server.bank.admission.judging import Lesson, judge_candidate
from server.bank.admission.learning import holds_secret, keep_version
from server.bank.context import Context
from server.bank.errors import NotSaved
from server.bank.running import connected_faults, servers_of
from server.bank.using import require_skill, skill_report
from server.compilation.compile import Compiled
from server.compilation.prose import render_description, render_guidance
from server.compilation.signature import compile_signature
from server.reports import ReviewItem, ReviewReport, SavedReport
from skills_store.skill import Pin, Skill
from skills_store.workflow.diff import render_diff
from skills_store.workflow.hashing import content_hash, shape_hash
from skills_store.workflow.model import Workflow, parse_workflow

__all__ = ["review_queue", "revise"]


def review_queue(context: Context) -> ReviewReport:
    """Return the proposed version of each name that no later one has overtaken, ordered by name.

    One is overtaken by a later version that waits or is in use; it waits again if that is turned down.
    """
    waiting = [
        _item(version, head)
        for head in context.store.heads()
        if (version := _latest_open(context.store.versions(head.name))) is not None
        and version.state == "proposed"
    ]
    return ReviewReport(waiting=tuple(waiting))


def _latest_open(versions: Sequence[Skill]) -> Skill | None:
    return next((one for one in reversed(versions) if one.state in ("proposed", "active")), None)


def _item(skill: Skill, head: Skill) -> ReviewItem:
    before = head if head.version != skill.version and head.state != "proposed" else None
    base = before.workflow if before else skill.workflow.model_copy(update={"nodes": (), "outputs": {}})
    mine, theirs = _inputs(skill), _inputs(before) if before else set[str]()
    return ReviewItem(
        name=skill.name,
        version=skill.version,
        reason=skill.reason,
        description=skill.description,
        replaces=before.version if before else None,
        diff=render_diff(base, skill.workflow),
        inputs_added=tuple(sorted(mine - theirs)),
        inputs_removed=tuple(sorted(theirs - mine)),
        failed=tuple(check for check in skill.verdict.checks if not check.passed) if skill.verdict else (),
        tests=tuple(test.name for test in skill.tests),
    )


def _inputs(skill: Skill) -> set[str]:
    properties = skill.signature.input_schema.get("properties")
    return set(properties) if isinstance(properties, dict) else set()


async def revise(name: str, document: object, context: Context) -> SavedReport:
    """Keep a person's own version of a skill: checked, run on the skill's tests, and theirs from then on.

    Raises:
        UnknownSkill: there is no such skill.
        MalformedWorkflow: the document cannot be read.
        NotSaved: it has static faults, changes nothing, or holds a secret.
    """
    known = require_skill(name, None, context)
    workflow = parse_workflow(document).model_copy(update={"name": name})
    if content_hash(workflow) == known.content_hash:
        raise NotSaved(f"{name}@{known.version} is this workflow already")
    snapshot = await context.snapshot(servers_of(workflow, context))
    if faults := connected_faults(workflow, snapshot, context):
        raise NotSaved("; ".join(f"{fault.pointer or '/'}: {fault.message}" for fault in faults))
    skill = _revised(known, workflow, context)
    if holds_secret(skill, context):
        raise NotSaved("it holds a secret, which belongs into a server's environment")
    lesson = Lesson((Compiled(skill),), explicit=True, examples=(), snapshot=snapshot, context=context)
    judged = await judge_candidate(lesson, None, known)
    kept = keep_version(judged, known, context)
    return SavedReport(
        skill=skill_report(judged.skill, context),
        reason=kept.reason,
        calls=len(workflow.nodes),
        verdict=judged.verdict,
    )


def _revised(known: Skill, workflow: Workflow, context: Context) -> Skill:
    """Return a person's workflow as a candidate with the tests of the skill it revises.

    Raises:
        NotSaved: its signature cannot be written down.
    """
    snapshot = context.known()
    outputs = known.tests[0].outputs if known.tests else {}
    try:
        signature = compile_signature(workflow, outputs, snapshot)
    except SchemaRejected as error:
        raise NotSaved(f"its signature cannot be written down: {error}") from error
    tools = sorted({node.tool for node in workflow.nodes if node.tool is not None})
    pins = tuple(
        Pin(tool=tool, contract_hash=found.contract_hash, effect=context.effects.effect(tool))
        for tool in tools
        if (found := snapshot.get(tool)) is not None
    )
    return known.model_copy(
        update={
            "state": "proposed",
            "reason": "written by a person; waits for evidence",
            "workflow": workflow,
            "content_hash": content_hash(workflow),
            "shape_hash": shape_hash(workflow),
            "signature": signature,
            "description": render_description(workflow, signature),
            "guidance": render_guidance(known.provenance.task, workflow),
            "pins": pins,
            "verdict": None,
            "origin": "user",
            "created_at": context.clock(),
        }
    )
