"""From a run to a skill: when one is made, in which state, under which name, and what is never kept."""

from __future__ import annotations

import pytest

from catalog.effects import Effect, Reset
from catalog.labels import Label, LabelTable
from catalog.testing import ScriptedServer, ScriptedTool
from server.execution.consent import GrantAll
from server.requests import RepairRequest, SolveRequest
from server.verification import Checks
from skills_store.sqlite import open_sqlite_store
from skills_store.store import MemoryStore

pytestmark = pytest.mark.anyio

HASH_A, HASH_B = "Compute the sha256 hash of the text 'hello'", "Compute the sha256 hash of the text 'other'"
DIGEST = Checks(("length(output.digest) == `64`",))
LEAKING = {
    "calculator": {"*": frozenset({Label.PRIVATE})},
    "hashes": {"sha256": frozenset({Label.PUBLIC_SINK})},
}


@pytest.fixture
def adding(node, document):
    return document(
        node("sum", "calculator/add", {"a": "$inputs.a", "b": "$inputs.b"}),
        outputs={"sum": "$nodes.sum.output#/result"},
        inputs={"a": {"type": "number"}, "b": {"type": "number"}},
    )


async def save(desk, document, name="adds", inputs=None, check="output.sum == `5`", **more):
    wanted = RepairRequest(
        inputs=inputs or {"a": 3, "b": 2}, checks=Checks((check,) if check else ()), save=name, **more
    )
    return await desk.bank.repair(document, wanted)


def failed(report):
    return [check.name for check in report.verdict.checks if not check.passed]


class TestAnExplicitSave:
    async def test_of_a_free_workflow_is_active_and_published(self, open_desk, adding):
        async with open_desk() as desk:
            report = await save(desk, adding)
            (listed,) = (await desk.bank.list_skills()).skills
            skill = await desk.bank.show_skill("adds")
            published = [entry.tool_name for entry in desk.bank.published()]
        assert (report.skill, report.skill_state, failed(report)) == ("adds", "active", [])
        assert (listed.name, listed.version, listed.state, listed.tool_name) == ("adds", 1, "active", "adds")
        assert published == ["adds"]
        assert skill.provenance.explicit_save
        assert [test.kind for test in skill.tests].count("varied") >= 2

    async def test_vouches_for_a_run_that_nothing_checked(self, open_desk, adding):
        async with open_desk() as desk:
            report = await save(desk, adding, check=None)
        assert (report.status, report.skill_state) == ("succeeded", "active")

    async def test_of_a_run_that_failed_keeps_nothing_and_says_why(self, open_desk, adding):
        async with open_desk() as desk:
            report = await save(desk, adding, check="output.sum == 'never'")
            assert desk.store.heads() == []
        assert (report.skill, report.skill_state) == (None, None)
        assert "the run is failed" in report.skill_reason

    async def test_of_the_same_workflow_again_names_what_is_kept(self, open_desk, adding):
        async with open_desk() as desk:
            await save(desk, adding)
            report = await save(desk, adding, name="adds_too")
            assert [skill.name for skill in desk.store.heads()] == ["adds"]
        assert report.skill == "adds"
        assert "adds is this workflow already" in report.skill_reason

    async def test_with_learning_off_is_still_kept(self, open_desk, adding):
        async with open_desk(learning="off") as desk:
            report = await save(desk, adding)
        assert (report.skill, report.skill_state) == ("adds", "proposed")

    async def test_of_an_unfit_name_is_made_fit(self, open_desk, adding):
        async with open_desk() as desk:
            report = await save(desk, adding, name="Adds Two-Numbers!")
        assert report.skill == "adds_two_numbers"


class TestLearningFromTasks:
    async def test_proposes_after_one_run_and_publishes_after_another_with_other_values(self, open_desk):
        async with open_desk() as desk:
            first = await desk.bank.solve(HASH_A, SolveRequest(checks=DIGEST))
            again = await desk.bank.solve(HASH_A, SolveRequest(checks=DIGEST))
            second = await desk.bank.solve(HASH_B, SolveRequest(checks=DIGEST))
            assert len(desk.store.heads()) == 1
        assert (first.skill_state, again.skill_state, second.skill_state) == (
            "proposed",
            "proposed",
            "active",
        )
        assert "1 of 2 distinct verified runs" in first.skill_reason
        assert first.skill == second.skill == "compute_sha256_hash_text"

    async def test_is_off_where_the_configuration_says_so(self, open_desk):
        async with open_desk(learning="off") as desk:
            report = await desk.bank.solve(HASH_A, SolveRequest(checks=DIGEST))
            assert desk.store.heads() == []
        assert (report.status, report.skill, report.skill_reason) == ("verified", None, "learning is off")

    async def test_waits_for_a_person_where_the_configuration_says_so(self, open_desk):
        async with open_desk(learning="propose") as desk:
            for task in (HASH_A, HASH_B):
                report = await desk.bank.solve(task, SolveRequest(checks=DIGEST))
        assert report.skill_state == "proposed"
        assert "a person approves" in report.skill_reason

    async def test_takes_nothing_from_a_run_that_nothing_checked(self, open_desk):
        async with open_desk() as desk:
            report = await desk.bank.solve(HASH_A, SolveRequest())
            assert desk.store.heads() == []
        assert report.status == "succeeded"
        assert "give an assertion" in report.skill_reason

    async def test_takes_nothing_where_the_task_states_a_value_no_input_carries(self, open_desk):
        task = "Compute the sha256 hash of the text 'hello' for the 17 people"
        async with open_desk() as desk:
            report = await desk.bank.solve(task, SolveRequest(checks=DIGEST))
        assert (report.status, report.skill) == ("verified", None)
        assert "not compilable: the task says 17" in report.skill_reason

    async def test_does_not_propose_again_what_a_person_refused(self, open_desk):
        async with open_desk() as desk:
            first = await desk.bank.solve(HASH_A, SolveRequest(checks=DIGEST))
            desk.store.move(first.skill, 1, "rejected", reason="not wanted", by="person", at=1.0)
            second = await desk.bank.solve(HASH_B, SolveRequest(checks=DIGEST))
            assert [(s.name, s.version, s.state) for s in desk.store.heads()] == [
                (first.skill, 1, "rejected")
            ]
        assert second.skill_state == "rejected"
        assert "not wanted" in second.skill_reason

    async def test_remembers_a_refused_version_beside_the_one_in_use(self, open_desk):
        async with open_desk(learning="propose") as desk:
            first = await desk.bank.solve(HASH_A, SolveRequest(checks=DIGEST))
            refused = desk.store.head(first.skill)
            other = refused.model_copy(update={"version": 2, "content_hash": "sha256:other"})
            desk.store.add_version(other, expected_head=1)
            await desk.bank.reject(first.skill, "not wanted", 1)
            again = await desk.bank.solve(HASH_B, SolveRequest(checks=DIGEST))
            assert len(desk.store.versions(first.skill)) == 2
        assert again.skill_state == "rejected"
        assert "is rejected: not wanted" in again.skill_reason


class TestVersions:
    async def test_another_workflow_under_the_name_is_the_next_version_and_passes_the_old_tests(
        self, open_desk, adding, node, document
    ):
        other = document(
            node("sum", "calculator/add", {"a": "$inputs.b", "b": "$inputs.a"}),
            outputs={"sum": "$nodes.sum.output#/result"},
            inputs={"a": {"type": "number"}, "b": {"type": "number"}},
        )
        async with open_desk() as desk:
            await save(desk, adding)
            report = await save(desk, other, inputs={"a": 4, "b": 1})
            head = await desk.bank.show_skill("adds")
            rolled = await desk.bank.rollback("adds", 1)
        assert (report.skill_state, head.version, head.provenance.parent_version) == ("active", 2, 1)
        assert "original of version 1" in [test.name for test in head.tests]
        assert (rolled.version, rolled.state) == (1, "active")

    async def test_a_version_that_fails_a_gate_does_not_hide_the_one_in_use(
        self, open_desk, adding, node, document
    ):
        wrong = document(
            node("product", "calculator/multiply", {"a": "$inputs.a", "b": "$inputs.b"}),
            outputs={"sum": "$nodes.product.output#/result"},
            inputs={"a": {"type": "number"}, "b": {"type": "number"}},
        )
        async with open_desk() as desk:
            await save(desk, adding)
            report = await save(desk, wrong, inputs={"a": 5, "b": 1})
            head = await desk.bank.show_skill("adds")
            answer = await desk.bank.call_skill("adds", {"a": 20, "b": 3})
            versions = desk.store.versions("adds")
        assert (report.skill, report.skill_state) == ("adds", "shadow")
        assert "replay of original of version 1 failed" in report.skill_reason
        assert (head.version, head.state, answer.outputs) == (1, "active", {"sum": 23})
        assert [(skill.version, skill.state) for skill in versions] == [(1, "active"), (2, "shadow")]


class TestGates:
    async def test_an_input_that_moves_nothing_makes_a_shadow(self, open_desk, node, document):
        idle = document(
            node("sum", "calculator/add", {"a": "$inputs.a", "b": 1}),
            node("more", "calculator/multiply", {"a": "$inputs.b", "b": 0}),
            node(
                "both",
                "calculator/add",
                {"a": "$nodes.sum.output#/result", "b": "$nodes.more.output#/result"},
            ),
            outputs={"sum": "$nodes.both.output#/result"},
            inputs={"a": {"type": "number"}, "b": {"type": "number"}},
        )
        async with open_desk() as desk:
            report = await save(desk, idle, inputs={"a": 4, "b": 7})
            assert desk.bank.published() == []
        assert report.skill_state == "shadow"
        assert "the input b moves no output" in report.skill_reason

    async def test_a_constant_answer_makes_a_shadow(self, open_desk, node, document):
        constant = document(
            node("n", "clock/ignore", {"text": "$inputs.text"}),
            outputs={"text": "$nodes.n.output#/text"},
            inputs={"text": {"type": "string"}},
        )
        async with open_desk() as desk:
            report = await save(
                desk, constant, inputs={"text": "good day"}, check="output.text == 'always this'"
            )
        assert report.skill_state == "shadow"
        assert "depends_on_inputs" in failed(report)

    async def test_a_write_waits_for_a_person_and_is_not_called_again(self, open_desk, node, document):
        saving = document(
            node("save", "notes/save_note", {"text": "$inputs.text"}),
            outputs={"text": "$nodes.save.output#/text"},
            inputs={"text": {"type": "string"}},
        )
        async with open_desk(consent=GrantAll()) as desk:
            report = await save(desk, saving, inputs={"text": "buy milk"}, check="output.text == 'buy milk'")
            tested = await desk.bank.test_skill("adds")
            assert desk.count("save_note") == 1
        assert report.skill_state == "proposed"
        assert "notes/save_note (write)" in report.skill_reason
        assert "a person approves" in report.skill_reason
        assert (tested.passed, [test.name for test in tested.tests]) == (True, ["original"])

    async def test_a_write_on_a_server_that_can_be_reset_is_replayed(self, open_desk, node, document):
        saving = document(
            node("save", "notes/save_note", {"text": "$inputs.text"}),
            outputs={"text": "$nodes.save.output#/text", "count": "$nodes.save.output#/count"},
            inputs={"text": {"type": "string"}},
        )
        async with open_desk(reset={"notes": Reset.PROCESS}) as desk:
            report = await save(desk, saving, inputs={"text": "buy milk"}, check="output.count == `1`")
        assert report.skill_state == "active", report.skill_reason
        assert failed(report) == []

    async def test_places_that_differ_between_equal_runs_are_volatile(self, open_desk, node, document):
        stamping = document(
            node("n", "clock/stamp", {"text": "$inputs.text"}),
            outputs={"stamp": "$nodes.n.output"},
            inputs={"text": {"type": "string"}},
        )
        shared = ServerWithOneCounter()
        async with open_desk({"clock": shared.server}, effects={"clock": {"*": Effect.READ}}) as desk:
            report = await save(
                desk, stamping, inputs={"text": "good day"}, check="output.stamp.text == 'good day'"
            )
            skill = await desk.bank.show_skill("adds")
        assert report.skill_state == "active", report.skill_reason
        assert {test.volatile for test in skill.tests} == {("/stamp/id",)}

    async def test_only_what_was_asked_for_runs_in_fresh_processes(self, open_desk, adding):
        async with open_desk() as desk:
            await save(desk, adding)
            calculator, others = desk.servers["calculator"], ["units", "hashes", "notes", "clock"]
            assert calculator.starts == 3  # for calls, for the recorded run, for all that vary it
            assert {desk.servers[name].starts for name in others} == {1}


class ServerWithOneCounter:
    """A server whose answers are numbered over all its processes."""

    def __init__(self):
        self.answers = 0
        schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        self.server = ScriptedServer([ScriptedTool("stamp", self.stamp, schema)])

    def stamp(self, arguments):
        self.answers += 1
        return {"id": f"id-{self.answers}", "text": arguments["text"]}


class TestWhatTheOperatorSays:
    async def test_of_a_server_decides_what_is_learned_over_it(self, open_desk):
        async with open_desk(learning={"hashes": "propose"}) as desk:
            for task in (HASH_A, HASH_B):
                waits = await desk.bank.solve(task, SolveRequest(checks=DIGEST))
        assert waits.skill_state == "proposed"
        assert "learning mode is propose" in waits.skill_reason

    async def test_off_for_one_server_leaves_the_others_as_they_are(self, open_desk):
        async with open_desk(learning={"hashes": "off"}) as desk:
            silent = await desk.bank.solve(HASH_A, SolveRequest(checks=DIGEST))
            added = await desk.bank.solve(
                "add 3 and 4", SolveRequest(checks=Checks(("output.result == `7`",)))
            )
        assert (silent.skill, silent.skill_reason) == (None, "learning is off for hashes")
        assert added.skill_state == "proposed"

    @pytest.mark.parametrize(
        ("table", "state"),
        [
            pytest.param(LabelTable(), "active", id="nothing-said"),
            pytest.param(LabelTable(LEAKING), "proposed", id="labels-that-forbid-the-flow"),
            pytest.param(
                LabelTable(LEAKING, {"calculator/add": ("hashes/*",)}), "active", id="a-granted-flow"
            ),
        ],
    )
    async def test_of_labels_and_flows_decides_whether_data_may_go_there(
        self, open_desk, node, document, table, state
    ):
        flowing = document(
            node("sum", "calculator/add", {"a": "$inputs.a", "b": 1}),
            node("hash", "hashes/sha256", {"text": "{$nodes.sum.output#/result}"}),
            outputs={"digest": "$nodes.hash.output#/digest"},
            inputs={"a": {"type": "number"}},
        )
        async with open_desk(labels=table) as desk:
            report = await save(desk, flowing, inputs={"a": 4}, check="length(output.digest) == `64`")
        assert report.skill_state == state, report.skill_reason
        assert failed(report) == ([] if state == "active" else ["data_flow"])


class TestSecrets:
    SECRET = "hunter2-very-secret"

    async def test_never_reach_the_store(self, open_desk, node, document, tmp_path):
        telling = document(
            node("n", "s/tell", {"text": "$inputs.text"}),
            outputs={"said": "$nodes.n.output#/said"},
            inputs={"text": {"type": "string"}},
        )
        server = ScriptedServer(
            [
                ScriptedTool("tell", lambda _: {"said": f"the key is {self.SECRET}"}),
                ScriptedTool("fail", lambda _: f"Error: {self.SECRET} is wrong"),
            ]
        )
        failing = document(node("n", "s/fail", {"text": self.SECRET}), outputs={"x": "$nodes.n.output#/x"})
        checks = Checks(("output.said == 'something else'",))
        async with open_desk(
            {"s": server}, effects={"s": {"*": Effect.PURE}}, secrets=(self.SECRET,)
        ) as desk:
            ran = await desk.bank.run(telling, {"text": self.SECRET}, checks)
            repaired = await desk.bank.repair(
                failing, RepairRequest(task=f"use {self.SECRET}", checks=checks)
            )
            tool = desk.context.known().of_server("s")[0].id
            outcome = await desk.bank.call_tool(tool, {"text": self.SECRET})
            trace_id = outcome.meta["io.skillbank/trace"]
            await desk.bank.report_outcome(trace_id, False, f"{self.SECRET} was shown")
        assert self.SECRET not in ran.model_dump_json()
        assert self.SECRET not in "".join(fault.message for fault in repaired.faults)
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert files
        assert not [path.name for path in files if self.SECRET.encode() in path.read_bytes()]

    async def test_make_a_run_that_holds_one_no_skill(self, open_desk, node, document):
        hashing = document(
            node("n", "hashes/sha256", {"text": "$inputs.text"}),
            outputs={"digest": "$nodes.n.output#/digest"},
            inputs={"text": {"type": "string"}},
        )
        async with open_desk(secrets=(self.SECRET,)) as desk:
            wanted = RepairRequest(inputs={"text": self.SECRET}, checks=DIGEST, save="hashes_it")
            report = await desk.bank.repair(hashing, wanted)
            assert desk.store.heads() == []
        assert (report.status, report.skill) == ("verified", None)
        assert "secret" in report.skill_reason


class Racing:
    """The store of a process that is overtaken between judging and adding."""

    def __init__(self, store, rival, **changes):
        self._store, self._rival, self._changes = store, rival, changes
        self.conflicts = 0

    def __getattr__(self, name):
        return getattr(self._store, name)

    def add_version(self, skill, *, expected_head, if_new=False):
        if not self.conflicts:
            self._rival.add_version(skill.model_copy(update=self._changes), expected_head=expected_head)
        self.conflicts += 1
        self._store.add_version(skill, expected_head=expected_head, if_new=if_new)


class TestTwoAtOnce:
    @pytest.fixture
    def rival(self, tmp_path):
        store = open_sqlite_store(tmp_path / "store.db")
        yield store
        store.close()

    async def test_of_two_that_save_one_name_one_wins_and_the_other_is_told(self, open_desk, adding, rival):
        async with open_desk() as desk:
            racing = Racing(desk.store, rival, description="the rival's", content_hash="sha256:other")
            async with open_desk(store=racing) as overtaken:
                report = await save(overtaken, adding, name="contested")
            (contested,) = desk.store.versions("contested")
        assert (report.status, report.skill) == ("verified", None)
        assert "somebody else saved contested meanwhile" in report.skill_reason
        assert contested.description == "the rival's"

    @pytest.mark.parametrize("name", ["contested", "another"], ids=["same-name", "another-name"])
    async def test_of_two_that_save_one_workflow_one_skill_is_left(self, open_desk, adding, rival, name):
        async with open_desk() as desk:
            racing = Racing(desk.store, rival, name=name)
            async with open_desk(store=racing) as overtaken:
                report = await save(overtaken, adding, name="contested")
            assert [(skill.name, skill.version) for skill in desk.store.heads()] == [(name, 1)]
        assert (report.skill, racing.conflicts) == (name, 1)
        assert f"{name} is this workflow already and is active" in report.skill_reason

    async def test_of_two_that_learn_one_workflow_from_runs_the_second_is_a_proof_of_the_first(
        self, open_desk, rival
    ):
        async with open_desk() as desk:
            racing = Racing(desk.store, rival)
            first = await self.proposed(desk)
            desk.store.delete(first.name)
            racing._changes = {"provenance": first.provenance, "tests": first.tests}
            async with open_desk(store=racing) as overtaken:
                report = await overtaken.bank.solve(HASH_B, SolveRequest(checks=DIGEST))
            (kept,) = desk.store.heads()
        assert (report.skill, report.skill_state, kept.version) == (first.name, "active", 1)
        assert "2 distinct verified runs" in report.skill_reason

    async def proposed(self, desk):
        await desk.bank.solve(HASH_A, SolveRequest(checks=DIGEST))
        (skill,) = desk.store.heads()
        return skill


async def test_a_memory_store_learns_as_well(open_desk, adding):
    async with open_desk(store=MemoryStore()) as desk:
        report = await save(desk, adding)
    assert report.skill_state == "active"


async def test_examples_are_tried_before_made_up_inputs(open_desk, adding):
    example = {"a": 100, "b": 200}
    async with open_desk() as desk:
        await save(desk, adding, examples=(example,))
        skill = await desk.bank.show_skill("adds")
    assert skill.tests[1].inputs == example
