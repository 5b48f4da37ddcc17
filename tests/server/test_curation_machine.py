"""The whole lifecycle under curation as a state machine over a real store, with two handles on one file."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from server.curation.stepping import Watch, next_step
from skills_store.contrast import contrast_of, trials_of
from skills_store.episodes import Audit, TaskEpisode
from skills_store.errors import IllegalTransition
from skills_store.lifecycle import STATES, TRANSITIONS
from skills_store.sqlite import open_sqlite_store
from tests.skills_store.conftest import make_skill

NAME = "temperature"
ORDER = ("active", "context_only", "suppressed", "retired")


class Curation(RuleBasedStateMachine):
    """Two processes' views of one bank: whatever happens, moves are legal, logged, reasoned and single."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "store.db"
        self.stores = [open_sqlite_store(path), open_sqlite_store(path)]
        self.now = 100.0
        self.moves = 0
        self.states: dict[int, str] = {}
        self.episodes = self.audits = 0

    def tick(self):
        self.now += 1.0
        return self.now

    @initialize(origin=st.sampled_from(("system", "user")))
    def begin(self, origin):
        store = self.stores[0]
        store.add_version(make_skill(origin=origin, created_at=self.tick()), expected_head=None)
        store.move(NAME, 1, "active", reason="approved", by="person", at=self.tick())
        self.states[1] = "active"
        self.moves = 2

    def head(self, store):
        return store.head(NAME)

    def watch(self, store):
        skill = self.head(store)
        changes = [c for c in store.changes(NAME) if c.version == skill.version]
        since = changes[-1].at
        own = [e for e in store.episodes(999, NAME) if e.version == skill.version and e.at > since]
        audits = [a for a in store.audits(NAME, 99) if a.version == skill.version and a.at > since]
        return Watch(
            skill,
            contrast_of(trials_of(own)),
            tuple(audits),
            uses_since_audit=sum(e.arm == "guided" for e in own),
            is_held=skill.origin == "user" or store.pinned(NAME) is not None,
        )

    @rule(which=st.integers(0, 1), guided=st.booleans(), right=st.booleans(), times=st.integers(1, 6))
    def a_trial_happens(self, which, guided, right, times):
        store, skill = self.stores[which], self.head(self.stores[which])
        for _ in range(times):
            arm = "guided" if guided else "withheld"
            outcome = "right" if right else "wrong"
            store.record_episode(
                TaskEpisode(
                    "t", "direct", outcome, self.tick(), skill=NAME, version=skill.version, arm=arm, share=0.5
                )
            )
            self.episodes += 1

    @rule(which=st.integers(0, 1), passed=st.sampled_from((True, False, None)))
    def an_audit_happens(self, which, passed):
        store = self.stores[which]
        store.record_audit(Audit(NAME, self.head(store).version, "audit", passed, "why", self.tick()))
        self.audits += 1

    @rule(which=st.integers(0, 1))
    def the_due_step_is_taken(self, which):
        store = self.stores[which]
        watch = self.watch(store)
        step = next_step(watch)
        if step is None or step.to is None:
            return
        before = watch.skill.state
        assert not watch.is_held
        assert step.reason
        assert ORDER.index(step.to) == ORDER.index(before) + 1  # one step at a time
        store.move(NAME, watch.skill.version, step.to, reason=step.reason, by="system", at=self.tick())
        self.note(watch.skill.version, step.to)
        assert next_step(self.watch(self.stores[1 - which])) is None  # the other needs evidence of its own

    def note(self, version, state):
        self.moves += 1
        self.states[version] = state

    @rule(which=st.integers(0, 1), to=st.sampled_from(STATES), by=st.sampled_from(("person", "system")))
    def somebody_moves_it(self, which, to, by):
        store = self.stores[which]
        skill = self.head(store)
        legal = (skill.state, to, by) in TRANSITIONS
        try:
            store.move(NAME, skill.version, to, reason="tried", by=by, at=self.tick())
        except IllegalTransition:
            assert not legal or (by == "system" and (skill.origin == "user" or store.pinned(NAME)))
        else:
            assert legal
            self.note(skill.version, to)

    @precondition(lambda self: self.states)
    @rule(which=st.integers(0, 1), state=st.sampled_from(("proposed", "active", "context_only", "shadow")))
    def a_repaired_version_arrives(self, which, state):
        store = self.stores[which]
        head = self.head(store)
        number = len(store.versions(NAME)) + 1
        skill = make_skill(version=number, state=state, reason="repaired", content_hash=f"sha256:{number}")
        store.add_version(skill.model_copy(update={"created_at": self.tick()}), expected_head=head.version)
        self.moves += 1 + (state != "proposed")
        self.states[number] = state

    @rule(which=st.integers(0, 1), pinned=st.booleans())
    def a_person_pins_or_lets_go(self, which, pinned):
        store = self.stores[which]
        store.pin(NAME, self.head(store).version if pinned else None)

    @invariant()
    def both_see_the_same_and_nothing_is_lost(self):
        if not self.states:
            return
        one, two = self.stores
        assert one.heads() == two.heads()
        assert one.changes(NAME) == two.changes(NAME)
        assert {skill.version: skill.state for skill in two.versions(NAME)} == self.states
        assert len(one.changes(NAME)) == self.moves
        assert all(change.reason for change in one.changes(NAME))
        assert (two.sizes().episodes, two.sizes().audits) == (self.episodes, self.audits)

    @invariant()
    def the_log_is_a_path_of_legal_moves(self):
        if not self.states:
            return
        at: dict[int, str | None] = {}
        for change in self.stores[0].changes(NAME):
            assert at.get(change.version) == change.before
            if change.before is not None:
                assert (change.before, change.after, change.by) in TRANSITIONS
            at[change.version] = change.after

    def teardown(self):
        for store in self.stores:
            store.close()
        self.folder.cleanup()


TestCuration = Curation.TestCase
TestCuration.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
