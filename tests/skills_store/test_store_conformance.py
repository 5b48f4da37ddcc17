"""What every store promises (`skills_store.store.Store`), run on each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from catalog.effects import Effect
from catalog.era import KnownEra
from catalog.tools import Annotations, Snapshot, Tool, ToolId
from skills_store.episodes import Audit, TaskEpisode
from skills_store.errors import IllegalTransition, SkillInUse, UnknownSkill, VersionConflict
from skills_store.lifecycle import STATES, StateChange
from skills_store.skill import (
    AdmissionCheck,
    AdmissionVerdict,
    Guidance,
    Pin,
    Provenance,
    RecordedCall,
    ReplayTest,
    SkillWords,
)
from skills_store.sqlite import SqliteStore, open_sqlite_store
from skills_store.sqlite_file import open_sqlite_file
from skills_store.store import MemoryStore, Store
from skills_store.trace import Coercion, Verification
from skills_store.utility import Use, UseCounts
from skills_store.workflow.faults import ToolError
from skills_store.workflow.model import Node

NOW = ToolId("weather", "current")


@pytest.fixture(params=["memory", "sqlite"])
def make_store(request, tmp_path: Path) -> Iterator[Callable[..., Store]]:
    opened: list[Store] = []

    def make(**options: int) -> Store:
        if request.param == "memory":
            store: Store = MemoryStore(**options)
        else:
            store = SqliteStore(open_sqlite_file(tmp_path / f"{len(opened)}.db"), **options)
        opened.append(store)
        return store

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def store(make_store) -> Store:
    return make_store()


def tool(server: str, name: str, **changes) -> Tool:
    return Tool(ToolId(server, name), {"type": "object"}, **changes)


class TestVersions:
    def test_a_new_name_is_there_as_it_was_given(self, store, a_skill):
        skill = a_skill(
            origin="user",
            reason="written by hand",
            tests=(
                ReplayTest(
                    name="original",
                    inputs={"city": "Oslo"},
                    outputs={"celsius": 4.0, "odd": "\ud800", "exact": 2**70, "nested": [None, {"": True}]},
                    volatile=("/celsius",),
                    recorded=(RecordedCall(node="now", tool=NOW, arguments={}, output={"temp_c": 4.0}),),
                ),
            ),
            pins=(Pin(tool=NOW, contract_hash="sha256:pin", effect=Effect.READ),),
            guidance=Guidance(when_to_use="to know the weather", pitfalls=("cities only",)),
            provenance=Provenance(
                task="weather in Oslo", verifications=(Verification(by="judge", passed=True),)
            ),
            verdict=AdmissionVerdict(
                state="proposed",
                reason="",
                checks=(AdmissionCheck(name="replay", gate="function", passed=True, detail="", inputs=[1]),),
            ),
            tags=("weather",),
        )
        store.add_version(skill, expected_head=None)
        assert store.head("temperature") == skill
        assert store.version("temperature", 1) == skill
        assert store.versions("temperature") == [skill]
        assert store.heads() == [skill]

    def test_what_is_not_there_is_none_or_empty(self, store, a_skill):
        store.add_version(a_skill(), expected_head=None)
        assert store.head("other") is None
        assert store.version("temperature", 2) is None
        assert store.version("temperature", 0) is None
        assert store.versions("other") == []
        assert store.by_content_hash("sha256:other") is None
        assert store.changes("other") == []
        assert store.use_counts("other") == UseCounts()

    def test_an_empty_store_is_empty(self, store):
        assert (store.heads(), store.published(), store.traces(5), len(store.snapshot())) == ([], (), [], 0)

    def test_a_later_version_becomes_head_and_leaves_the_earlier_alone(self, store, a_skill):
        first, second = a_skill(), a_skill(version=2, description="better", content_hash="sha256:b")
        store.add_version(first, expected_head=None)
        store.add_version(second, expected_head=1)
        assert store.head("temperature") == second
        assert store.versions("temperature") == [first, second]

    @pytest.mark.parametrize(
        ("version", "expected_head", "message"),
        [
            pytest.param(2, None, "expected to be new, but its head is version 1", id="not-new"),
            pytest.param(2, 7, "expected to have head 7, but its head is version 1", id="head-moved"),
            pytest.param(1, 1, "the next version is 2, not 1", id="number-taken"),
            pytest.param(3, 1, "the next version is 2, not 3", id="gap"),
        ],
    )
    def test_a_version_that_does_not_follow_is_refused(self, store, a_skill, version, expected_head, message):
        store.add_version(a_skill(), expected_head=None)
        before = store.revision()
        with pytest.raises(VersionConflict, match=message):
            store.add_version(a_skill(version=version), expected_head=expected_head)
        assert [skill.version for skill in store.versions("temperature")] == [1]
        assert store.revision() == before

    def test_a_name_that_was_expected_to_be_there_is_a_conflict(self, store, a_skill):
        with pytest.raises(VersionConflict, match="but there is no such skill"):
            store.add_version(a_skill(), expected_head=1)

    def test_a_state_a_skill_cannot_begin_in_is_refused(self, store, a_skill):
        with pytest.raises(IllegalTransition):
            store.add_version(a_skill(state="stale"), expected_head=None)
        assert store.heads() == []

    def test_heads_are_ordered_by_name(self, store, a_skill):
        for name in ("wind", "air", "rain_2", "rain"):
            store.add_version(a_skill(name=name), expected_head=None)
        assert [skill.name for skill in store.heads()] == ["air", "rain", "rain_2", "wind"]

    def test_a_workflow_is_found_by_its_hash_the_last_added_first(self, store, a_skill):
        store.add_version(a_skill(name="wind"), expected_head=None)
        store.add_version(a_skill(name="air"), expected_head=None)
        store.add_version(a_skill(name="rain", content_hash="sha256:other"), expected_head=None)
        store.move("air", 1, "rejected", reason="no", by="person", at=1.0)
        found = store.by_content_hash("sha256:content")
        assert (found.name, found.state) == ("air", "rejected")

    def test_rollback_moves_the_head_and_the_next_version_still_counts_up(self, store, a_skill):
        store.add_version(a_skill(), expected_head=None)
        store.add_version(a_skill(version=2), expected_head=1)
        store.set_head("temperature", 1, expected_head=2)
        assert store.head("temperature").version == 1
        with pytest.raises(VersionConflict):
            store.add_version(a_skill(version=2), expected_head=1)
        store.add_version(a_skill(version=3), expected_head=1)
        assert store.head("temperature").version == 3

    def test_rollback_refuses_a_moved_head_and_a_version_that_is_not_there(self, store, a_skill):
        store.add_version(a_skill(), expected_head=None)
        store.add_version(a_skill(version=2), expected_head=1)
        with pytest.raises(VersionConflict, match="expected to have head 1; it is 2"):
            store.set_head("temperature", 1, expected_head=1)
        with pytest.raises(UnknownSkill, match="no version 3 of a skill named temperature"):
            store.set_head("temperature", 3, expected_head=2)
        assert store.head("temperature").version == 2


class TestStates:
    def test_a_move_is_returned_kept_and_logged(self, store, a_skill):
        store.add_version(a_skill(), expected_head=None)
        moved = store.move("temperature", 1, "active", reason="approved", by="person", at=200.0)
        assert moved == a_skill(state="active", reason="approved")
        assert store.head("temperature") == moved
        assert store.changes("temperature") == [
            StateChange(1, None, "proposed", "system", "added", 100.0),
            StateChange(1, "proposed", "active", "person", "approved", 200.0),
        ]

    def test_a_version_added_active_was_proposed_first(self, store, a_skill):
        store.add_version(a_skill(state="active", reason="all gates passed"), expected_head=None)
        assert store.changes("temperature") == [
            StateChange(1, None, "proposed", "system", "added", 100.0),
            StateChange(1, "proposed", "active", "system", "all gates passed", 100.0),
        ]

    def test_versions_move_apart(self, store, a_skill):
        store.add_version(a_skill(), expected_head=None)
        store.add_version(a_skill(version=2), expected_head=1)
        store.move("temperature", 1, "retired", reason="old", by="system", at=1.0)
        assert [skill.state for skill in store.versions("temperature")] == ["retired", "proposed"]

    def test_what_becomes_active_may_be_put_in_other_words_once(self, store, a_skill):
        store.add_version(a_skill(), expected_head=None)
        words = SkillWords(
            title="Warmth",
            description="Tells the temperature.",
            guidance=Guidance(when_to_use="For weather."),
            worded_by="a-model",
        )
        moved = store.move("temperature", 1, "active", reason="ok", by="system", at=1.0, words=words)
        assert store.head("temperature") == store.version("temperature", 1) == moved
        assert (moved.title, moved.description, moved.provenance.worded_by) == (
            "Warmth",
            "Tells the temperature.",
            "a-model",
        )
        assert moved.model_copy(update={"guidance": Guidance()}) == a_skill(
            state="active",
            reason="ok",
            title="Warmth",
            description="Tells the temperature.",
            provenance=a_skill().provenance.model_copy(update={"worded_by": "a-model"}),
        )
        store.move("temperature", 1, "stale", reason="", by="system", at=2.0)
        with pytest.raises(IllegalTransition, match="its words are settled"):
            store.move("temperature", 1, "active", reason="", by="system", at=3.0, words=words)
        assert store.head("temperature").state == "stale"

    def test_a_persons_words_stay(self, store, a_skill):
        store.add_version(a_skill(origin="user"), expected_head=None)
        words = SkillWords(worded_by="a-model")
        with pytest.raises(IllegalTransition, match="written by a person: its words stay"):
            store.move("temperature", 1, "active", reason="", by="person", at=1.0, words=words)
        assert store.head("temperature") == a_skill(origin="user")

    def test_an_illegal_move_changes_nothing(self, store, a_skill):
        store.add_version(a_skill(), expected_head=None)
        before = store.revision()
        with pytest.raises(IllegalTransition):
            store.move("temperature", 1, "stale", reason="", by="system", at=1.0)
        assert (store.head("temperature").state, len(store.changes("temperature"))) == ("proposed", 1)
        assert store.revision() == before

    def test_an_unknown_version_cannot_move(self, store):
        with pytest.raises(UnknownSkill):
            store.move("temperature", 1, "active", reason="", by="person", at=1.0)


class TestPins:
    def test_a_pinned_version_stays_the_head_until_it_is_let_go(self, store, a_skill):
        for number in (1, 2):
            store.add_version(a_skill(version=number), expected_head=number - 1 or None)
        store.pin("temperature", 1)
        store.add_version(a_skill(version=3), expected_head=1)
        assert (store.pinned("temperature"), store.head("temperature").version) == (1, 1)
        with pytest.raises(IllegalTransition, match="pinned to version 1: `skillbank skills unpin"):
            store.set_head("temperature", 3, expected_head=1)
        store.pin("temperature", None)
        assert (store.pinned("temperature"), store.head("temperature").version) == (None, 1)
        store.set_head("temperature", 3, expected_head=1)
        assert store.head("temperature").version == 3

    def test_the_system_moves_what_is_pinned_only_after_a_changed_tool(self, store, a_skill):
        store.add_version(a_skill(state="active"), expected_head=None)
        store.pin("temperature", 1)
        for state in ("context_only", "suppressed", "retired"):
            with pytest.raises(IllegalTransition, match="pinned to version 1: only a person moves it"):
                store.move("temperature", 1, state, reason="", by="system", at=1.0)
        assert store.move("temperature", 1, "stale", reason="", by="system", at=1.0).state == "stale"
        assert store.move("temperature", 1, "active", reason="", by="system", at=1.0).state == "active"
        assert store.move("temperature", 1, "retired", reason="", by="person", at=1.0).state == "retired"

    def test_only_what_is_there_can_be_pinned(self, store, a_skill):
        store.add_version(a_skill(), expected_head=None)
        for name, version in (("temperature", 2), ("other", 1), ("other", None)):
            with pytest.raises(UnknownSkill):
                store.pin(name, version)
        assert (store.pinned("temperature"), store.pinned("other")) == (None, None)


class TestDeleting:
    def test_takes_versions_log_uses_and_pin_and_leaves_the_rest(self, store, a_skill, a_trace):
        for name in ("temperature", "wind"):
            store.add_version(a_skill(name=name, content_hash=f"sha256:{name}"), expected_head=None)
            store.record_use(Use(name, 1, "call", succeeded=True, world_fault=False, at=1.0, trace="t1"))
        store.add_version(a_skill(version=2), expected_head=1)
        store.add_trace(a_trace())
        store.publish(["temperature", "wind"])
        store.pin("temperature", 1)
        before = store.revision()
        store.delete("temperature")
        assert store.revision() > before
        assert [skill.name for skill in store.heads()] == ["wind"]
        assert (store.versions("temperature"), store.changes("temperature")) == ([], [])
        assert (store.uses("temperature", 5), store.pinned("temperature")) == ([], None)
        assert store.by_content_hash("sha256:temperature") is None
        assert (store.published(), store.use_counts("wind").uses) == (("wind",), 1)
        assert store.trace("t1") is not None
        store.add_version(a_skill(), expected_head=None)
        assert (store.head("temperature").version, store.use_counts("temperature").uses) == (1, 0)

    def test_of_what_another_skill_calls_is_refused_until_that_is_retired(self, store, a_skill):
        store.add_version(a_skill(), expected_head=None)
        calling = a_skill().workflow.model_copy(
            update={
                "nodes": (
                    Node.model_validate(
                        {"id": "inner", "skill": {"name": "temperature", "version": 1}, "arguments": {}}
                    ),
                )
            }
        )
        store.add_version(a_skill(name="outer", workflow=calling), expected_head=None)
        with pytest.raises(SkillInUse, match="temperature is called by outer@1"):
            store.delete("temperature")
        assert store.head("temperature") is not None
        store.move("outer", 1, "retired", reason="", by="person", at=1.0)
        store.delete("temperature")
        assert store.head("temperature") is None

    def test_of_what_is_not_there_is_refused(self, store):
        with pytest.raises(UnknownSkill):
            store.delete("temperature")


def test_a_workflow_that_came_meanwhile_is_not_added_as_new(store, a_skill):
    store.add_version(a_skill(), expected_head=None, if_new=True)
    with pytest.raises(VersionConflict, match="temperature@1 has the workflow of other"):
        store.add_version(a_skill(name="other"), expected_head=None, if_new=True)
    store.add_version(a_skill(name="third"), expected_head=None)
    assert [skill.name for skill in store.heads()] == ["temperature", "third"]


class TestUses:
    def test_the_newest_come_first(self, store, a_skill):
        store.add_version(a_skill(), expected_head=None)
        uses = [
            Use("temperature", 1, "direct", succeeded=True, world_fault=False, at=1.0, trace="a"),
            Use("temperature", 1, "call", succeeded=False, world_fault=True, at=2.0),
        ]
        for use in uses:
            store.record_use(use)
        assert store.uses("temperature", 5) == uses[::-1]
        assert store.uses("temperature", 1) == uses[1:]
        assert store.uses("other", 5) == []

    def test_uses_of_all_versions_are_counted_by_name(self, store, a_skill):
        store.add_version(a_skill(), expected_head=None)
        store.add_version(a_skill(version=2), expected_head=1)
        store.add_version(a_skill(name="wind"), expected_head=None)
        store.record_use(Use("temperature", 1, "direct", succeeded=True, world_fault=False, at=1.0))
        store.record_use(Use("temperature", 2, "call", succeeded=False, world_fault=True, at=2.0))
        store.record_use(
            Use("temperature", 2, "seeded", succeeded=False, world_fault=False, at=3.0, trace="t")
        )
        store.record_use(Use("wind", 1, "call", succeeded=True, world_fault=False, at=4.0))
        assert store.use_counts("temperature") == UseCounts(uses=3, successes=1, world_faults=1)
        assert store.uses("temperature", 2) == [
            Use("temperature", 2, "seeded", succeeded=False, world_fault=False, at=3.0, trace="t"),
            Use("temperature", 2, "call", succeeded=False, world_fault=True, at=2.0),
        ]
        assert store.uses("nobody", 5) == []

    def test_a_use_of_what_is_not_there_is_refused(self, store):
        with pytest.raises(UnknownSkill):
            store.record_use(Use("temperature", 1, "call", succeeded=True, world_fault=False, at=1.0))


class TestPublishing:
    def test_the_published_set_is_replaced_and_ordered(self, store, a_skill):
        for name in ("wind", "air", "rain"):
            store.add_version(a_skill(name=name), expected_head=None)
        store.publish(["wind", "air", "wind"])
        assert store.published() == ("air", "wind")
        store.publish(["rain"])
        assert store.published() == ("rain",)

    def test_an_unknown_name_leaves_the_set_as_it_was(self, store, a_skill):
        store.add_version(a_skill(), expected_head=None)
        store.publish(["temperature"])
        with pytest.raises(UnknownSkill, match="no skill named wind"):
            store.publish(["wind", "temperature"])
        assert store.published() == ("temperature",)

    def test_the_revision_grows_with_what_clients_see_and_with_nothing_else(self, store, a_skill, a_trace):
        seen = [store.revision()]

        def grew() -> bool:
            seen.append(store.revision())
            return seen[-1] > seen[-2]

        store.add_version(a_skill(), expected_head=None)
        assert grew()
        store.add_version(a_skill(version=2), expected_head=1)
        assert grew()
        store.set_head("temperature", 1, expected_head=2)
        assert grew()
        store.move("temperature", 1, "active", reason="", by="person", at=1.0)
        assert grew()
        store.publish(["temperature"])
        assert grew()
        store.publish(["temperature"])
        store.add_trace(a_trace())
        store.record_use(Use("temperature", 1, "call", succeeded=True, world_fault=False, at=1.0))
        store.save_snapshot(Snapshot.of(tool("weather", "current")), 1.0)
        assert not grew()


class TestTraces:
    def test_a_trace_is_there_as_it_was_given(self, store, a_trace):
        fault = ToolError(message="no such city", node="now", tool=NOW)
        step = (
            a_trace()
            .steps[0]
            .model_copy(
                update={
                    "outcome": "failed",
                    "fault": fault,
                    "content": [{"type": "text", "text": "\udfff"}],
                    "coercions": (Coercion(pointer="/n", before="1", after=1),),
                }
            )
        )
        trace = a_trace(steps=(step,), outputs=None, status="failed", faults=(fault,), task="weather")
        store.add_trace(trace)
        assert store.trace("t1") == trace
        assert store.trace("t2") is None

    def test_an_id_is_taken_once(self, store, a_trace):
        store.add_trace(a_trace())
        with pytest.raises(ValueError, match="a trace with id t1 is there"):
            store.add_trace(a_trace(status="failed"))
        assert store.trace("t1").status == "succeeded"

    def test_the_newest_traces_come_first(self, store, a_trace):
        for number in range(4):
            store.add_trace(a_trace(id=f"t{number}"))
        assert [trace.id for trace in store.traces(3)] == ["t3", "t2", "t1"]

    def test_only_the_newest_are_kept(self, make_store, a_trace):
        store = make_store(traces_kept=3)
        for number in range(5):
            store.add_trace(a_trace(id=f"t{number}"))
            store.add_feedback(f"t{number}", True, "fine", 1.0)
        assert [trace.id for trace in store.traces(10)] == ["t4", "t3", "t2"]
        assert store.trace("t1") is None

    def test_feedback_joins_the_verifications_of_its_trace(self, store, a_trace):
        checked = Verification(by="assertion", passed=True)
        store.add_trace(a_trace(verifications=(checked,)))
        store.add_trace(a_trace(id="t2"))
        store.add_feedback("t1", True, "good", 5.0)
        store.add_feedback("t1", False, "wrong city after all", 6.0)
        wanted = (
            checked,
            Verification(by="feedback", passed=True, detail="good"),
            Verification(by="feedback", passed=False, detail="wrong city after all"),
        )
        assert store.trace("t1").verifications == wanted
        assert [trace.verifications for trace in store.traces(2)] == [(), wanted]

    def test_feedback_on_an_unknown_trace_is_refused(self, store):
        with pytest.raises(LookupError, match="no trace t9"):
            store.add_feedback("t9", True, "", 1.0)


class TestSnapshots:
    def test_a_server_in_the_snapshot_is_replaced_and_others_keep_their_tools(self, store):
        store.save_snapshot(Snapshot.of(tool("b", "one"), tool("b", "two"), tool("a", "x")), 1.0)
        store.save_snapshot(Snapshot.of(tool("b", "two", description="new"), tool("c", "y")), 2.0)
        assert [(str(t.id), t.description) for t in store.snapshot()] == [
            ("a/x", ""),
            ("b/two", "new"),
            ("c/y", ""),
        ]

    def test_a_tool_keeps_everything_that_its_hashes_see(self, store):
        full = tool(
            "weather",
            "current",
            output_schema={"type": "object", "properties": {"é": {"minimum": 1.0, "maximum": 2**60}}},
            title="Weather",
            description="Now \ud83c",
            annotations=Annotations(read_only=True, destructive=False),
        )
        store.save_snapshot(Snapshot.of(full, tool("weather", "bare")), 1.0)
        assert store.snapshot().get(full.id) == full
        assert store.snapshot().get(full.id).contract_hash == full.contract_hash
        assert store.snapshot().get(ToolId("weather", "bare")).output_schema is None

    def test_the_era_of_a_server_is_replaced_and_others_keep_theirs(self, store):
        assert store.eras() == {}
        store.save_eras({"a": KnownEra("legacy", "sha256:1"), "b": KnownEra("modern", "sha256:2")}, 1.0)
        store.save_eras({"a": KnownEra("modern", "sha256:3")}, 2.0)
        assert store.eras() == {"a": KnownEra("modern", "sha256:3"), "b": KnownEra("modern", "sha256:2")}


def test_threads_that_add_the_same_name_have_one_winner(store, a_skill):
    def add(_: int) -> bool:
        try:
            store.add_version(a_skill(), expected_head=None)
        except VersionConflict:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(add, range(8))) == [False] * 7 + [True]


def test_a_closed_store_may_be_closed_again_and_does_nothing_else(store):
    store.close()
    store.close()
    with pytest.raises(RuntimeError, match="the store is closed"):
        store.heads()


def test_both_stores_agree_on_every_history(tmp_path, a_skill):
    """The same calls on both give the same answers and the same refusals."""
    files = iter(range(1_000_000))

    class Histories(RuleBasedStateMachine):
        @initialize()
        def open(self) -> None:
            self.stores: list[Store] = [MemoryStore(), open_sqlite_store(tmp_path / f"{next(files)}.db")]

        def both(self, call: Callable[[Store], object]) -> None:
            answers: list[object] = []
            for each in self.stores:
                try:
                    answers.append(call(each))
                except (VersionConflict, IllegalTransition, UnknownSkill) as refusal:
                    answers.append((type(refusal), str(refusal)))
            assert answers[0] == answers[1]

        names = st.sampled_from(["air", "rain"])
        numbers = st.integers(1, 4)

        @rule(
            name=names,
            version=numbers,
            head=st.none() | numbers,
            state=st.sampled_from(["proposed", "active", "stale"]),
            origin=st.sampled_from(["system", "user"]),
        )
        def add(self, name, version, head, state, origin) -> None:
            skill = a_skill(name=name, version=version, state=state, origin=origin)
            self.both(lambda each: each.add_version(skill, expected_head=head))

        @rule(
            name=names, version=numbers, to=st.sampled_from(STATES), by=st.sampled_from(["person", "system"])
        )
        def move(self, name, version, to, by) -> None:
            self.both(lambda each: each.move(name, version, to, reason=f"to {to}", by=by, at=1.0))

        @rule(name=names, version=numbers, head=numbers)
        def roll_back(self, name, version, head) -> None:
            self.both(lambda each: each.set_head(name, version, expected_head=head))

        @rule(chosen=st.sets(names))
        def publish(self, chosen) -> None:
            self.both(lambda each: each.publish(chosen))

        @invariant()
        def looks_the_same(self) -> None:
            for name in ("air", "rain"):
                self.both(lambda each, name=name: (each.versions(name), each.head(name), each.changes(name)))
            self.both(lambda each: (each.heads(), each.published(), each.revision()))

        def teardown(self) -> None:
            for each in self.stores:
                each.close()

    run_state_machine_as_test(
        Histories, settings=settings(max_examples=25, stateful_step_count=25, deadline=None)
    )


class TestEpisodesAndAudits:
    def trial(self, at=1.0, **more):
        named = {"skill": "temperature", "version": 1, "arm": "guided", "share": 0.2}
        return TaskEpisode("weather in Oslo", "direct", "right", at, 5, 2, 0.25, "bound", **{**named, **more})

    def test_come_back_as_they_were_the_newest_first(self, store, a_skill):
        store.add_version(a_skill(), expected_head=None)
        first, second = self.trial(trace="t1"), self.trial(2.0, arm="withheld")
        planned = TaskEpisode("weather in Rome", "dynamic", "wrong", 3.0)
        for episode in (first, second, planned):
            store.record_episode(episode)
        assert store.episodes(10) == [planned, second, first]
        assert store.episodes(10, "temperature") == [second, first]
        assert store.episodes(1) == [planned]
        assert store.unguided(10, 3.0) == [planned]
        assert store.unguided(10, 2.9) == []

    def test_are_counted_as_trials_where_a_coin_was_thrown(self, store, a_skill):
        store.add_version(a_skill(), expected_head=None)
        store.record_episode(self.trial())
        store.record_episode(self.trial(arm=None, share=0.0))
        assert (store.count_trials("temperature", 1), store.count_trials("temperature", 2)) == (1, 0)

    def test_of_no_known_version_are_refused(self, store):
        with pytest.raises(UnknownSkill):
            store.record_episode(self.trial())
        with pytest.raises(UnknownSkill):
            store.record_audit(Audit("temperature", 1, "audit", True, "", 1.0))

    @pytest.mark.parametrize("passed", [True, False, None])
    def test_audits_come_back_the_newest_first(self, store, a_skill, passed):
        store.add_version(a_skill(), expected_head=None)
        one, two = (
            Audit("temperature", 1, "audit", passed, "why", 1.0),
            Audit("temperature", 1, "repair", True, "", 2.0),
        )
        store.record_audit(one)
        store.record_audit(two)
        assert store.audits("temperature", 5) == [two, one]
        assert store.audits("temperature", 1) == [two]
        assert store.audits("other", 5) == []

    def test_go_with_their_skill(self, store, a_skill):
        store.add_version(a_skill(), expected_head=None)
        store.record_episode(self.trial())
        store.record_audit(Audit("temperature", 1, "audit", True, "", 1.0))
        store.delete("temperature")
        assert (store.episodes(5), store.audits("temperature", 5)) == ([], [])

    def test_sizes_count_what_is_kept(self, store, a_skill, a_trace):
        store.add_version(a_skill(), expected_head=None)
        store.record_episode(self.trial())
        store.add_trace(a_trace(id="run"))
        store.add_trace(a_trace(id="call", recording="c"))
        sizes = store.sizes()
        assert (sizes.skills, sizes.versions, sizes.traces, sizes.recorded_calls) == (1, 1, 1, 1)
        assert (sizes.episodes, sizes.audits, sizes.uses) == (1, 0, 0)

    @pytest.mark.parametrize(
        ("recorded", "left"), [(False, {"new", "kept", "call"}), (True, {"old", "new", "kept"})]
    )
    def test_old_traces_are_dropped_but_for_those_that_are_kept(self, store, a_trace, recorded, left):
        store.add_trace(a_trace(id="old", started_at=1.0))
        store.add_trace(a_trace(id="kept", started_at=1.0))
        store.add_trace(a_trace(id="new", started_at=9.0))
        store.add_trace(a_trace(id="call", started_at=1.0, recording="c"))
        assert store.drop_traces(5.0, recorded=recorded, keep={"kept"}) == 1
        assert {trace.id for trace in store.traces(9)} == left

    def test_a_recording_is_kept_by_its_name(self, store, a_trace):
        store.add_trace(a_trace(id="call", started_at=1.0, recording="c"))
        assert store.drop_traces(5.0, recorded=True, keep={"c"}) == 0
