"""A person's control: rollback, pin, delete; and what the system leaves alone on every path of its own."""

from __future__ import annotations

import pytest

from catalog.effects import Effect
from catalog.testing import ScriptedServer, ScriptedTool
from catalog.tools import ToolId
from server.bank.admission.learning import learn
from server.bank.episode.repairing import repair_document
from server.bank.errors import NotDecided
from server.requests import RepairRequest, SaveRequest, SolveRequest
from server.verification import Checks
from skills_store.errors import SkillInUse, UnknownSkill

pytestmark = pytest.mark.anyio

ADD, HASH = ToolId("calculator", "add"), ToolId("hashes", "sha256")
NUMBERS = {"a": {"type": "number"}, "b": {"type": "number"}}
DIGEST = Checks(("length(output.digest) == `64`",))


@pytest.fixture
def computing(node, document):
    """A document with one call of the calculator; `swapped` makes it another workflow."""

    def made(tool="add", *, swapped=False):
        one, two = ("b", "a") if swapped else ("a", "b")
        return document(
            node("n", f"calculator/{tool}", {"a": f"$inputs.{one}", "b": f"$inputs.{two}"}),
            outputs={"result": "$nodes.n.output#/result"},
            inputs=NUMBERS,
        )

    return made


async def saved(desk, document, name="adds", task=None, **inputs):
    request = RepairRequest(task=task, inputs=inputs or {"a": 3, "b": 2}, save=name)
    return await desk.bank.repair(document, request)


async def learned(desk, document, a, b):
    """Return what the bank learns by itself from one verified run."""
    checks = Checks((f"output.result == `{a + b}`",))
    inputs = {
        name: value for name, value in {"a": a, "b": b}.items() if name in document["inputs"]["properties"]
    }
    task = f"compute with {a} and {b}"
    request = RepairRequest(task=task, inputs=inputs, checks=checks)
    repaired = await repair_document(document, request, desk.context)
    return await learn(repaired.run, desk.context, name=None)


class TestRollback:
    async def test_to_a_version_that_is_not_active_is_refused_and_says_what_to_do(self, open_desk, computing):
        async with open_desk() as desk:
            await saved(desk, computing())
            wrong = await saved(desk, computing("multiply"), a=5, b=1)
            with pytest.raises(NotDecided, match=r"adds@2 is shadow .* in use stays adds@1, which is active"):
                await desk.bank.rollback("adds", 2)
            assert desk.store.head("adds").version == 1
        assert wrong.skill_state == "shadow"

    async def test_to_a_proposed_version_names_the_command_that_approves_it(self, open_desk, computing):
        async with open_desk(learning="propose") as desk:
            await saved(desk, computing())
            with pytest.raises(NotDecided, match=r"`skillbank skills approve adds --version 1`"):
                await desk.bank.rollback("adds", 1)

    async def test_is_not_undone_by_the_next_run_of_the_family(self, open_desk, node, document):
        def with_a_constant(b):
            return document(
                node("n", "calculator/add", {"a": "$inputs.a", "b": b}),
                outputs={"result": "$nodes.n.output#/result"},
                inputs={"a": {"type": "number"}},
            )

        async with open_desk() as desk:
            await saved(desk, with_a_constant(10), task="compute with 3 and 10", a=3)
            wider = await learned(desk, with_a_constant(20), a=4, b=20)
            await desk.bank.rollback("adds", 1)
            again = await learned(desk, with_a_constant(30), a=5, b=30)
            assert [(s.name, s.version) for s in desk.store.heads()] == [("adds", 1)]
            await desk.bank.pin("adds")
            await learned(desk, with_a_constant(40), a=6, b=40)
            assert len(desk.store.versions("adds")) == 2
        assert (wider.skill.version, [*wider.skill.workflow.inputs["properties"]]) == (2, ["a", "b"])
        assert again.reason == "adds@2 has this workflow and is not the version in use"


class TestPin:
    async def test_keeps_its_version_in_use_whatever_is_saved(self, open_desk, computing):
        async with open_desk() as desk:
            await saved(desk, computing())
            pinned = await desk.bank.pin("adds")
            later = await saved(desk, computing(swapped=True), a=4, b=1)
            assert desk.store.head("adds").version == 1
            unpinned = await desk.bank.unpin("adds")
            rolled = await desk.bank.rollback("adds", 2)
        assert (pinned.version, pinned.pinned, unpinned.pinned) == (1, 1, None)
        assert later.skill_state == "active"
        assert "version 1 stays in use, to which it is pinned" in later.skill_reason
        assert rolled.version == 2

    async def test_of_an_earlier_version_puts_it_in_use(self, open_desk, computing):
        async with open_desk() as desk:
            await saved(desk, computing())
            await saved(desk, computing(swapped=True), a=4, b=1)
            assert (await desk.bank.pin("adds", 1)).version == 1
            assert [entry.skill.version for entry in desk.bank.published()] == [1]

    async def test_of_what_is_not_active_and_letting_go_of_what_is_free_are_refused(
        self, open_desk, computing
    ):
        async with open_desk() as desk:
            await saved(desk, computing())
            await saved(desk, computing("multiply"), a=5, b=1)
            with pytest.raises(NotDecided, match="adds@2 is shadow"):
                await desk.bank.pin("adds", 2)
            with pytest.raises(NotDecided, match="adds is not pinned"):
                await desk.bank.unpin("adds")

    async def test_another_version_is_not_approved_over_it(self, open_desk, computing):
        async with open_desk(learning="propose") as desk:
            await saved(desk, computing())
            await desk.bank.approve("adds")
            await saved(desk, computing(swapped=True), a=4, b=1)
            await desk.bank.pin("adds")
            with pytest.raises(NotDecided, match="pinned to version 1: `skillbank skills unpin adds`"):
                await desk.bank.approve("adds", 2)
            assert desk.store.version("adds", 2).state == "proposed"

    async def test_a_changed_tool_makes_it_stale_and_a_test_says_that_the_pin_keeps_it_so(
        self, open_desk, computing
    ):
        async with open_desk() as desk:
            await saved(desk, computing())
            await desk.bank.pin("adds")
            await desk.change("calculator", changed_calculator())
            assert desk.store.head("adds").state == "stale"
            await desk.bank.recheck_effects("calculator", "*")
            held = await desk.bank.test_skill("adds")
            await desk.bank.unpin("adds")
            free = await desk.bank.test_skill("adds")
            head = desk.store.head("adds")
        assert (held.passed, held.tests[-1].name) == (False, "pin")
        assert "`skillbank skills unpin adds`" in held.tests[-1].detail
        assert (free.passed, head.version, head.state) == (True, 2, "active")


def changed_calculator():
    schema = {
        "type": "object",
        "properties": {**NUMBERS, "digits": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    output = {"type": "object", "properties": {"result": {"type": "number"}}, "required": ["result"]}
    return [ScriptedTool("add", lambda n: {"result": n["a"] + n["b"]}, schema, output)]


class TestDelete:
    async def test_removes_all_and_lets_the_name_and_the_workflow_be_new_again(self, open_desk, computing):
        async with open_desk() as desk:
            await saved(desk, computing())
            await saved(desk, computing(swapped=True), a=4, b=1)
            await desk.bank.call_skill("adds", {"a": 1, "b": 1})
            gone = await desk.bank.delete("adds")
            assert (desk.bank.published(), desk.store.heads()) == ([], [])
            again = await saved(desk, computing())
        assert (gone.versions, gone.uses) == (2, 1)
        assert (again.skill, again.skill_state) == ("adds", "active")

    async def test_is_refused_while_another_skill_calls_it(self, open_desk, computing, document):
        async with open_desk() as desk:
            await saved(desk, computing())
            calling = document(
                {"id": "n", "skill": {"name": "adds", "version": 1}, "arguments": {"a": "$inputs.a", "b": 1}},
                outputs={"more": "$nodes.n.output#/result"},
                inputs={"a": {"type": "number"}},
            )
            outer = await saved(desk, calling, "outer", a=4)
            assert outer.skill == "outer", outer.skill_reason
            with pytest.raises(SkillInUse, match="adds is called by outer@1"):
                await desk.bank.delete("adds")
            await desk.bank.delete("outer")
            await desk.bank.delete("adds")
            with pytest.raises(UnknownSkill):
                await desk.bank.delete("adds")


class TestWhatAPersonWrote:
    """Each path on which the system moves skills by itself, over one that is a person's."""

    async def theirs(self, desk, tool=HASH, name="mine", **arguments):
        """Return the version of a skill that a person wrote, in use and waiting for nothing."""
        await desk.bank.call_tool(tool, arguments, recording=name)
        await desk.bank.save(SaveRequest(name, recording=name, inputs=arguments))
        skill = await desk.bank.show_skill(name)
        written = skill.workflow.to_json()
        written["nodes"][0]["id"] = "by_hand"
        written["outputs"] = {"digest": "$nodes.by_hand.output#/digest"}
        report = await desk.bank.revise(name, written)
        return desk.store.version(name, report.skill.version)

    async def test_is_not_moved_or_widened_by_runs_that_come_out_right(self, open_desk):
        async with open_desk(learning={"hashes": "propose"}) as desk:
            skill = await self.theirs(desk, text="some words")
            for word in ("hello", "other"):
                task = f"Compute the sha256 hash of the text '{word}'"
                await desk.bank.solve(task, SolveRequest(checks=DIGEST, route="dynamic"))
            assert desk.store.version("mine", skill.version) == skill
            assert desk.store.head("mine") == skill
        assert (skill.origin, skill.state) == ("user", "proposed")

    @pytest.mark.parametrize("tool", ["add", "plus"], ids=["its-own-workflow", "one-that-does-the-same"])
    async def test_is_not_moved_by_a_run_that_proves_it_again(self, open_desk, computing, tool):
        schema = {"type": "object", "properties": NUMBERS, "required": ["a", "b"]}
        tools = [ScriptedTool(n, lambda x: {"result": x["a"] + x["b"]}, schema) for n in ("add", "plus")]
        effects = {"calculator": {"*": Effect.PURE}}
        async with open_desk({"calculator": ScriptedServer(tools)}, effects=effects) as desk:
            await learned(desk, computing(), 3, 2)
            (proposed,) = desk.store.heads()
            desk.store.delete(proposed.name)
            desk.store.add_version(proposed.model_copy(update={"origin": "user"}), expected_head=None)
            again = await learned(desk, computing(tool), 8, 5)
            (head,) = desk.store.heads()
        assert (head.origin, head.state, head.version) == ("user", "proposed", 1)
        assert (again.skill, again.verdict.state) == (head, "active")
        assert again.reason.endswith("; it stays proposed: only a person moves it")

    async def test_is_not_set_aside_when_it_is_shown_to_be_wrong(self, open_desk, computing):
        async with open_desk() as desk:
            await saved(desk, computing())
            written = computing("multiply")
            report = await desk.bank.revise("adds", written)
        assert (report.skill.state, "replay of original failed" in report.reason) == ("proposed", True)

    async def test_follows_a_changed_tool_and_nothing_else(self, open_desk, computing):
        async with open_desk() as desk:
            await saved(desk, computing())
            await desk.bank.revise("adds", computing(swapped=True))
            assert desk.store.head("adds").state == "active"
            await desk.change("calculator", changed_calculator())
            head, before = desk.store.head("adds"), desk.store.changes("adds")
        assert (head.origin, head.version, head.state) == ("user", 2, "stale")
        assert [change.after for change in before if change.by == "system" and change.version == 2] == [
            "stale"
        ]
