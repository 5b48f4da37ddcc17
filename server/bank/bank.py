"""The bank: one door to every use case, for the command line, the MCP surface and benchmarks.

What listing and relaying need is imported with it, each other use case when it is first asked for:
a host waits for the tool list, not for planners.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from pydantic import JsonValue

from catalog.drift import Drift
from catalog.forwarding import Attendant
from catalog.result import CallOutcome
from catalog.tools import Tool, ToolId
from server.backends.sampling import Sampler
from server.bank.context import Context
from server.bank.drift import follow_drift
from server.bank.journaled_models import JournaledBackend
from server.bank.publishing import PublishedSkill, published_skills, refresh_published
from server.bank.review import approving
from server.bank.traces import report_outcome
from server.bank.upstreams import relaying
from server.bank.upstreams.administering import Administration
from server.execution.consent import Consent, ConsentQuestion
from server.execution.journal import Journal
from server.progress import ProgressListener
from server.reports import (
    ApprovalsReport,
    CheckReport,
    DeletedReport,
    DoctorReport,
    EffectsReport,
    ExportReport,
    ImportReport,
    LabelsReport,
    RecordingReport,
    RecordingsReport,
    RepairReport,
    ReviewReport,
    RunReport,
    SavedReport,
    ServerReport,
    ServerTool,
    ShownSkill,
    SkillReport,
    SkillsReport,
    TestReport,
    ToolsReport,
)
from server.reports.audit import AuditReport
from server.requests import RepairRequest, SaveCodeRequest, SaveRequest, SolveRequest
from server.verification import Checks
from skills_store.errors import StoreError
from skills_store.jobs import JobStore
from skills_store.skill import Skill
from skills_store.trace import Trace

if TYPE_CHECKING:
    from server.bank.episode.repairing import Repaired
    from server.bank.exchange.training import TrainingRequest
    from server.bank.upstreams.exploration import Exploration
    from server.exploration.profile import Profile
    from server.exploration.report import ExplorationPlan, ExplorationReport, Taught
    from server.exploration.tasks import ExploredTask
    from server.reports.experience import DroppedReport, ExperienceReport, UnitReport
    from server.training.export import Exported
    from server.verification.reference_judge import ReferenceVerdict

__all__ = ["Bank"]

_LOG = logging.getLogger(__name__)


class Bank:
    """Every use case over one configuration and store. Made by `server.wiring.open_bank`.

    Methods raise the typed errors of `catalog`, `skills_store` and `server.bank`; what a run came
    to is a report, never an error.
    """

    def __init__(self, context: Context, environment: Mapping[str, str] | None = None) -> None:
        self.context = context
        self.admin = Administration(lambda: self.context, self._take, environment or {})
        context.notes.followers.append(partial(follow_drift, context=context))
        context.notes.followers.append(self._recover_beside)
        context.connections.on_change(self._tools_changed)

    def keep_to(self, servers: Iterable[str]) -> None:
        """Call no tool of any other server from here on, whatever is solved."""
        self.context = self.context.within(servers)

    def _recover_beside(self, drift: Drift) -> None:
        """Begin to recover what a change upstream has made stale."""
        from server.bank.curation.curating import recover_beside

        recover_beside(drift, self.context)

    def _take(self, context: Context) -> None:
        self.context = context

    async def _tools_changed(self, server: str) -> None:
        """Look at a server's new tools while it is connected, not only when they are next called."""
        try:
            self.context.keep_seen([server])
        except StoreError:
            _LOG.exception(
                "changed tools of %s could not be kept; they are looked at again with the next call", server
            )

    async def check(self, document: object, connect: bool = False) -> CheckReport:
        """Return the static faults of a document, against stored tools or live ones."""
        from server.bank.running import check_document

        return await check_document(document, self.context, connect=connect)

    async def run(
        self,
        document: object,
        inputs: Mapping[str, JsonValue],
        checks: Checks,
        allow: tuple[str, ...] = (),
        consent: Consent | None = None,
        progress: ProgressListener | None = None,
    ) -> RunReport:
        """Check and execute a workflow document once."""
        from server.bank.running import run_document

        context = self.context.serving(consent, progress)
        return await run_document(document, inputs, checks, context, allow)

    async def repair(
        self,
        document: object,
        request: RepairRequest,
        consent: Consent | None = None,
        progress: ProgressListener | None = None,
        sampler: Sampler | None = None,
    ) -> RepairReport:
        """Execute a document and repair it until it passes its checks; save it where asked.

        Raises:
            NotSaved: the name to save under is none; nothing was run.
        """
        from server.bank.admission.learning import check_name
        from server.bank.episode.repairing import repair_document

        context = self.context.serving(consent, progress, sampler).choosing(request.model)
        if request.save is not None:
            check_name(request.save)
        repaired = await repair_document(document, request, context)
        if request.save is None:
            return repaired.report
        return await _learned(repaired, request.save, context, request.budget.tokens, request.examples)

    async def solve(
        self,
        task: str,
        request: SolveRequest,
        consent: Consent | None = None,
        progress: ProgressListener | None = None,
        sampler: Sampler | None = None,
    ) -> RepairReport:
        """Run the skill that is this task's, else plan, run and repair; learn from what is verified.

        Raises:
            NotSaved: the name to save under is none; nothing was run.
        """
        from server.bank.admission.learning import check_name
        from server.bank.curation.curating import curate_used
        from server.bank.curation.observing import observe
        from server.bank.episode.answering import answered, judged
        from server.bank.episode.code_proposals import by_code
        from server.bank.episode.planning_cost import with_planning_cost
        from server.bank.episode.repairing import Repaired, spent_at_once
        from server.bank.episode.routing import DirectRun, NotRun, after_all, no_route, run_directly
        from server.bank.episode.seeding import look_back
        from server.bank.episode.solving import solve_task

        context = self.context.serving(consent, progress, sampler).choosing(request.model)
        if request.save is not None:
            check_name(request.save)
        if request.drive is not None:
            from server.bank.episode.driving import drive_task
            from server.bank.episode.kept_drives import keep_drive

            driven = await drive_task(task, request, context)
            driven = await judged(await answered(driven, task, request, context), task, request, context)
            keep_drive(driven.report, context)
            return await _learned(driven, request.save, context, request.budget.tokens)
        may_run = request.route in (None, "direct") and spent_at_once(request.budget) is None
        started = anyio.current_time()
        direct = await run_directly(task, request, context) if may_run else NotRun()
        if isinstance(direct, NotRun):
            if request.route == "direct":
                return no_route(task, request, direct)
        else:
            observe(task, direct.report, direct.drawn, context)
            await curate_used(direct.drawn, context)
        if isinstance(direct, DirectRun) and (direct.is_final or request.route == "direct"):
            said = await answered(Repaired(direct.report), task, request, context)
            return (await judged(said, task, request, context)).report
        before = await look_back(task, request, context, direct)
        left = request.budget.after(anyio.current_time() - started)
        solved = await solve_task(task, replace(request, budget=left), context, before)
        solved = await by_code(task, replace(request, budget=left), solved, context)
        if not isinstance(direct, DirectRun):
            observe(task, solved.report, solved.drawn, context)
            solved = await after_all(task, request, solved, context)
            await curate_used(solved.drawn, context)
        solved = await answered(solved, task, request, context)
        solved = await judged(solved, task, request, context)
        return await _learned(with_planning_cost(solved), request.save, context, request.budget.tokens)

    def refresh_published(self) -> None:
        """Have the published set fit the configured cap."""
        refresh_published(self.context)

    async def plan_exploration(self, exploration: Exploration) -> ExplorationPlan:
        """Return what exploring a server would do; nothing of it is called."""
        from server.bank.upstreams.exploring import plan_exploration

        return await plan_exploration(exploration, self.context)

    async def profile_server(self, exploration: Exploration) -> Profile:
        """Return the environment profile of a server, derived from what it lists."""
        from server.bank.upstreams.exploring import profile_server

        return await profile_server(exploration, self.context)

    async def explore(
        self, exploration: Exploration, progress: ProgressListener | None = None
    ) -> ExplorationReport:
        """Explore a server: coverage, health, tasks with checked solutions, and skills of them."""
        from server.bank.upstreams.exploring import explore_server

        return await explore_server(exploration, self.context.serving(None, progress))

    async def can_judge(self) -> bool:
        """Return whether a model is configured that judges what no check can tell."""
        from server.bank.episode.reference_judging import can_judge

        return await can_judge(self.context)

    async def judge_explored(self, task: ExploredTask, report: RepairReport) -> ReferenceVerdict:
        """Return a model's word on whether a run did what the reference of an explored task did."""
        from server.bank.episode.reference_judging import judge_explored

        return await judge_explored(task, report, self.context)

    async def teach(self, task: ExploredTask, reserved: int = 0) -> Taught:
        """Learn an explored task from runs of its reference; the last `reserved` instances stay unseen."""
        from server.bank.upstreams.exploring import teach_explored

        return await teach_explored(task, self.context, reserved)

    async def list_experience(self) -> ExperienceReport:
        """Return what was learned from earlier runs, the most used first."""
        from server.bank.review.experience import list_experience

        return list_experience(self.context)

    async def show_experience(self, unit: str) -> UnitReport:
        """Return one lesson. Raises UnknownExperience."""
        from server.bank.review.experience import show_experience

        return show_experience(unit, self.context)

    async def drop_experience(self, units: Sequence[str]) -> DroppedReport:
        """Forget lessons, all of them where none is named. Raises UnknownExperience."""
        from server.bank.review.experience import drop_experience

        return drop_experience(units, self.context)

    @property
    def jobs(self) -> JobStore:
        """The long calls of this principal."""
        return self.context.store.jobs(self.context.principal)

    def journaled(self, journal: Journal) -> Bank:
        """Return this bank doing the work of one job: what it asks of others goes into the journal."""
        bank = copy(self)
        models = self.context.models.wrapped(lambda wire: JournaledBackend(wire, journal))
        bank.context = replace(self.context, journal=journal, models=models)
        return bank

    def redacted(self, value: JsonValue) -> JsonValue:
        """Return a value with secrets taken out, fit to be stored."""
        return self.context.redact(value)

    def remember_approval(self, question: ConsentQuestion, exact: bool) -> None:
        """Keep a person's word that a tool may run, of these arguments alone where `exact`."""
        approving.remember(question, self.context, exact=exact)

    def published(self) -> list[PublishedSkill]:
        """Return the published skills ordered by tool name."""
        return published_skills(self.context)

    def revision(self) -> int:
        """Return a number that grows with every change of skills, also by other processes."""
        return self.context.store.revision()

    async def call_skill(
        self,
        name: str,
        arguments: Mapping[str, JsonValue],
        version: int | None = None,
        progress: ProgressListener | None = None,
        consent: Consent | None = None,
    ) -> RunReport:
        """Run an active skill for a client."""
        from server.bank import using

        context = self.context.serving(consent, progress)
        return await using.call_skill(name, arguments, version, context)

    async def run_skill(
        self, name: str, arguments: Mapping[str, JsonValue], version: int | None = None
    ) -> RunReport:
        """Run a skill for a person, also one that is only proposed."""
        from server.bank import using

        return await using.call_skill(name, arguments, version, self.context, by_person=True)

    async def find_skills(self, query: str, limit: int) -> SkillsReport:
        """Return the skills that fit a query, best first."""
        from server.bank import using

        return await using.find_skills(query, limit, self.context)

    async def list_skills(self) -> SkillsReport:
        """Return every skill's head, ordered by name."""
        from server.bank import using

        return using.list_skills(self.context)

    async def describe_skill(self, name: str, version: int | None = None) -> Skill:
        """Return a skill, its head where no version is given."""
        from server.bank import using

        return using.require_skill(name, version, self.context)

    async def show_skill(self, name: str, version: int | None = None) -> ShownSkill:
        """Return a skill, its head where no version is given, with how it stands."""
        from server.bank.review.standing import show_skill

        return show_skill(name, version, self.context)

    async def test_skill(self, name: str, version: int | None = None) -> TestReport:
        """Run the replay tests of a skill, its head where no version is given, in fresh processes."""
        from server.bank import using
        from server.bank.admission.proving import prove

        return await prove(using.require_skill(name, version, self.context), self.context)

    async def rollback(self, name: str, version: int) -> SkillReport:
        """Make an earlier version the head."""
        from server.bank.review import controlling

        return controlling.roll_back(name, version, self.context)

    async def proposal(self, name: str, version: int | None = None) -> Skill:
        """Return a proposed skill as a person would approve it, its head where no version is given.

        Raises:
            NotDecided: it cannot be approved; says its state, or what is wrong.
        """
        from server.bank.review.deciding import approvable_skill

        return approvable_skill(name, version, self.context)

    async def approve(self, name: str, version: int | None = None) -> SkillReport:
        """Make a proposed skill active at a person's word, and put it in use."""
        from server.bank.review.deciding import approve_skill

        return await approve_skill(name, version, self.context)

    async def reject(self, name: str, reason: str, version: int | None = None) -> SkillReport:
        """Turn a proposed skill down for a reason; its workflow is not proposed again."""
        from server.bank.review.deciding import reject_skill

        return reject_skill(name, version, reason, self.context)

    async def review_queue(self) -> ReviewReport:
        """Return the proposed versions that wait for a person, with what each changes."""
        from server.bank.review.reviewing import review_queue

        return review_queue(self.context)

    async def revise(self, name: str, document: object) -> SavedReport:
        """Keep a person's own version of a skill, tested like any other.

        Raises:
            UnknownSkill: there is no such skill.
            MalformedWorkflow: the document cannot be read.
            NotSaved: it has static faults, or changes nothing.
        """
        from server.bank.review.reviewing import revise

        return await revise(name, document, self.context)

    async def retire(self, name: str, reason: str) -> SkillReport:
        """Take a skill out of use; it stays readable."""
        from server.bank.review import controlling

        return controlling.retire_skill(name, reason, self.context)

    async def pin(self, name: str, version: int | None = None) -> SkillReport:
        """Put a version in use, the head where none is given, and keep it there."""
        from server.bank.review import controlling

        return controlling.pin_skill(name, version, self.context)

    async def unpin(self, name: str) -> SkillReport:
        """Let the system move a skill again."""
        from server.bank.review import controlling

        return controlling.unpin_skill(name, self.context)

    async def restore(self, name: str, version: int | None = None) -> SkillReport:
        """Take back the last step that curation took against a skill."""
        from server.bank.review import controlling

        return controlling.restore_skill(name, version, self.context)

    async def audit(self, names: Sequence[str] = (), *, dry_run: bool = False) -> AuditReport:
        """Look at the skills in use, take what is due, and return how the bank stands."""
        from server.bank.curation.bank_audit import audit_bank

        return await audit_bank(names, self.context, dry_run=dry_run)

    async def delete(self, name: str) -> DeletedReport:
        """Remove a skill for good."""
        from server.bank.review import controlling

        return controlling.delete_skill(name, self.context)

    async def find_tools(self, query: str, limit: int) -> ToolsReport:
        """Return the upstream tools that fit a query, best first."""
        return await relaying.find_tools(query, limit, self.context)

    async def call_tool(
        self,
        tool: ToolId,
        arguments: Mapping[str, JsonValue],
        progress: relaying.UpstreamProgress | None = None,
        recording: str | None = None,
        attendant: Attendant | None = None,
    ) -> CallOutcome:
        """Relay one call to an upstream tool; its trace id is in the outcome's meta.

        Args:
            tool: what to call.
            arguments: sent as they are.
            progress: awaited for each progress report.
            recording: the conversation the call belongs to, None: to none.
            attendant: who is behind the call, for what its server is trusted to ask.
        """
        return await relaying.call_tool(tool, arguments, progress, self.context, recording, attendant)

    def upstream_tools(self) -> list[Tool]:
        """Return the usable tools of all servers as last listed, ordered by server and name."""
        return relaying.upstream_tools(self.context)

    async def look_at_servers(self) -> None:
        """Connect to every configured server, so that its tools are known."""
        await self.context.snapshot()

    def skill_heads(self) -> list[Skill]:
        """Return every skill's head, ordered by name."""
        return self.context.store.heads()

    def skill_versions(self, name: str) -> list[Skill]:
        """Return all versions of a skill, the oldest first; none where there is no such skill."""
        return self.context.store.versions(name)

    def trace(self, trace_id: str) -> Trace | None:
        """Return a kept run or relayed call, None where none with this id is."""
        self.context.afterwards.finish()
        return self.context.store.trace(trace_id)

    def recent_traces(self, limit: int) -> list[Trace]:
        """Return the newest runs and relayed calls, the newest first."""
        self.context.afterwards.finish()
        return self.context.store.traces(limit)

    def is_run(self, trace_id: str) -> bool:
        """Return whether a run or a call with this trace id is kept."""
        self.context.afterwards.finish()
        return self.context.store.trace(trace_id) is not None

    async def save(self, request: SaveRequest) -> SavedReport:
        """Compile what was worked out already into a skill: a conversation's calls, or one run.

        Raises:
            NotSaved: there is nothing to compile, or it cannot be a skill; says why.
            UnknownTrace: no such conversation or run is kept.
        """
        from server.bank.admission import saving

        return await saving.save(request, self.context)

    async def save_code(self, request: SaveCodeRequest) -> SavedReport:
        """Make a skill of a Python function and its tests.

        Raises:
            NotSaved: it cannot be read or run here; says why.
        """
        from server.bank.admission import coding

        return await coding.save_code(request, self.context)

    async def export(self, name: str, version: int | None, format: str) -> ExportReport:  # noqa: A002
        """Return the files of a skill in a format.

        Raises:
            UnknownSkill: no such skill or version.
            NotSaved: it holds a secret.
        """
        from server.bank.exchange import exchanging

        return exchanging.export_skill(name, version, format, self.context)

    async def export_training(self, request: TrainingRequest) -> Exported:
        """Return what was seen here as files of training data.

        Raises:
            TrainingError: a file cannot be read, or there is nothing to export.
        """
        from server.bank.exchange import training

        return await training.export_training(request, self.context)

    async def import_file(self, path: Path) -> ImportReport:
        """Take in a bundle, Arazzo description or package of others, as `shadow`.

        Raises:
            NotImportable: it is none, or holds what may not be taken in.
        """
        from server.bank.exchange import exchanging

        contracts = {tool.id: tool.contract_hash for tool in self.context.known()}
        imported = await anyio.to_thread.run_sync(exchanging.read_import, path, contracts)
        return exchanging.import_skill(imported, path.name, self.context)

    async def recordings(self, limit: int = 20) -> RecordingsReport:
        """Return the conversations whose calls were kept, the newest first."""
        from server.bank.admission import saving

        return saving.list_recordings(limit, self.context)

    async def show_recording(self, name: str) -> RecordingReport:
        """Return the calls of one conversation.

        Raises:
            UnknownTrace: none of this name is kept.
        """
        from server.bank.admission import saving

        return saving.show_recording(name, self.context)

    async def forget_recording(self, name: str) -> int:
        """Drop the calls of one conversation and return how many there were.

        Raises:
            UnknownTrace: none of this name is kept.
        """
        from server.bank.admission import saving

        return saving.forget_recording(name, self.context)

    async def report_outcome(self, trace_id: str, passed: bool, detail: str) -> dict[str, JsonValue]:
        """Record whether an answer proved right.

        Raises:
            UnknownTrace: no run with this id is kept.
        """
        return report_outcome(trace_id, passed, detail, self.context)

    async def doctor(self) -> DoctorReport:
        """Connect to every configured server and say how it is."""
        from server.bank.upstreams import health

        return await health.doctor(self.context)

    def servers(self) -> list[ServerReport]:
        """Return how every configured server is, as far as is known without connecting."""
        from server.bank.upstreams import health

        return health.list_servers(self.context)

    def server_tools(self, server: str) -> list[ServerTool]:
        """Return the usable tools of one server as last listed, ordered by name."""
        from server.bank.upstreams import health

        return health.list_server_tools(server, self.context)

    async def preview(self, value: JsonValue) -> JsonValue:
        """Return a value as a client is shown it: one over a megabyte as digest, size and preview."""
        return await relaying.preview(value, self.context)

    def kept_value(self, digest: str) -> bytes:
        """Return the JSON of a value that is kept under its digest.

        Raises:
            LookupError: none is.
        """
        return relaying.kept_value(digest, self.context)

    async def list_effects(self) -> EffectsReport:
        """Return the effect class of every known tool with where it comes from."""
        return relaying.list_effects(self.context)

    async def list_labels(self) -> LabelsReport:
        """Return what every known tool does with information, and which flows are granted."""
        return relaying.list_labels(self.context)

    async def list_approvals(self) -> ApprovalsReport:
        """Return every standing consent: the configuration's and those people gave."""
        return approving.list_approvals(self.context)

    async def approve_calls(self, tool: ToolId, arguments: Mapping[str, JsonValue] | None) -> ApprovalsReport:
        """Let a tool that is not free run without asking, where its arguments fit the patterns."""
        approving.approve(tool, arguments, self.context)
        return approving.list_approvals(self.context)

    async def revoke_approval(self, approval_id: str) -> ApprovalsReport:
        """Forget a remembered approval. Raises NotDecided: there is none of this id."""
        approving.revoke(approval_id, self.context)
        return approving.list_approvals(self.context)

    async def recheck_effects(self, server: str, pattern: str) -> tuple[str, ...]:
        """Take the tools of a server that fit a pattern as looked at now; return those that had changed."""
        changed = relaying.recheck_effects(server, pattern, self.context)
        if changed:
            from server.bank.curation.curating import recover_all

            self.context.afterwards.start(partial(recover_all, self.context))
        return changed


async def _learned(
    repaired: Repaired,
    save: str | None,
    context: Context,
    tokens: int,
    examples: tuple[Mapping[str, JsonValue], ...] = (),
) -> RepairReport:
    """Return the report with what was learned from the run, or why nothing was."""
    from server.bank.admission.learning import learn

    report = repaired.report
    if repaired.run is None:
        reason = f"nothing to learn from: the run is {report.status.replace('_', ' ')}"
        return report.model_copy(update={"skill_reason": reason})
    left = max(0, tokens - report.tokens)
    learned = await learn(repaired.run, context, name=save, examples=examples, tokens=left)
    skill = learned.skill
    return report.model_copy(
        update={
            "skill": skill.name if skill else None,
            "skill_state": skill.state if skill else None,
            "skill_reason": learned.reason,
            "verdict": learned.verdict,
            "tokens": report.tokens + learned.tokens,
        }
    )
