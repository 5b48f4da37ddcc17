"""One episode: the candidates of one task, what they share, and the processes each has to itself.

Which calls happen is `server.execution.candidate`'s policy; this module opens and closes.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import asynccontextmanager

import anyio

from catalog.effects import Activity, EffectTable
from catalog.tools import Snapshot
from server.execution.calls import Caller
from server.execution.candidate import Candidate, Shared
from server.execution.consent import Approvals, Consent
from server.execution.isolation import OwnProcesses
from server.execution.journal import Journal
from server.execution.ledger import CallBook, PlannedOnce, Restored
from server.execution.options import MAX_SKILL_DEPTH, SkillResolver, no_skills
from server.execution.servers import ToolServers
from server.reports import NotRepeated
from skills_store.workflow.hashing import content_hash
from skills_store.workflow.model import Workflow

__all__ = ["Episode"]


class Episode:
    """Calls of one task's candidates: what is not free happens at most once for all of them.

    Args:
        connections: shared connections and fresh processes (`catalog.connections`).
        effects: classes, reset modes and standing consents of the operator.
        snapshot: tools as they are during the episode.
        consent: where a person can be asked.
        principal: on whose behalf; remembered answers are never shared between principals.
        memoise: whether an equal answer of a free tool stands in for a call; off only to measure
            what that saves.
        journal: of the job that this is; None: outside of one.
    """

    def __init__(
        self,
        connections: ToolServers,
        effects: EffectTable,
        snapshot: Snapshot,
        consent: Consent,
        principal: str = "local",
        *,
        memoise: bool = True,
        journal: Journal | None = None,
    ) -> None:
        self.snapshot = snapshot
        self._shared = Shared(
            connections, effects, snapshot, Approvals(consent), principal, memoise, journal=journal
        )
        self._candidates = 0
        self._is_planned = False

    @property
    def calls(self) -> int:
        """ToolServers calls really made."""
        return self._shared.calls

    @property
    def not_repeated(self) -> list[NotRepeated]:
        """Calls that were held back, each once, in the order in which they were."""
        return list(self._shared.not_repeated)

    def set_plan(self, workflow: Workflow, skills: SkillResolver = no_skills) -> None:
        """Name the base plan: each of its nodes may make one call that is not free.

        A tool outside of it may be called once in all, with consent.

        Raises:
            RuntimeError: the episode has a plan already, or has had a candidate.
        """
        if self._is_planned or self._candidates:
            raise RuntimeError("an episode has one base plan, set before its first candidate")
        self._is_planned = True
        self._shared.ledger.plan(_planned_calls(workflow, skills))
        if self._shared.journal is not None:
            self._shared.journal.set_plan(content_hash(workflow))

    def keep_book(self, book: CallBook) -> None:
        """Have every call that happens once written down before it is sent."""
        self._shared.book = book

    def restore(self, calls: Iterable[Restored]) -> None:
        """Take up calls of an earlier episode of the same plan: none of them is made again.

        Raises:
            RuntimeError: the episode has had a candidate.
        """
        if self._candidates:
            raise RuntimeError("calls are taken up before an episode's first candidate")
        for call in calls:
            self._shared.ledger.restore(call)

    @asynccontextmanager
    async def candidate(self, activity: Activity) -> AsyncGenerator[Caller]:
        """Open the caller of one candidate; its own processes are gone when this is left."""
        self._candidates += 1
        raised: Exception | None = None
        async with anyio.create_task_group() as tasks:
            processes = OwnProcesses(self._shared.servers.isolated, tasks)
            try:
                yield Candidate(self._shared, activity, self._candidates, processes)
            except Exception as error:  # raised again outside of the group, which would wrap it
                raised = error
            finally:
                processes.close()
        if raised is not None:
            raise raised


def _planned_calls(
    workflow: Workflow, skills: SkillResolver, path: tuple[str, ...] = (), *, is_mapped: bool = False
) -> Iterator[PlannedOnce]:
    """Yield every call a plan makes, those inside skills too."""
    if len(path) > MAX_SKILL_DEPTH:
        return
    for node in workflow:
        inner, mapped = (*path, node.id), is_mapped or node.for_each is not None
        if node.tool is not None:
            yield PlannedOnce(".".join(inner), node.tool, mapped)
        elif node.code is not None:
            granted = node.code.tools.items()
            yield from (PlannedOnce(".".join((*inner, name)), tool, True) for name, tool in granted)
        elif node.skill is not None and (skill := skills(node.skill.name, node.skill.version)) is not None:
            yield from _planned_calls(skill, skills, inner, is_mapped=mapped)
