"""What the command line asks of the rest: the seam between commands and use cases.

`server.wiring.open_bank` and its `Bank` implement it. The product's parts are imported when a
command needs them, so that help and mistakes answer at once.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pydantic import JsonValue

from catalog.config import ServerSpec
from catalog.tools import ToolId
from server.cli.loading import loading
from server.models.known import KNOWN_MODELS, KnownModel
from server.onboarding import Probed, probe_servers, remember_tools, try_reset_of
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
    ShownSkill,
    SkillReport,
    SkillsReport,
    TestReport,
)
from server.reports.audit import AuditReport
from server.settings import Settings
from server.surface_options import SurfaceOptions
from skills_store.skill import Skill

if TYPE_CHECKING:
    from server.bank.exchange.training import TrainingRequest
    from server.bank.upstreams.exploration import Exploration
    from server.bench.request import BenchRequest
    from server.execution.consent import Consent
    from server.exploration.profile import Profile
    from server.exploration.report import ExplorationPlan, ExplorationReport, Taught
    from server.exploration.tasks import ExploredTask
    from server.reports.experience import DroppedReport, ExperienceReport, UnitReport
    from server.requests import RepairRequest, SaveCodeRequest, SaveRequest, SolveRequest
    from server.reset_trial import ResetTrial, TrialVerdict
    from server.training.export import Exported
    from server.verification import Checks
    from server.verification.reference_judge import ReferenceVerdict

__all__ = ["BankPort", "OpenBank", "ServeRequest", "Wiring", "product_wiring"]


class BankPort(Protocol):
    """The use cases a person can reach.

    Methods raise the typed errors of `catalog.errors` and `skills_store.errors`; what a run came
    to is a report, never an error.
    """

    def keep_to(self, servers: Iterable[str]) -> None:
        """Call no tool of any other server from here on, whatever is solved."""
        ...

    async def check(self, document: object, connect: bool = False) -> CheckReport:
        """Return the static faults of a document, against the stored snapshot or a fresh one."""
        ...

    async def run(
        self, document: object, inputs: Mapping[str, JsonValue], checks: Checks, allow: tuple[str, ...] = ()
    ) -> RunReport:
        """Check and execute a workflow document."""
        ...

    async def repair(self, document: object, request: RepairRequest) -> RepairReport:
        """Execute a workflow document and repair it until it passes its checks."""
        ...

    async def solve(self, task: str, request: SolveRequest) -> RepairReport:
        """Plan, run and repair a task given in words."""
        ...

    async def plan_exploration(self, exploration: Exploration) -> ExplorationPlan:
        """Return what exploring a server would do; nothing of it is called."""
        ...

    async def profile_server(self, exploration: Exploration) -> Profile:
        """Return the environment profile of a server, derived from what it lists."""
        ...

    async def explore(self, exploration: Exploration) -> ExplorationReport:
        """Explore a server within a budget; make tasks and learn skills from them."""
        ...

    async def can_judge(self) -> bool:
        """Return whether a model is configured that judges what no check can tell."""
        ...

    async def judge_explored(self, task: ExploredTask, report: RepairReport) -> ReferenceVerdict:
        """Return a model's word on whether a run did what the reference of an explored task did."""
        ...

    async def teach(self, task: ExploredTask, reserved: int = 0) -> Taught:
        """Learn an explored task from runs of its reference, some instances left unseen."""
        ...

    async def list_skills(self) -> SkillsReport:
        """Return every skill's head, ordered by name."""
        ...

    async def show_skill(self, name: str, version: int | None = None) -> ShownSkill:
        """Return a skill with how it stands, its head where no version is given. Raises UnknownSkill."""
        ...

    async def run_skill(
        self, name: str, arguments: Mapping[str, JsonValue], version: int | None = None
    ) -> RunReport:
        """Run a skill. Raises UnknownSkill."""
        ...

    async def test_skill(self, name: str, version: int | None = None) -> TestReport:
        """Run a skill's replay tests again. Raises UnknownSkill."""
        ...

    async def rollback(self, name: str, version: int) -> SkillReport:
        """Make an active version the head. Raises UnknownSkill, NotDecided or VersionConflict."""
        ...

    async def pin(self, name: str, version: int | None = None) -> SkillReport:
        """Put a version in use and keep it there. Raises UnknownSkill or NotDecided."""
        ...

    async def unpin(self, name: str) -> SkillReport:
        """Let the system move a skill again. Raises UnknownSkill or NotDecided."""
        ...

    async def restore(self, name: str, version: int | None = None) -> SkillReport:
        """Take back the last step that curation took. Raises UnknownSkill or NotDecided."""
        ...

    async def audit(self, names: Sequence[str] = (), *, dry_run: bool = False) -> AuditReport:
        """Look at the skills in use and take what is due. Raises UnknownSkill."""
        ...

    async def delete(self, name: str) -> DeletedReport:
        """Remove a skill for good. Raises UnknownSkill or SkillInUse."""
        ...

    async def proposal(self, name: str, version: int | None = None) -> Skill:
        """Return a proposed skill that a person may approve. Raises UnknownSkill or NotDecided."""
        ...

    async def approve(self, name: str, version: int | None = None) -> SkillReport:
        """Make a proposed skill active and put it in use. Raises UnknownSkill or NotDecided."""
        ...

    async def reject(self, name: str, reason: str, version: int | None = None) -> SkillReport:
        """Turn a proposed skill down; the reason is remembered. Raises UnknownSkill or NotDecided."""
        ...

    async def review_queue(self) -> ReviewReport:
        """Return the proposed versions that wait for a person, with what each changes."""
        ...

    async def revise(self, name: str, document: object) -> SavedReport:
        """Keep a person's own version of a skill. Raises UnknownSkill, MalformedWorkflow or NotSaved."""
        ...

    async def retire(self, name: str, reason: str) -> SkillReport:
        """Take a skill out of use; it stays readable. Raises UnknownSkill or IllegalTransition."""
        ...

    async def save(self, request: SaveRequest) -> SavedReport:
        """Compile a kept conversation or run into a skill. Raises NotSaved or UnknownTrace."""
        ...

    async def save_code(self, request: SaveCodeRequest) -> SavedReport:
        """Make a skill of a Python function and its tests. Raises NotSaved."""
        ...

    async def export_training(self, request: TrainingRequest) -> Exported:
        """Return what was seen here as files of training data. Raises TrainingError."""
        ...

    async def export(self, name: str, version: int | None, format: str) -> ExportReport:  # noqa: A002
        """Return the files of a skill in a format. Raises UnknownSkill or NotSaved."""
        ...

    async def import_file(self, path: Path) -> ImportReport:
        """Take in a bundle or package of others, as `shadow`. Raises NotImportable."""
        ...

    async def list_experience(self) -> ExperienceReport:
        """Return what was learned from earlier runs, the most used first."""
        ...

    async def show_experience(self, unit: str) -> UnitReport:
        """Return one lesson. Raises UnknownExperience."""
        ...

    async def drop_experience(self, units: Sequence[str]) -> DroppedReport:
        """Forget lessons, all of them where none is named. Raises UnknownExperience."""
        ...

    async def recordings(self, limit: int = 20) -> RecordingsReport:
        """Return the conversations whose calls were kept, the newest first."""
        ...

    async def show_recording(self, name: str) -> RecordingReport:
        """Return the calls of one conversation. Raises UnknownTrace."""
        ...

    async def forget_recording(self, name: str) -> int:
        """Drop the calls of one conversation and return how many there were. Raises UnknownTrace."""
        ...

    async def doctor(self) -> DoctorReport:
        """Connect to every configured server and say how it is."""
        ...

    async def list_effects(self) -> EffectsReport:
        """Return the effect class of every known tool with where it comes from."""
        ...

    async def list_labels(self) -> LabelsReport:
        """Return what every known tool does with information, and which flows are granted."""
        ...

    async def list_approvals(self) -> ApprovalsReport:
        """Return every standing consent: the configuration's and those people gave."""
        ...

    async def approve_calls(self, tool: ToolId, arguments: Mapping[str, JsonValue] | None) -> ApprovalsReport:
        """Let a tool that is not free run without asking, where its arguments fit the patterns."""
        ...

    async def revoke_approval(self, approval_id: str) -> ApprovalsReport:
        """Forget a remembered approval. Raises NotDecided: there is none of this id."""
        ...

    async def recheck_effects(self, server: str, pattern: str) -> tuple[str, ...]:
        """Take the tools of a server that fit a pattern as looked at; return those that had changed."""
        ...


class OpenBank(Protocol):
    """Opens the bank of some settings; leaving the context ends every server it started."""

    def __call__(
        self, settings: Settings, *, consent: Consent, progress: ProgressListener
    ) -> AbstractAsyncContextManager[BankPort]: ...


@dataclass(frozen=True, slots=True)
class ServeRequest:
    """How the bank is offered."""

    address: tuple[str, int] | None = None
    """Where over HTTP, None: over stdio."""
    needs_token: bool = True
    """Whether a token is asked for over HTTP."""
    issuer: str | None = None
    """Authorization server whose tokens are taken, None: this machine's own token."""
    resource: str | None = None
    """Public address, the audience of those tokens; None: that of `address`."""
    telemetry: Path | None = None
    """File that spans are added to, None: none."""
    content: bool = False
    """Whether spans hold arguments and results."""
    options: SurfaceOptions = SurfaceOptions()  # noqa: RUF009  (frozen)
    """What is listed beside the skills."""


@dataclass(frozen=True, slots=True)
class Wiring:
    """The parts a command line stands on; a test gives its own.

    The defaults are the product's, imported when they are called.
    """

    open_bank: OpenBank
    probe: Callable[[Sequence[ServerSpec], Settings], Awaitable[list[Probed]]]
    """Start each server once, list its tools, and end it."""
    remember: Callable[[Sequence[Probed], Settings], None]
    """Keep the listed tools in the store, so that `check` knows them without connecting."""
    try_reset: Callable[[ResetTrial, Settings], Awaitable[TrialVerdict]]
    """Try a reset mode of a server, which the trial describes, in fresh processes."""
    consent: Callable[[bool], Consent]
    """Who is asked about calls that are not free, given whether a person is at a terminal."""
    serve: Callable[[Settings, ServeRequest], Awaitable[None]]
    """Offer the bank to MCP clients until they are gone."""
    run_demo: Callable[[bool, Path | None, str | None], Awaitable[int]]
    """Given whether to print JSON, a folder to keep everything in, and the one story to tell.

    Returns the exit code.
    """
    run_bench: Callable[[BenchRequest], Awaitable[int]]
    """Measures, prints, and returns the exit code."""
    is_interactive: Callable[[], bool]
    """Whether a person can be asked."""
    known_models: tuple[KnownModel, ...] = KNOWN_MODELS
    """What `model fetch` can get."""


def product_wiring() -> Wiring:
    """Return the parts of the product."""
    return Wiring(
        open_bank=_open_bank,
        probe=probe_servers,
        remember=remember_tools,
        try_reset=try_reset_of,
        consent=_consent,
        serve=_serve,
        run_demo=_run_demo,
        run_bench=_run_bench,
        is_interactive=lambda: sys.stdin.isatty() and sys.stderr.isatty(),
    )


def _open_bank(
    settings: Settings, *, consent: Consent, progress: ProgressListener
) -> AbstractAsyncContextManager[BankPort]:
    from server.wiring import open_bank

    return open_bank(settings, consent=consent, progress=progress)


def _consent(interactive: bool) -> Consent:
    from server.execution.consent import NoConsent, TerminalConsent

    return TerminalConsent() if interactive else NoConsent()


async def _serve(settings: Settings, request: ServeRequest) -> None:
    with loading():
        from server.serve import serve

    await serve(settings, request)


async def _run_demo(as_json: bool, keep: Path | None, story: str | None) -> int:
    from server.demo import run_demo

    return await run_demo(as_json=as_json, keep=keep, story=story)


async def _run_bench(request: BenchRequest) -> int:
    from server.bench.run import run_bench

    return await run_bench(request)
