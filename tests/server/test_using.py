"""Using skills: who may call what, what counts, what a change upstream does, and the way back."""

from __future__ import annotations

from dataclasses import replace

import anyio
import pytest

from catalog.config import Config
from catalog.effects import Effect
from catalog.testing import ScriptedServer, ScriptedTool
from server.bank import Bank
from server.bank.errors import NotDecided, SkillNotCallable
from server.execution.consent import GrantAll, NoConsent
from server.reports import exit_code
from server.requests import RepairRequest
from server.verification import Checks
from skills_store.errors import IllegalTransition, UnknownSkill, VersionConflict
from skills_store.skill import AdmissionCheck

pytestmark = pytest.mark.anyio

NUMBER = {"type": "number"}


@pytest.fixture
def adding(node, document):
    return document(
        node("sum", "calculator/add", {"a": "$inputs.a", "b": "$inputs.b"}),
        outputs={"sum": "$nodes.sum.output#/result"},
        inputs={"a": NUMBER, "b": NUMBER},
    )


@pytest.fixture
def saving(node, document):
    return document(
        node("save", "notes/save_note", {"text": "$inputs.text"}),
        outputs={"count": "$nodes.save.output#/count"},
        inputs={"text": {"type": "string"}},
    )


async def save(desk, document, name="adds", inputs=None, check="output.sum == `5`"):
    wanted = RepairRequest(inputs=inputs or {"a": 3, "b": 2}, checks=Checks((check,)), save=name)
    report = await desk.bank.repair(document, wanted)
    assert report.skill == name, report.skill_reason
    return report


def add_tool(**more):
    pair = {"type": "object", "properties": {"a": NUMBER, "b": NUMBER, **more}, "required": ["a", "b", *more]}
    return ScriptedTool("add", lambda n: {"result": n["a"] + n["b"]}, pair)


class TestCalling:
    async def test_gives_the_outputs_and_counts_the_use(self, open_desk, adding):
        async with open_desk() as desk:
            await save(desk, adding)
            report = await desk.bank.call_skill("adds", {"a": "20", "b": 3})
            counts = desk.store.use_counts("adds")
        assert (report.status, report.outputs) == ("succeeded", {"sum": 23})
        assert (counts.uses, counts.successes, counts.world_faults) == (1, 1, 0)

    @pytest.mark.parametrize(
        ("arguments", "kind", "pointer"),
        [
            pytest.param({"a": 1}, "missing_argument", "/inputs", id="missing"),
            pytest.param({"a": 1, "b": "x"}, "invalid_argument", "/inputs/b", id="wrong-type"),
            pytest.param({"a": 1, "b": 2, "c": 3}, "unexpected_argument", "/inputs/c", id="unknown"),
        ],
    )
    async def test_with_wrong_arguments_runs_nothing_and_is_no_use(
        self, open_desk, adding, arguments, kind, pointer
    ):
        async with open_desk() as desk:
            await save(desk, adding)
            before = desk.count()
            report = await desk.bank.call_skill("adds", arguments)
            assert desk.count() == before
            assert desk.store.use_counts("adds").uses == 0
        assert [(fault.kind, fault.pointer) for fault in report.faults] == [(kind, pointer)]

    async def test_the_world_is_not_held_against_a_skill(self, open_desk, node, document):
        is_slow = False

        async def look(_):
            if is_slow:
                await anyio.sleep_forever()
            return {"seen": 1}

        looking = document(
            node("n", "s/look", timeout_seconds=0.3), outputs={"seen": "$nodes.n.output#/seen"}
        )
        server = ScriptedServer([ScriptedTool("look", look)])
        async with open_desk({"s": server}, effects={"s": {"*": Effect.PURE}}) as desk:
            await save(desk, looking, name="looks", inputs={}, check="output.seen == `1`")
            is_slow = True
            report = await desk.bank.call_skill("looks", {})
            counts = desk.store.use_counts("looks")
        assert {fault.kind for fault in report.faults} == {"timeout"}
        assert exit_code(report.status, report.faults) == 4
        assert (counts.uses, counts.world_faults, counts.judged) == (1, 1, 0)

    async def test_a_failure_of_its_own_is(self, open_desk, node, document):
        server = ScriptedServer([ScriptedTool("say", lambda n: {"said": 10 / n["by"]}, _by())])
        dividing = document(
            node("n", "s/say", {"by": "$inputs.by"}),
            outputs={"said": "$nodes.n.output#/said"},
            inputs={"by": NUMBER},
            expect=["output.said > `0`"],
        )
        async with open_desk({"s": server}, effects={"s": {"*": Effect.PURE}}) as desk:
            await save(desk, dividing, name="divides", inputs={"by": 2}, check="output.said == `5`")
            report = await desk.bank.call_skill("divides", {"by": -1})
            counts = desk.store.use_counts("divides")
        assert (report.status, [fault.kind for fault in report.faults]) == (
            "failed",
            ["postcondition_failed"],
        )
        assert (counts.uses, counts.successes, counts.world_faults) == (1, 0, 0)

    async def test_a_client_may_only_call_what_is_active_a_person_may_try(self, open_desk, saving):
        async with open_desk(consent=GrantAll()) as desk:
            await save(desk, saving, name="saves", inputs={"text": "a"}, check="output.count == `1`")
            with pytest.raises(SkillNotCallable, match=r"proposed.*skillbank skills run saves"):
                await desk.bank.call_skill("saves", {"text": "b"})
            report = await desk.bank.run_skill("saves", {"text": "b"})
            assert desk.count("save_note") == 2
        assert report.outputs == {"count": 2}

    async def test_a_person_is_asked_before_a_proposed_skill_writes(self, open_desk, saving):
        async with open_desk(consent=GrantAll()) as desk:
            await save(desk, saving, name="saves", inputs={"text": "a"}, check="output.count == `1`")
            silent = Bank(replace(desk.context, consent=NoConsent()))
            report = await silent.run_skill("saves", {"text": "b"})
            assert desk.count("save_note") == 1
        assert report.status == "needs_approval"

    async def test_an_active_skill_that_writes_runs_each_time_a_client_calls_it(self, open_desk, saving):
        async with open_desk(consent=GrantAll()) as desk:
            await save(desk, saving, name="saves", inputs={"text": "a"}, check="output.count == `1`")
            desk.store.move("saves", 1, "active", reason="approved", by="person", at=1.0)
            for _ in range(2):
                report = await desk.bank.call_skill("saves", {"text": "same"})
            assert desk.count("save_note") == 3
        assert report.outputs == {"count": 3}

    @pytest.mark.parametrize(
        ("name", "version", "said"),
        [
            pytest.param("nothing", None, "there is no skill nothing; skills: adds", id="name"),
            pytest.param("adds", 7, "there is no version 7 of adds; versions: 1", id="version"),
        ],
    )
    async def test_what_is_not_there_is_named_with_what_is(self, open_desk, adding, name, version, said):
        async with open_desk() as desk:
            await save(desk, adding)
            with pytest.raises(UnknownSkill, match=said):
                await desk.bank.call_skill(name, {}, version)


def _by():
    return {"type": "object", "properties": {"by": NUMBER}, "required": ["by"]}


class TestDrift:
    async def test_a_changed_contract_makes_a_skill_stale_and_says_what_changed(self, open_desk, adding):
        async with open_desk() as desk:
            await save(desk, adding)
            await desk.change("calculator", [add_tool(precision={"type": "integer"})])
            with pytest.raises(SkillNotCallable) as refused:
                await desk.bank.call_skill("adds", {"a": 1, "b": 2})
            with pytest.raises(SkillNotCallable) as again:
                await desk.bank.call_skill("adds", {"a": 1, "b": 2})
            (listed,) = (await desk.bank.list_skills()).skills
            assert desk.bank.published() == []
            assert desk.store.use_counts("adds").uses == 0
        said = str(refused.value)
        assert "calculator/add changed since the skill was verified" in said
        assert "precision" in said
        assert "skillbank skills test adds" in said
        assert "skillbank skills test adds" in str(again.value)
        assert (listed.state, listed.tool_name) == ("stale", None)
        assert "calculator/add" in listed.reason

    async def test_a_tool_that_is_gone_makes_a_skill_stale(self, open_desk, adding):
        async with open_desk() as desk:
            await save(desk, adding)
            await desk.change("calculator", [ScriptedTool("other", [{"x": 1}])])
            with pytest.raises(SkillNotCallable, match="calculator/add is gone"):
                await desk.bank.call_skill("adds", {"a": 1, "b": 2})
            assert desk.store.head("adds").state == "stale"

    async def test_other_words_change_nothing(self, open_desk, adding):
        async with open_desk() as desk:
            await save(desk, adding)
            before = desk.context.known().of_server("calculator")
            tools = [
                ScriptedTool(t.id.tool, _sum, t.input_schema, t.output_schema, description="Other words.")
                for t in before
            ]
            await desk.change("calculator", tools)
            report = await desk.bank.call_skill("adds", {"a": 1, "b": 2})
        assert report.outputs == {"sum": 3}

    async def test_a_test_that_passes_reinstates_it_as_a_new_version(self, open_desk, adding):
        async with open_desk() as desk:
            await save(desk, adding)
            optional = ScriptedTool(
                "add",
                _sum,
                {
                    "type": "object",
                    "properties": {"a": NUMBER, "b": NUMBER, "digits": {"type": "integer"}},
                    "required": ["a", "b"],
                },
            )
            await desk.change("calculator", [optional])
            with pytest.raises(SkillNotCallable):
                await desk.bank.call_skill("adds", {"a": 1, "b": 2})
            unseen = await desk.bank.test_skill("adds")
            assert await desk.bank.recheck_effects("calculator", "*") == ("add",)
            tested = await desk.bank.test_skill("adds")
            answer = await desk.bank.call_skill("adds", {"a": 1, "b": 2})
            states = [(skill.version, skill.state) for skill in desk.store.versions("adds")]
            assert [entry.tool_name for entry in desk.bank.published()] == ["adds"]
        assert (unseen.passed, unseen.version) == (False, 1)
        assert unseen.tests[0].detail.endswith("then `skillbank effects set calculator/add CLASS`")
        assert (tested.passed, tested.version) == (True, 2)
        assert answer.outputs == {"sum": 3}
        assert states == [(1, "stale"), (2, "active")]

    async def test_a_test_that_fails_leaves_it_stale(self, open_desk, adding):
        async with open_desk() as desk:
            await save(desk, adding)
            await desk.change("calculator", [ScriptedTool("add", [{"result": 0}])])
            with pytest.raises(SkillNotCallable):
                await desk.bank.call_skill("adds", {"a": 1, "b": 2})
            await desk.bank.recheck_effects("calculator", "*")
            tested = await desk.bank.test_skill("adds")
            assert desk.store.head("adds").state == "stale"
        assert not tested.passed
        assert "outputs differ at /sum" in tested.tests[0].detail

    async def test_the_same_contract_again_reinstates_the_version_itself(self, open_desk, adding):
        async with open_desk() as desk:
            await save(desk, adding)
            before = desk.servers["calculator"].tools()
            await desk.change("calculator", [ScriptedTool("other", [{"x": 1}])])
            with pytest.raises(SkillNotCallable):
                await desk.bank.call_skill("adds", {"a": 1, "b": 2})
            await desk.change("calculator", before)
            tested = await desk.bank.test_skill("adds")
            assert [(s.version, s.state) for s in desk.store.versions("adds")] == [(1, "active")]
        assert (tested.passed, tested.version) == (True, 1)

    async def test_saving_the_workflow_again_reinstates_it_too(self, open_desk, adding):
        async with open_desk() as desk:
            await save(desk, adding)
            before = desk.servers["calculator"].tools()
            await desk.change("calculator", [ScriptedTool("other", [{"x": 1}])])
            with pytest.raises(SkillNotCallable):
                await desk.bank.call_skill("adds", {"a": 1, "b": 2})
            await desk.change("calculator", before)
            report = await save(desk, adding)
        assert report.skill_state == "active"

    async def test_a_server_that_left_the_configuration_is_named_and_the_skill_stays(self, open_desk, adding):
        async with open_desk() as desk:
            await save(desk, adding)
            fewer = {n: spec for n, spec in desk.context.config.servers.items() if n != "calculator"}
            config = Config(fewer, effects=desk.context.config.effects)
            without = Bank(replace(desk.context, config=config))
            with pytest.raises(SkillNotCallable, match=r"needs calculator.*skillbank add calculator"):
                await without.call_skill("adds", {"a": 1, "b": 2})
            (listed,) = (await without.list_skills()).skills
            assert desk.store.use_counts("adds").uses == 0
        assert listed.state == "active"


def _sum(arguments):
    return {"result": arguments["a"] + arguments["b"]}


class TestMoves:
    async def test_a_retired_skill_is_readable_and_not_callable(self, open_desk, adding):
        async with open_desk() as desk:
            await save(desk, adding)
            retired = await desk.bank.retire("adds", "no longer wanted")
            assert desk.bank.published() == []
            for version in (None, 1):
                with pytest.raises(SkillNotCallable, match="retired: no longer wanted"):
                    await desk.bank.call_skill("adds", {"a": 1, "b": 2}, version)
            with pytest.raises(IllegalTransition):
                await desk.bank.retire("adds", "again")
            assert (await desk.bank.show_skill("adds")).workflow.nodes
        assert (retired.state, retired.reason, retired.tool_name) == ("retired", "no longer wanted", None)

    async def test_a_rollback_needs_a_version_that_is_there(self, open_desk, adding):
        async with open_desk() as desk:
            await save(desk, adding)
            with pytest.raises(UnknownSkill, match="versions: 1"):
                await desk.bank.rollback("adds", 2)
            report = await desk.bank.rollback("adds", 1)
        assert (report.version, report.state, report.tool_name) == (1, "active", "adds")

    async def test_of_two_that_move_a_head_at_once_one_is_told(self, open_desk, adding):
        async with open_desk() as desk:
            await save(desk, adding)
            skill = desk.store.head("adds")
            desk.store.add_version(skill.model_copy(update={"version": 2}), expected_head=1)
            with pytest.raises(VersionConflict, match="expected to have head 1; it is 2"):
                desk.store.set_head("adds", 1, expected_head=1)

    async def test_skills_are_found_with_reasons_and_listed_by_name(self, open_desk, adding, saving):
        async with open_desk(consent=GrantAll()) as desk:
            await save(desk, adding, name="zebra_adds")
            await save(desk, saving, name="saves_note", inputs={"text": "a"}, check="output.count == `1`")
            listed = await desk.bank.list_skills()
            found = await desk.bank.find_skills("zebra adds", 5)
        assert [skill.name for skill in listed.skills] == ["saves_note", "zebra_adds"]
        assert [skill.name for skill in found.skills] == ["zebra_adds"]
        assert found.skills[0].score > 0.3
        assert found.skills[0].reasons


class TestAPersonsWord:
    @pytest.fixture
    def propose(self, saving):
        """Save a workflow that writes, which waits for a person."""

        async def proposed(desk):
            await save(desk, saving, name="saves", inputs={"text": "a"}, check="output.count == `1`")

        return proposed

    async def test_makes_a_proposed_skill_a_tool_without_running_it(self, open_desk, propose):
        async with open_desk(consent=GrantAll()) as desk:
            await propose(desk)
            assert desk.bank.published() == []
            shown = await desk.bank.proposal("saves")
            approved = await desk.bank.approve("saves")
            assert [entry.tool_name for entry in desk.bank.published()] == ["saves"]
            assert desk.count("save_note") == 1
            answer = await desk.bank.call_skill("saves", {"text": "b"})
            last = desk.store.changes("saves")[-1]
        assert "a person approves with `skillbank skills approve saves`" in shown.reason
        assert (approved.state, approved.tool_name) == ("active", "saves")
        assert (last.before, last.after, last.by) == ("proposed", "active", "person")
        assert answer.outputs == {"count": 2}

    async def test_turns_a_proposed_skill_down_and_the_reason_is_remembered(self, open_desk, propose):
        async with open_desk(consent=GrantAll()) as desk:
            await propose(desk)
            rejected = await desk.bank.reject("saves", "wrong notebook")
            with pytest.raises(SkillNotCallable, match="rejected: wrong notebook"):
                await desk.bank.run_skill("saves", {"text": "b"})
            with pytest.raises(NotDecided, match=r"saves@1 is rejected \(wrong notebook\)"):
                await desk.bank.approve("saves")
        assert (rejected.state, rejected.reason, rejected.tool_name) == ("rejected", "wrong notebook", None)

    @pytest.mark.parametrize("word", ["proposal", "approve", "reject"])
    async def test_on_a_skill_that_is_not_proposed_says_in_which_state_it_is(self, open_desk, adding, word):
        async with open_desk() as desk:
            await save(desk, adding)
            more = ("no",) if word == "reject" else ()
            with pytest.raises(NotDecided, match=r"adds@1 is active .*: only a proposed skill can be"):
                await getattr(desk.bank, word)("adds", *more)
            with pytest.raises(UnknownSkill, match="skills: adds"):
                await getattr(desk.bank, word)("nothing", *more)
            assert desk.store.head("adds").state == "active"

    async def test_puts_a_later_version_in_use_that_waited_beside_the_one_in_use(
        self, open_desk, adding, node, document
    ):
        twice = document(
            node("sum", "calculator/add", {"a": "$inputs.a", "b": "$inputs.b"}),
            node("note", "notes/save_note", {"text": "{$nodes.sum.output#/result}"}),
            outputs={"sum": "$nodes.sum.output#/result", "noted": "$nodes.note.output#/count"},
            inputs={"a": NUMBER, "b": NUMBER},
        )
        async with open_desk(consent=GrantAll()) as desk:
            await save(desk, adding)
            report = await save(desk, twice)
            assert (report.skill_state, desk.store.head("adds").version) == ("proposed", 1)
            with pytest.raises(NotDecided, match="`skillbank skills approve adds --version 2`"):
                await desk.bank.approve("adds")
            approved = await desk.bank.approve("adds", 2)
            (entry,) = desk.bank.published()
        assert "skillbank skills approve adds --version 2" in report.skill_reason
        assert (approved.version, approved.state, entry.skill.version) == (2, "active", 2)

    async def test_cannot_make_active_what_is_shown_to_be_wrong(self, open_desk, propose):
        async with open_desk(consent=GrantAll()) as desk:
            await propose(desk)
            written = _with_a_check_that_leaves(desk.store.head("saves"), "shadow")
            desk.store.add_version(written, expected_head=1)
            with pytest.raises(NotDecided, match="shown to be wrong: static_check: it has a fault"):
                await desk.bank.approve("saves")
            assert desk.store.head("saves").state == "proposed"
            rejected = await desk.bank.reject("saves", "it has a fault")
        assert (rejected.version, rejected.state) == (2, "rejected")

    async def test_counts_what_was_proved_again_after_its_verdict(self, open_desk, propose):
        async with open_desk(consent=GrantAll()) as desk:
            await propose(desk)
            wrong = _with_a_check_that_leaves(desk.store.head("saves"), "shadow")
            desk.store.add_version(wrong, expected_head=1)
            for state in ("shadow", "proposed"):
                desk.store.move("saves", 2, state, reason="looked at", by="system", at=1.0)
            approved = await desk.bank.approve("saves")
        assert (approved.version, approved.state) == (2, "active")

    async def test_cannot_make_active_what_no_gate_has_looked_at(self, open_desk, propose):
        async with open_desk(consent=GrantAll()) as desk:
            await propose(desk)
            unjudged = desk.store.head("saves").model_copy(update={"version": 2, "verdict": None})
            desk.store.add_version(unjudged, expected_head=1)
            with pytest.raises(NotDecided, match="no gate has looked at it"):
                await desk.bank.approve("saves")


def _with_a_check_that_leaves(skill, state):
    check = AdmissionCheck(
        name="static_check", gate="interface", passed=False, detail="it has a fault", leaves=state
    )
    verdict = skill.verdict.model_copy(update={"checks": (*skill.verdict.checks, check)})
    return skill.model_copy(update={"version": skill.version + 1, "verdict": verdict})
