"""The storage port: what a store of skills, traces and snapshots promises, and one in memory.

The durable adapter is `sqlite`. A store keeps no clock and makes no ids: both are arguments.
Which moves of a skill are legal is `lifecycle`, enforced here on every write.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from threading import RLock
from typing import Protocol

from catalog.era import KnownEra
from catalog.tools import Snapshot, Tool, ToolId
from skills_store.approvals import ApprovalStore, MemoryApprovals
from skills_store.drives import DriveStore, MemoryDrives
from skills_store.episodes import EPISODES_KEPT, Audit, StoreSizes, TaskEpisode
from skills_store.errors import IllegalTransition, SkillInUse, UnknownSkill, VersionConflict
from skills_store.experience.shelf import ExperienceStore, MemoryExperiences
from skills_store.jobs import JobStore, MemoryJobs
from skills_store.lifecycle import (
    Actor,
    StateChange,
    check_entry,
    check_pinned,
    check_transition,
    check_words,
)
from skills_store.skill import Skill, SkillState, SkillWords
from skills_store.trace import RecordingSummary, Trace, Verification
from skills_store.utility import Use, UseCounts

__all__ = [
    "TRACES_KEPT",
    "MemoryStore",
    "Store",
    "check_next_version",
    "check_not_called",
    "check_pin",
    "feedback_of",
]

TRACES_KEPT = 10_000
"""Traces a store keeps; adding one more drops the oldest, in order of arrival."""


class Store(Protocol):
    """What is known, kept. May be called from several threads; a call is all or nothing.

    Skill versions are immutable once added and never removed. The state of a version moves by
    `move`, which logs every change and may settle its words; the head of a name moves by
    compare-and-swap, so that of two writers who read the same head one wins and the other is told.
    """

    def add_version(self, skill: Skill, *, expected_head: int | None, if_new: bool = False) -> None:
        """Add a version, numbered one above the latest, and make it the head unless the name is pinned.

        Its state is its first one: `proposed`, or what a first legal move from there gave it.

        Args:
            skill: the new version.
            expected_head: head the writer saw, None when the name must be new.
            if_new: whether the writer saw no version of any name with this workflow, and adds it
                only while that is so.

        Raises:
            VersionConflict: the head is another one, the number is taken or leaves a gap, or the
                workflow is there meanwhile.
            IllegalTransition: a skill cannot begin in that state.
        """
        ...

    def head(self, name: str) -> Skill | None:
        """Return the head version in its present state, None when there is no such name."""
        ...

    def version(self, name: str, version: int) -> Skill | None:
        """Return one version in its present state, or None."""
        ...

    def versions(self, name: str) -> list[Skill]:
        """Return all versions, oldest first; empty when there is no such name."""
        ...

    def heads(self) -> list[Skill]:
        """Return the head of every name, ordered by name, whatever its state."""
        ...

    def move(
        self,
        name: str,
        version: int,
        to: SkillState,
        *,
        reason: str,
        by: Actor,
        at: float,
        words: SkillWords | None = None,
    ) -> Skill:
        """Move one version to another state, log it, and return the version as it is now.

        Args:
            words: what stands beside its body from now on; only with the move of what was proposed
                into `active`. None: what is there.

        Raises:
            UnknownSkill: no such version.
            IllegalTransition: the table has no such move from its present state, or the name is
                pinned and the system would do more than follow a changed tool, or its words may
                no longer change.
        """
        ...

    def changes(self, name: str) -> list[StateChange]:
        """Return the log of state changes of all versions of a name, oldest first."""
        ...

    def set_head(self, name: str, version: int, *, expected_head: int) -> None:
        """Make another version the head; the states of both stay what they are.

        Raises:
            UnknownSkill: no such version.
            VersionConflict: the head is another one than expected.
            IllegalTransition: the name is pinned to another version.
        """
        ...

    def pin(self, name: str, version: int | None) -> None:
        """Make a version the head and keep it there, or let go of the name with None.

        Raises:
            UnknownSkill: no such version.
        """
        ...

    def pinned(self, name: str) -> int | None:
        """Return the version a name is pinned to, None when it is free."""
        ...

    def delete(self, name: str) -> None:
        """Remove a name for good: its versions with their tests, its log and its uses. Traces stay.

        Raises:
            UnknownSkill: no such name.
            SkillInUse: a version of another skill calls it; nothing changed.
        """
        ...

    def by_content_hash(self, content_hash: str) -> Skill | None:
        """Return the version added last with this workflow, whatever its state, or None."""
        ...

    def record_use(self, use: Use) -> None:
        """Count one use of a version.

        Raises:
            UnknownSkill: no such version.
        """
        ...

    def use_counts(self, name: str) -> UseCounts:
        """Return the counts over all versions of a name."""
        ...

    def uses(self, name: str, limit: int) -> list[Use]:
        """Return the newest uses of all versions of a name, the newest first."""
        ...

    def record_episode(self, episode: TaskEpisode) -> None:
        """Keep what became of a task.

        Raises:
            UnknownSkill: it names no version that is there.
        """
        ...

    def episodes(self, limit: int, skill: str | None = None) -> list[TaskEpisode]:
        """Return the newest episodes, the newest first.

        Args:
            limit: most of them.
            skill: whose; None: of all, those without a skill too.
        """
        ...

    def unguided(self, limit: int, until: float) -> list[TaskEpisode]:
        """Return the newest episodes without any skill up to a moment in Unix seconds, the newest first."""
        ...

    def count_trials(self, name: str, version: int) -> int:
        """Return how many trials a version has had, those that the world stopped included."""
        ...

    def record_audit(self, audit: Audit) -> None:
        """Keep what an audit found.

        Raises:
            UnknownSkill: no such version.
        """
        ...

    def audits(self, name: str, limit: int) -> list[Audit]:
        """Return the newest audits of all versions of a name, the newest first."""
        ...

    def sizes(self) -> StoreSizes:
        """Return how much is kept."""
        ...

    def drop_traces(self, before: float, *, recorded: bool, keep: Collection[str] = ()) -> int:
        """Forget the traces that began earlier, and return how many there were.

        Args:
            before: Unix seconds.
            recorded: whether the calls that clients made by hand are meant, or the runs.
            keep: ids of traces, and names of recordings, that stay.
        """
        ...

    def published(self) -> tuple[str, ...]:
        """Return the names in the published set, ordered."""
        ...

    def publish(self, names: Iterable[str]) -> None:
        """Replace the published set.

        Raises:
            UnknownSkill: a name is not there; nothing changed.
        """
        ...

    def revision(self) -> int:
        """Return a number that grows with each change of versions, heads, states or published set.

        Cheap, and the same for every process that uses the store: made for polling.
        """
        ...

    def add_trace(self, trace: Trace) -> None:
        """Keep a trace.

        Raises:
            ValueError: a trace with this id is there.
        """
        ...

    def trace(self, trace_id: str) -> Trace | None:
        """Return a trace with the feedback on it among its verifications, or None."""
        ...

    def traces(self, limit: int) -> list[Trace]:
        """Return the newest traces, the newest first, each with its feedback."""
        ...

    def recording(self, name: str) -> list[Trace]:
        """Return the traces of one conversation, the oldest first; empty when there is none."""
        ...

    def recordings(self, limit: int) -> list[RecordingSummary]:
        """Return the conversations that calls were kept of, the one with the newest call first."""
        ...

    def drop_recording(self, name: str) -> int:
        """Forget the traces of one conversation, and return how many there were."""
        ...

    def add_feedback(self, trace: str, passed: bool, detail: str, at: float) -> None:
        """Keep what somebody said later of a run.

        Raises:
            LookupError: no trace with this id is kept.
        """
        ...

    def save_snapshot(self, snapshot: Snapshot, at: float, *, empty: Iterable[str] = ()) -> None:
        """Keep the tools of the servers in the snapshot; other servers keep what they had.

        Args:
            snapshot: tools of any number of servers.
            at: Unix seconds.
            empty: servers that list no tools any more.
        """
        ...

    def snapshot(self) -> Snapshot:
        """Return the tools last saved of every server, ordered by server; empty when there are none."""
        ...

    def check_contracts(self, contracts: Mapping[ToolId, str]) -> None:
        """Keep the contract under which the effect class of each tool was last looked at."""
        ...

    def checked_contracts(self) -> dict[ToolId, str]:
        """Return the contract under which each tool's effect class was last looked at."""
        ...

    def save_eras(self, eras: Mapping[str, KnownEra], at: float) -> None:
        """Keep which protocol era servers speak; other servers keep what they had."""
        ...

    def eras(self) -> dict[str, KnownEra]:
        """Return the era last saved of every server, by its name."""
        ...

    def jobs(self, principal: str) -> JobStore:
        """Return the jobs of one principal."""
        ...

    def approvals(self, principal: str) -> ApprovalStore:
        """Return the remembered approvals of one principal."""
        ...

    def experiences(self, principal: str) -> ExperienceStore:
        """Return the experience of one principal."""
        ...

    def drives(self, principal: str) -> DriveStore:
        """Return the drives of one principal that are kept for training."""
        ...

    def close(self) -> None:
        """Let go of the store. Closing twice is allowed; anything else then raises RuntimeError."""
        ...


def check_next_version(skill: Skill, *, expected_head: int | None, head: int | None, latest: int) -> None:
    """Check that a version follows what is stored.

    Args:
        skill: the version to be added.
        expected_head: head the writer saw.
        head: head that is there, None when there is no such name.
        latest: highest number that is there, 0 when there is none.

    Raises:
        VersionConflict: somebody else was there first, or the number leaves a gap.
    """
    if head != expected_head:
        there = "there is no such skill" if head is None else f"its head is version {head}"
        wanted = "to be new" if expected_head is None else f"to have head {expected_head}"
        raise VersionConflict(f"{skill.name} was expected {wanted}, but {there}")
    if skill.version != latest + 1:
        raise VersionConflict(f"{skill.name}: the next version is {latest + 1}, not {skill.version}")


def check_pin(name: str, version: int, pinned: int | None) -> None:
    """Check that a pin lets a version become the head.

    Raises:
        IllegalTransition: the name is pinned to another one.
    """
    if pinned not in (None, version):
        raise IllegalTransition(
            f"{name} is pinned to version {pinned}: `skillbank skills unpin {name}` first"
        )


def check_not_called(name: str, others: Iterable[Skill]) -> None:
    """Check that no version of another skill that may still run calls a name.

    Raises:
        SkillInUse: naming who does.
    """
    callers = sorted(
        f"{other.name}@{other.version}"
        for other in others
        if other.name != name
        and other.state not in ("retired", "rejected")
        and any(node.skill is not None and node.skill.name == name for node in other.workflow.nodes)
    )
    if callers:
        raise SkillInUse(f"{name} is called by {', '.join(callers)}: retire or delete that first")


def feedback_of(passed: bool, detail: str) -> Verification:
    """Return feedback as the verification that readers of a trace see."""
    return Verification(by="feedback", passed=passed, detail=detail)


class MemoryStore:
    """A store that lives as long as its process, for tests, demonstrations and dry runs."""

    def __init__(self, *, traces_kept: int = TRACES_KEPT) -> None:
        self._traces_kept = traces_kept
        self._lock = RLock()
        self._closed = False
        self._versions: dict[str, list[Skill]] = {}
        self._added: list[Skill] = []
        self._heads: dict[str, int] = {}
        self._pinned: dict[str, int] = {}
        self._changes: defaultdict[str, list[StateChange]] = defaultdict(list)
        self._uses: defaultdict[str, list[Use]] = defaultdict(list)
        self._episodes: list[TaskEpisode] = []
        self._audits: list[Audit] = []
        self._published: tuple[str, ...] = ()
        self._revision = 0
        self._traces: dict[str, Trace] = {}
        self._tools: dict[str, tuple[Tool, ...]] = {}
        self._contracts: dict[ToolId, str] = {}
        self._eras: dict[str, KnownEra] = {}
        self._jobs: defaultdict[str, MemoryJobs] = defaultdict(MemoryJobs)
        self._approvals: defaultdict[str, MemoryApprovals] = defaultdict(MemoryApprovals)
        self._experiences: defaultdict[str, MemoryExperiences] = defaultdict(MemoryExperiences)
        self._drives: defaultdict[str, MemoryDrives] = defaultdict(MemoryDrives)

    def add_version(self, skill: Skill, *, expected_head: int | None, if_new: bool = False) -> None:
        by = check_entry(skill)
        with self._open():
            there = self._versions.get(skill.name, [])
            head = self._heads.get(skill.name)
            check_next_version(skill, expected_head=expected_head, head=head, latest=len(there))
            if if_new and (twin := self.by_content_hash(skill.content_hash)) is not None:
                raise VersionConflict(f"{twin.name}@{twin.version} has the workflow of {skill.name}")
            self._versions[skill.name] = [*there, skill]
            self._added.append(skill)
            self._heads[skill.name] = self._pinned.get(skill.name, skill.version)
            born = StateChange(skill.version, None, "proposed", by, "added", skill.created_at)
            self._changes[skill.name].append(born)
            if skill.state != "proposed":
                self._log(skill, "proposed", by, skill.created_at)
            self._revision += 1

    def head(self, name: str) -> Skill | None:
        with self._open():
            number = self._heads.get(name)
            return None if number is None else self._versions[name][number - 1]

    def version(self, name: str, version: int) -> Skill | None:
        with self._open():
            return next((s for s in self._versions.get(name, []) if s.version == version), None)

    def versions(self, name: str) -> list[Skill]:
        with self._open():
            return list(self._versions.get(name, []))

    def heads(self) -> list[Skill]:
        with self._open():
            return [self._versions[name][self._heads[name] - 1] for name in sorted(self._heads)]

    def move(
        self,
        name: str,
        version: int,
        to: SkillState,
        *,
        reason: str,
        by: Actor,
        at: float,
        words: SkillWords | None = None,
    ) -> Skill:
        with self._open():
            skill = self._known(name, version)
            check_transition(skill, to, by)
            check_pinned(skill, to, by, self._pinned.get(name))
            if words is not None:
                check_words(skill, to)
            moved = skill.worded(words).model_copy(update={"state": to, "reason": reason})
            self._versions[name][version - 1] = moved
            self._log(moved, skill.state, by, at)
            self._revision += 1
            return moved

    def changes(self, name: str) -> list[StateChange]:
        with self._open():
            return list(self._changes.get(name, []))

    def set_head(self, name: str, version: int, *, expected_head: int) -> None:
        with self._open():
            self._known(name, version)
            head = self._heads[name]
            if head != expected_head:
                raise VersionConflict(f"{name} was expected to have head {expected_head}; it is {head}")
            check_pin(name, version, self._pinned.get(name))
            self._heads[name] = version
            self._revision += 1

    def pin(self, name: str, version: int | None) -> None:
        with self._open():
            self._known(name, version or 1)
            self._pinned.pop(name, None)
            if version is not None:
                self._pinned[name] = self._heads[name] = version
            self._revision += 1

    def pinned(self, name: str) -> int | None:
        with self._open():
            return self._pinned.get(name)

    def delete(self, name: str) -> None:
        with self._open():
            self._known(name, 1)
            check_not_called(name, (s for versions in self._versions.values() for s in versions))
            for kept in (self._versions, self._heads, self._pinned, self._changes, self._uses):
                kept.pop(name, None)
            self._added = [skill for skill in self._added if skill.name != name]
            self._episodes = [episode for episode in self._episodes if episode.skill != name]
            self._audits = [audit for audit in self._audits if audit.skill != name]
            self._published = tuple(other for other in self._published if other != name)
            self._revision += 1

    def by_content_hash(self, content_hash: str) -> Skill | None:
        with self._open():
            found = next((s for s in reversed(self._added) if s.content_hash == content_hash), None)
            return None if found is None else self.version(found.name, found.version)

    def record_use(self, use: Use) -> None:
        with self._open():
            self._known(use.skill, use.version)
            self._uses[use.skill].append(use)

    def use_counts(self, name: str) -> UseCounts:
        with self._open():
            uses = self._uses.get(name, [])
        return UseCounts(len(uses), sum(u.succeeded for u in uses), sum(u.world_fault for u in uses))

    def uses(self, name: str, limit: int) -> list[Use]:
        with self._open():
            return list(reversed(self._uses.get(name, [])))[:limit]

    def record_episode(self, episode: TaskEpisode) -> None:
        with self._open():
            if episode.skill is not None:
                self._known(episode.skill, episode.version or 0)
            self._episodes = [*self._episodes, episode][-EPISODES_KEPT:]

    def episodes(self, limit: int, skill: str | None = None) -> list[TaskEpisode]:
        with self._open():
            newest = reversed(self._episodes)
            return [episode for episode in newest if skill is None or episode.skill == skill][:limit]

    def unguided(self, limit: int, until: float) -> list[TaskEpisode]:
        with self._open():
            newest = reversed(self._episodes)
            return [episode for episode in newest if episode.skill is None and episode.at <= until][:limit]

    def count_trials(self, name: str, version: int) -> int:
        with self._open():
            return sum((e.skill, e.version) == (name, version) and e.arm is not None for e in self._episodes)

    def record_audit(self, audit: Audit) -> None:
        with self._open():
            self._known(audit.skill, audit.version)
            self._audits.append(audit)

    def audits(self, name: str, limit: int) -> list[Audit]:
        with self._open():
            return [audit for audit in reversed(self._audits) if audit.skill == name][:limit]

    def sizes(self) -> StoreSizes:
        with self._open():
            recorded = sum(trace.recording is not None for trace in self._traces.values())
            return StoreSizes(
                skills=len(self._heads),
                versions=sum(map(len, self._versions.values())),
                uses=sum(map(len, self._uses.values())),
                traces=len(self._traces) - recorded,
                recorded_calls=recorded,
                episodes=len(self._episodes),
                audits=len(self._audits),
                bytes=0,
            )

    def drop_traces(self, before: float, *, recorded: bool, keep: Collection[str] = ()) -> int:
        with self._open():
            old = [
                trace.id
                for trace in self._traces.values()
                if trace.started_at < before
                and (trace.recording is not None) == recorded
                and not {trace.id, trace.recording}.intersection(keep)
            ]
            for trace_id in old:
                del self._traces[trace_id]
            return len(old)

    def published(self) -> tuple[str, ...]:
        with self._open():
            return self._published

    def publish(self, names: Iterable[str]) -> None:
        with self._open():
            wanted = tuple(sorted(set(names)))
            if unknown := [name for name in wanted if name not in self._heads]:
                raise UnknownSkill(f"no skill named {', '.join(unknown)}")
            if wanted != self._published:
                self._published = wanted
                self._revision += 1

    def revision(self) -> int:
        with self._open():
            return self._revision

    def add_trace(self, trace: Trace) -> None:
        with self._open():
            if trace.id in self._traces:
                raise ValueError(f"a trace with id {trace.id} is there")
            self._traces[trace.id] = trace
            while len(self._traces) > self._traces_kept:
                del self._traces[next(iter(self._traces))]

    def trace(self, trace_id: str) -> Trace | None:
        with self._open():
            return self._traces.get(trace_id)

    def traces(self, limit: int) -> list[Trace]:
        with self._open():
            return list(reversed(self._traces.values()))[:limit]

    def recording(self, name: str) -> list[Trace]:
        with self._open():
            return [trace for trace in self._traces.values() if trace.recording == name]

    def recordings(self, limit: int) -> list[RecordingSummary]:
        with self._open():
            newest = reversed(self._traces.values())
            names = list(dict.fromkeys(trace.recording for trace in newest if trace.recording is not None))
        return [_summary(name, self.recording(name)) for name in names[:limit]]

    def drop_recording(self, name: str) -> int:
        with self._open():
            dropped = [trace.id for trace in self._traces.values() if trace.recording == name]
            for trace_id in dropped:
                del self._traces[trace_id]
            return len(dropped)

    def add_feedback(self, trace: str, passed: bool, detail: str, at: float) -> None:  # noqa: ARG002
        with self._open():
            kept = self._traces.get(trace)
            if kept is None:
                raise LookupError(f"no trace {trace}")
            said = (*kept.verifications, feedback_of(passed, detail))
            self._traces[trace] = kept.model_copy(update={"verifications": said})

    def save_snapshot(self, snapshot: Snapshot, at: float, *, empty: Iterable[str] = ()) -> None:  # noqa: ARG002
        with self._open():
            for server in (*empty, *snapshot.servers):
                self._tools[server] = snapshot.of_server(server)

    def snapshot(self) -> Snapshot:
        with self._open():
            return Snapshot.of(*(tool for server in sorted(self._tools) for tool in self._tools[server]))

    def check_contracts(self, contracts: Mapping[ToolId, str]) -> None:
        with self._open():
            self._contracts.update(contracts)

    def checked_contracts(self) -> dict[ToolId, str]:
        with self._open():
            return dict(self._contracts)

    def save_eras(self, eras: Mapping[str, KnownEra], at: float) -> None:  # noqa: ARG002
        with self._open():
            self._eras.update(eras)

    def eras(self) -> dict[str, KnownEra]:
        with self._open():
            return dict(self._eras)

    def jobs(self, principal: str) -> MemoryJobs:
        with self._open():
            return self._jobs[principal]

    def approvals(self, principal: str) -> MemoryApprovals:
        with self._open():
            return self._approvals[principal]

    def experiences(self, principal: str) -> MemoryExperiences:
        with self._open():
            return self._experiences[principal]

    def drives(self, principal: str) -> MemoryDrives:
        with self._open():
            return self._drives[principal]

    def close(self) -> None:
        self._closed = True

    def _open(self) -> RLock:
        if self._closed:
            raise RuntimeError("the store is closed")
        return self._lock

    def _known(self, name: str, version: int) -> Skill:
        skill = self.version(name, version)
        if skill is None:
            raise UnknownSkill(f"no version {version} of a skill named {name}")
        return skill

    def _log(self, skill: Skill, before: SkillState, by: Actor, at: float) -> None:
        change = StateChange(skill.version, before, skill.state, by, skill.reason, at)
        self._changes[skill.name].append(change)


def _summary(name: str, traces: Sequence[Trace]) -> RecordingSummary:
    began = [trace.started_at for trace in traces]
    return RecordingSummary(name, len(traces), min(began), max(began))
