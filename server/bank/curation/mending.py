"""Repairing a skill by its own tests: from the version that fails to a proposed one that passes them all.

Paper: FlowEvo (lifecycle): a model rewrites what failed its audit; active again after audit and replay.
Differs: typed edits found by the search of `server.evolution`, which sees no expected output; the
    result is a new version beside the old one, judged by the same gates, and promotes itself only in
    mode `auto` where every tool is free. No write is tried but in a process that was shown to forget it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from pydantic import JsonValue

from catalog.effects import Reset
from catalog.errors import SchemaRejected
from catalog.tools import Snapshot
from server.bank.admission.learning import Lesson, judge_candidate
from server.bank.admission.proving import replayer
from server.bank.context import Context
from server.bank.curation.auditing import unseen_tools
from server.bank.drift import missing_servers
from server.bank.publishing import refresh_published
from server.bank.running import signatures_of
from server.compilation.compile import Compiled
from server.compilation.prose import render_description
from server.compilation.signature import compile_signature
from server.evolution.driver import search
from server.evolution.evaluate import Evaluator
from server.execution.consent import NoConsent
from server.planning.view import World
from server.progress import Progress
from server.requests import Budget
from server.verification import Checks
from skills_store.admission import MINIMUM_TRACES
from skills_store.episodes import Audit
from skills_store.errors import VersionConflict
from skills_store.hints import derived_hints
from skills_store.skill import Pin, ReplayTest, Skill
from skills_store.workflow.edits import render_edit
from skills_store.workflow.hashing import content_hash, shape_hash
from skills_store.workflow.model import Workflow

__all__ = ["Mended", "mend"]

_MOST_ROUNDS: Final = 3
BUDGET: Final = Budget(seconds=20, calls=200, candidates=120)
"""Of one round."""


@dataclass(frozen=True, slots=True)
class Mended:
    """The repaired version, None where there is none; `reason` says why."""

    skill: Skill | None
    reason: str


async def mend(skill: Skill, context: Context, budget: Budget = BUDGET) -> Mended:
    """Search for a version of a skill that passes its tests, keep it, and note what came of it.

    Nobody looks on, so what would need consent is not tried, and a tool that is not free runs, in a
    process of its own, only where a trial has shown that a fresh process restores its server.

    Args:
        skill: the version that fails.
        context: the bank.
        budget: of the search from one failing test.
    """
    alone = _trusting_trials_alone(context.serving(NoConsent(), None))
    mended = await _mended(skill, alone, budget)
    passed = mended.skill is not None
    context.store.record_audit(
        Audit(skill.name, skill.version, "repair", passed, mended.reason, context.clock())
    )
    context.progress(Progress("curate", f"{skill.name}@{skill.version}: {mended.reason}"))
    return mended


async def _mended(skill: Skill, context: Context, budget: Budget) -> Mended:
    if missing := missing_servers(skill, context):
        return Mended(None, f"parked: {', '.join(missing)} is not configured")
    if not skill.tests:
        return Mended(None, "parked: it has no tests to be repaired by")
    if untried := _untried_servers(skill, context):
        return Mended(
            None,
            f"parked: no trial has shown that {untried[0]} is restored by a fresh process:"
            f" `skillbank effects verify {untried[0]}`",
        )
    context.progress(Progress("curate", f"repairing {skill.name}@{skill.version} by its tests"))
    snapshot = await context.snapshot()
    if unseen := [tool for tool in unseen_tools(skill, context) if snapshot.get(tool) is not None]:
        return Mended(
            None, f"parked: {unseen[0]} changed: look at it, then `skillbank effects set {unseen[0]} CLASS`"
        )
    search_ = _Search(skill, snapshot, context, budget)
    found = await search_.run()
    if isinstance(found, str):
        return Mended(None, f"parked: {found}")
    return await _kept(found, skill, snapshot, context)


def _trusting_trials_alone(context: Context) -> Context:
    """Return the bank with those reset modes alone that were tried and hold."""
    config = context.config
    held = {
        server: mode
        for server, mode in config.effects.reset.items()
        if (check := config.reset_checks.get(server)) is not None
        and check.verdict == "holds"
        and check.mode is mode
    }
    return replace(context, config=replace(config, effects=replace(config.effects, reset=held)))


def _untried_servers(skill: Skill, context: Context) -> list[str]:
    """Return the servers of a skill's tools that are not free and that no trial vouches for.

    A tool that changed has no class until somebody looks, and is told of as that.
    """
    effects = context.effects
    return sorted(
        {
            pin.tool.server
            for pin in skill.pins
            if pin.tool not in effects.changed
            and not effects.effect(pin.tool).is_free
            and effects.reset_mode(pin.tool.server) is Reset.NONE
        }
    )


@dataclass
class _Search:
    """One search for a workflow that passes every test of a skill."""

    skill: Skill
    snapshot: Snapshot
    context: Context
    budget: Budget
    edits: tuple[str, ...] = ()

    async def run(self) -> Skill | str:
        """Return the repaired candidate, or why there is none."""
        candidate = self.skill
        for _ in range(_MOST_ROUNDS):
            failing = await self._first_failing(candidate)
            if isinstance(failing, str):
                return failing
            if failing is None:
                return candidate
            workflow = await self._repaired(candidate.workflow, failing)
            if workflow is None:
                return f"no edit makes it pass {failing.name}"
            changed = self._as_candidate(workflow, failing)
            if changed is None:
                return "its repaired border cannot be written down"
            candidate = changed
        failing = await self._first_failing(candidate)
        if failing is None:
            return candidate
        return failing if isinstance(failing, str) else f"what passes one test does not pass {failing.name}"

    async def _first_failing(self, candidate: Skill) -> ReplayTest | str | None:
        runner = replayer(self.snapshot, self.context, candidate)
        for test in candidate.tests:
            result = await runner.replay(candidate, test)
            if not result.possible:
                return f"{test.name} cannot be run: {result.detail}"
            if not result.passed:
                return test
        return None

    async def _repaired(self, base: Workflow, test: ReplayTest) -> Workflow | None:
        context = self.context
        world = World(
            self.skill.provenance.task or self.skill.description,
            test.inputs,
            self.snapshot,
            context.effects,
            context.tool_index(),
            context.config.labels,
        )
        episode = context.episode(self.snapshot)
        episode.set_plan(base, context.skill_workflow)
        evaluator = Evaluator(
            world,
            Checks(tuple(_assertions(test))),
            episode,
            context.options(world.task),
            signatures_of(base, context),
        )
        try:
            result = await search(base, evaluator, self.budget)
        except TimeoutError:
            return None
        if result.best.evaluation.status != "verified":
            return None
        self.edits = (*self.edits, *(render_edit(edit) for edit in result.best.candidate.edits))
        return result.best.candidate.workflow

    def _as_candidate(self, workflow: Workflow, test: ReplayTest) -> Skill | None:
        known, effects = self.skill, self.context.effects
        try:
            signature = compile_signature(workflow, test.outputs, self.snapshot)
        except SchemaRejected:
            return None
        called = dict.fromkeys(node.tool for node in workflow.nodes if node.tool is not None)
        tools = [tool for name in called if (tool := self.snapshot.get(name)) is not None]
        inner = [pin for pin in known.pins if pin.tool not in called and any(n.skill for n in workflow.nodes)]
        pins = [Pin(tool=t.id, contract_hash=t.contract_hash, effect=effects.effect(t.id)) for t in tools]
        provenance = known.provenance.model_copy(
            update={"parent_version": known.version, "edits": self.edits}
        )
        return known.model_copy(
            update={
                "state": "proposed",
                "reason": "repaired by its own tests; waits to be judged",
                "workflow": workflow,
                "content_hash": content_hash(workflow),
                "shape_hash": shape_hash(workflow),
                "signature": signature,
                "description": render_description(workflow, signature),
                "tests": tuple(t.model_copy(update={"recorded": ()}) for t in known.tests),
                "pins": (*pins, *inner),
                "hints": derived_hints(tools, effects),
                "provenance": provenance,
                "verdict": None,
                "created_at": self.context.clock(),
            }
        )


def _assertions(test: ReplayTest) -> Iterator[str]:
    """Yield what a test demands of the outputs, one assertion for each that does not vary."""
    for name, value in test.outputs.items():
        if any(place == f"/{name}" or place.startswith(f"/{name}/") for place in test.volatile):
            yield f"output.{json.dumps(name)} != `null`"
        else:
            yield f"output.{json.dumps(name)} == `{_literal(value)}`"


def _literal(value: JsonValue) -> str:
    return json.dumps(value).replace("`", "\\`")


async def _kept(candidate: Skill, parent: Skill, snapshot: Snapshot, context: Context) -> Mended:
    """Judge a repaired candidate and keep it as the next version; what is in use stays in use."""
    if candidate is parent:
        return Mended(None, "its tests pass as it is: nothing is to be repaired")
    there = context.store.by_content_hash(candidate.content_hash)
    if there is not None and there.name == parent.name:
        return Mended(None, f"version {there.version} has this workflow already and is {there.state}")
    lesson = Lesson((Compiled(candidate),), False, (), snapshot, context, traces=MINIMUM_TRACES)
    judged = await judge_candidate(lesson, parent.name, parent)
    skill, verdict = judged.skill, judged.verdict
    if verdict.state == "shadow":
        return Mended(None, f"parked: what was found is wrong: {verdict.reason}")
    is_free = all(context.effects.effect(pin.tool).is_free for pin in skill.pins)
    is_held = parent.origin == "user" or context.store.pinned(parent.name) is not None
    if skill.state != "proposed" and (not is_free or is_held):
        why = "only a person changes it" if is_held else "its tools are not all free"
        reason = f"repaired, and passes every test of version {parent.version}; {why}"
        skill = skill.model_copy(update={"state": "proposed", "reason": reason})
    return _stored(skill, parent, context)


def _stored(skill: Skill, parent: Skill, context: Context) -> Mended:
    head = context.store.head(parent.name)
    in_use = head.version if head is not None else parent.version
    # A version begins at the word of whoever it comes from, and this one comes from the system.
    skill = skill.model_copy(update={"origin": "system"})
    try:
        context.store.add_version(skill, expected_head=in_use)
    except VersionConflict as error:
        return Mended(None, f"somebody else changed it meanwhile ({error})")
    if skill.state != "active" and context.store.pinned(skill.name) is None:
        context.store.set_head(skill.name, in_use, expected_head=skill.version)
    refresh_published(context)
    said = "and is in use" if skill.state == "active" else f"and is {skill.state}"
    return Mended(skill, f"repaired as version {skill.version} ({'; '.join(skill.provenance.edits)}) {said}")
