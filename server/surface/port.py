"""What the surface asks of a bank: the seam between MCP and the use cases.

`server.bank.Bank` implements it; the surface knows nothing of stores, servers or searches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from pydantic import JsonValue

from catalog.forwarding import Attendant
from catalog.result import CallOutcome
from catalog.tools import Tool, ToolId
from server.backends.sampling import Sampler
from server.bank.upstreams.administering import Administration
from server.bank.upstreams.exploration import Exploration
from server.bank.upstreams.relaying import TRACE_META_KEY, UpstreamProgress
from server.execution.consent import Consent, ConsentQuestion
from server.execution.journal import Journal
from server.progress import ProgressListener
from server.reports import (
    RecordingReport,
    RecordingsReport,
    RepairReport,
    ReviewReport,
    RunReport,
    SavedReport,
    ServerReport,
    ServerTool,
    SkillReport,
    SkillsReport,
    ToolsReport,
)
from server.requests import RepairRequest, SaveRequest, SolveRequest
from server.verification import Checks
from skills_store.jobs import JobStore
from skills_store.skill import Skill
from skills_store.trace import Trace

if TYPE_CHECKING:
    from server.exploration.report import ExplorationPlan, ExplorationReport

__all__ = ["TRACE_META_KEY", "BankPort", "PublishedSkill", "UpstreamProgress"]


class PublishedSkill(Protocol):
    """An active skill with the tool name it is published under."""

    @property
    def tool_name(self) -> str:
        """Portable and unique among the published skills."""
        ...

    @property
    def skill(self) -> Skill:
        """The head version."""
        ...


class BankPort(Protocol):
    """The use cases a client can reach.

    Async methods stop their upstream calls when they are cancelled. They raise the typed errors
    of `catalog.errors` and `skills_store.errors`; what a run came to is a report, never an error.
    Where `consent` answers None the report says `needs_approval` and shows the call. `sampler` asks
    the client's own model, None where it has none to lend.
    """

    @property
    def admin(self) -> Administration:
        """What an operator may change while clients are served."""
        ...

    async def plan_exploration(self, exploration: Exploration) -> ExplorationPlan:
        """Return what exploring a server would do; nothing of it is called.

        Raises:
            NothingToExplore: no such server is configured, or nothing of it may be called.
            ServerUnavailable: it cannot be reached.
        """
        ...

    async def explore(
        self, exploration: Exploration, progress: ProgressListener | None = None
    ) -> ExplorationReport:
        """Explore a server within a budget. Raises as `plan_exploration` does."""
        ...

    async def review_queue(self) -> ReviewReport:
        """Return the proposed versions that wait for a person."""
        ...

    async def approve(self, name: str, version: int | None = None) -> SkillReport:
        """Make a proposed skill active at a person's word. Raises UnknownSkill or NotDecided."""
        ...

    async def reject(self, name: str, reason: str, version: int | None = None) -> SkillReport:
        """Turn a proposed skill down. Raises UnknownSkill or NotDecided."""
        ...

    async def rollback(self, name: str, version: int) -> SkillReport:
        """Make an earlier version the head. Raises UnknownSkill, NotDecided or VersionConflict."""
        ...

    @property
    def jobs(self) -> JobStore:
        """The long calls of the principal this bank is of."""
        ...

    def journaled(self, journal: Journal) -> BankPort:
        """Return this bank doing the work of one job, whose upstream calls go into the journal."""
        ...

    def redacted(self, value: JsonValue) -> JsonValue:
        """Return a value with secrets taken out, fit to be stored."""
        ...

    def remember_approval(self, question: ConsentQuestion, exact: bool) -> None:
        """Keep a person's word that a tool may run, of these arguments alone where `exact`."""
        ...

    def published(self) -> Sequence[PublishedSkill]:
        """Return the published skills ordered by tool name, from the store alone."""
        ...

    def revision(self) -> int:
        """Return a number that grows with every change of the published set, also by other processes."""
        ...

    async def call_skill(
        self,
        name: str,
        arguments: Mapping[str, JsonValue],
        version: int | None = None,
        progress: ProgressListener | None = None,
        consent: Consent | None = None,
    ) -> RunReport:
        """Run a skill, its head version where none is given.

        Raises:
            UnknownSkill: no such skill or version.
        """
        ...

    async def run(
        self,
        document: object,
        inputs: Mapping[str, JsonValue],
        checks: Checks,
        allow: tuple[str, ...] = (),
        consent: Consent | None = None,
        progress: ProgressListener | None = None,
    ) -> RunReport:
        """Check and execute a workflow document."""
        ...

    async def repair(
        self,
        document: object,
        request: RepairRequest,
        consent: Consent | None = None,
        progress: ProgressListener | None = None,
        sampler: Sampler | None = None,
    ) -> RepairReport:
        """Execute a workflow document and repair it until it passes its checks."""
        ...

    async def solve(
        self,
        task: str,
        request: SolveRequest,
        consent: Consent | None = None,
        progress: ProgressListener | None = None,
        sampler: Sampler | None = None,
    ) -> RepairReport:
        """Plan, run and repair a task given in words."""
        ...

    async def find_skills(self, query: str, limit: int) -> SkillsReport:
        """Return the skills that fit a query, best first."""
        ...

    async def describe_skill(self, name: str, version: int | None = None) -> Skill:
        """Return a skill, its head version where none is given.

        Raises:
            UnknownSkill: no such skill or version.
        """
        ...

    async def find_tools(self, query: str, limit: int) -> ToolsReport:
        """Return the upstream tools that fit a query, best first."""
        ...

    async def call_tool(
        self,
        tool: ToolId,
        arguments: Mapping[str, JsonValue],
        progress: UpstreamProgress | None = None,
        recording: str | None = None,
        attendant: Attendant | None = None,
    ) -> CallOutcome:
        """Call an upstream tool; the outcome's `meta` carries our trace id under `TRACE_META_KEY`.

        Raises:
            NotAnswered: the tool's server asked what the attendant cannot answer.
        """
        ...

    def upstream_tools(self) -> Sequence[Tool]:
        """Return the usable tools of all servers as last listed, ordered; a tool is the same object
        until it changes.
        """
        ...

    async def look_at_servers(self) -> None:
        """Connect to every server, so that its tools are known."""
        ...

    def skill_heads(self) -> Sequence[Skill]:
        """Return every skill's head, ordered by name, whatever its state."""
        ...

    def skill_versions(self, name: str) -> Sequence[Skill]:
        """Return all versions of a skill, the oldest first; none where there is no such skill."""
        ...

    def trace(self, trace_id: str) -> Trace | None:
        """Return a kept run or relayed call, None where none with this id is."""
        ...

    def recent_traces(self, limit: int) -> Sequence[Trace]:
        """Return the newest runs and relayed calls, the newest first."""
        ...

    async def recordings(self, limit: int = 20) -> RecordingsReport:
        """Return the conversations whose calls were kept, the newest first."""
        ...

    async def show_recording(self, name: str) -> RecordingReport:
        """Return the calls of one conversation.

        Raises:
            UnknownTrace: none of this name is kept.
        """
        ...

    def servers(self) -> Sequence[ServerReport]:
        """Return how every configured server is, as far as is known without connecting, ordered by name."""
        ...

    def server_tools(self, server: str) -> Sequence[ServerTool]:
        """Return the usable tools of one server as last listed, ordered by name; none where it is unknown."""
        ...

    async def preview(self, value: JsonValue) -> JsonValue:
        """Return a value as a client is shown it.

        One over a megabyte is kept, and `{"$digest", "size", "preview"}` stands for it.
        """
        ...

    def kept_value(self, digest: str) -> bytes:
        """Return the JSON of a value that is kept under its digest; may be called from any thread.

        Raises:
            LookupError: none is.
        """
        ...

    def is_run(self, trace_id: str) -> bool:
        """Return whether a run or a call with this trace id is kept."""
        ...

    async def save(self, request: SaveRequest) -> SavedReport:
        """Compile what was done already into a skill.

        Raises:
            NotSaved: there is nothing to compile, or it cannot be a skill.
            UnknownTrace: no such conversation or run is kept.
        """
        ...

    async def report_outcome(self, trace_id: str, passed: bool, detail: str) -> dict[str, JsonValue]:
        """Record whether an answer proved right, and return what was recorded.

        Raises:
            LookupError: no trace with this id is kept.
        """
        ...
