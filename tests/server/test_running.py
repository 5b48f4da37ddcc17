"""Checking and running a document: faults before anything runs, effects held to the policy."""

from __future__ import annotations

import json

import pytest

from catalog.effects import Effect, Reset
from catalog.testing import ScriptedServer, ScriptedTool, Vanish
from server.bank.errors import NotDecided
from server.execution.consent import GrantAll
from server.execution.options import MAX_SKILL_DEPTH
from server.reports import exit_code
from server.requests import RepairRequest
from server.verification import Checks
from skills_store.workflow.hashing import content_hash, shape_hash
from skills_store.workflow.model import parse_workflow

pytestmark = pytest.mark.anyio


@pytest.fixture
def adding(node, document):
    return document(
        node("sum", "calculator/add", {"a": "$inputs.a", "b": 2}),
        outputs={"sum": "$nodes.sum.output#/result"},
        inputs={"a": {"type": "number"}},
    )


@pytest.fixture
def saving(node, document):
    return document(
        node("save", "notes/save_note", {"text": "$inputs.text"}),
        outputs={"count": "$nodes.save.output#/count"},
        inputs={"text": {"type": "string"}},
    )


def kinds(report):
    return [fault.kind for fault in report.faults]


@pytest.mark.parametrize(
    "written", [dict, json.dumps, lambda d: json.dumps(d).encode()], ids=["value", "text", "bytes"]
)
async def test_a_document_runs_however_it_is_given(open_desk, adding, written):
    async with open_desk() as desk:
        report = await desk.bank.run(written(adding), {"a": 1}, Checks())
        kept = desk.store.trace(report.trace_id)
    assert (report.status, report.outputs, report.calls) == ("succeeded", {"sum": 3}, 1)
    assert exit_code(report.status, report.faults) == 0
    assert (kept.status, kept.steps) == ("succeeded", report.trace)


@pytest.mark.parametrize(
    ("document", "pointer", "said"),
    [
        pytest.param(b"\xff{", "", "not JSON", id="bytes-that-are-no-text"),
        pytest.param("{", "", "not JSON", id="cut-off"),
        pytest.param('{"name": NaN}', "", "not JSON", id="not-a-number"),
        pytest.param("[1]", "", "JSON object", id="a-list"),
        pytest.param(
            {"name": "x", "inputs": {}, "nodes": [], "outputs": {}, "retries": 3},
            "/retries",
            "unknown field",
            id="unknown-field",
        ),
        pytest.param(
            {"name": "x", "inputs": {}, "nodes": [{"id": "A!"}], "outputs": {}},
            "/nodes/0/id",
            "match",
            id="bad-id",
        ),
    ],
)
async def test_what_is_no_workflow_gets_faults_with_pointers(open_desk, document, pointer, said):
    async with open_desk() as desk:
        ran = await desk.bank.run(document, {}, Checks())
        checked = await desk.bank.check(document)
    assert ran.status == "failed"
    assert set(map(repr, ran.faults)) <= set(map(repr, checked.faults))
    assert (pointer, True) in [(fault.pointer, said in fault.message) for fault in ran.faults]
    assert {fault.kind for fault in ran.faults} == {"malformed"}


async def test_a_document_nested_without_end_is_malformed(open_desk):
    async with open_desk() as desk:
        report = await desk.bank.run("[" * 100_000, {}, Checks())
    assert (report.status, kinds(report)) == ("failed", ["malformed"])


@pytest.mark.parametrize(
    ("inputs", "kind", "pointer"),
    [
        pytest.param({}, "missing_argument", "/inputs", id="missing"),
        pytest.param({"a": "many"}, "invalid_argument", "/inputs/a", id="of-the-wrong-type"),
        pytest.param({"a": 1, "b": 2}, "unexpected_argument", "/inputs/b", id="unknown"),
    ],
)
async def test_wrong_inputs_are_faults_and_nothing_runs(open_desk, adding, inputs, kind, pointer):
    async with open_desk() as desk:
        report = await desk.bank.run(adding, inputs, Checks())
        assert desk.count() == 0
    assert (report.status, report.trace_id) == ("failed", None)
    assert [(fault.kind, fault.pointer) for fault in report.faults] == [(kind, pointer)]


async def test_an_input_left_out_takes_its_default(open_desk, node, document):
    adding = document(
        node("sum", "calculator/add", {"a": "$inputs.a", "b": 2}),
        outputs={"sum": "$nodes.sum.output#/result"},
        inputs={"a": {"type": "number", "default": 40}},
        expect=["inputs.a == `40`"],
    )
    async with open_desk() as desk:
        report = await desk.bank.run(adding, {}, Checks())
    assert (report.status, report.outputs) == ("verified", {"sum": 42})


async def test_static_faults_keep_a_document_from_running(open_desk, adding):
    adding["nodes"][0]["arguments"]["b"] = "two"
    async with open_desk() as desk:
        report = await desk.bank.run(adding, {"a": 1}, Checks())
        checked = await desk.bank.check(adding)
        assert desk.count() == 0
    assert [(f.kind, f.pointer) for f in report.faults] == [("invalid_argument", "/nodes/0/arguments/b")]
    assert checked.faults == report.faults
    assert exit_code(report.status, report.faults) == 1


class TestWhatCosts:
    async def test_is_not_called_without_consent(self, open_desk, saving):
        async with open_desk() as desk:
            report = await desk.bank.run(saving, {"text": "a"}, Checks())
            assert desk.count("save_note") == 0
        assert (report.status, kinds(report)) == ("needs_approval", ["denied"])
        assert exit_code(report.status, report.faults) == 3
        (fault,), (held,) = report.faults, report.not_repeated
        assert fault.arguments == {"text": "a"}
        assert (held.node, str(held.tool), held.effect) == ("save", "notes/save_note", Effect.WRITE)
        assert "notes/save_note" in held.allow

    async def test_runs_once_where_it_is_allowed(self, open_desk, saving):
        async with open_desk() as desk:
            report = await desk.bank.run(saving, {"text": "a"}, Checks(), allow=("notes/save_*",))
            assert desk.count("save_note") == 1
        assert (report.status, report.outputs, report.not_repeated) == ("succeeded", {"count": 1}, ())

    async def test_runs_where_a_person_consents(self, open_desk, saving):
        async with open_desk() as desk:
            report = await desk.bank.run(saving, {"text": "a"}, Checks(), consent=GrantAll())
            assert desk.count("save_note") == 1
        assert report.status == "succeeded"

    async def test_runs_in_a_process_of_its_own_where_the_server_can_be_reset(self, open_desk, saving):
        async with open_desk(reset={"notes": Reset.PROCESS}) as desk:
            for _ in range(2):
                report = await desk.bank.run(saving, {"text": "a"}, Checks())
                assert (report.status, report.outputs) == ("succeeded", {"count": 1})

    async def test_allow_that_names_no_tool_is_a_misuse(self, open_desk, saving):
        async with open_desk() as desk:
            with pytest.raises(ValueError, match="SERVER/TOOL"):
                await desk.bank.run(saving, {"text": "a"}, Checks(), allow=("save_note",))


@pytest.mark.parametrize(
    ("checks", "status"),
    [
        pytest.param(Checks(("output.sum == `3`",)), "verified", id="holds"),
        pytest.param(Checks(("output.sum == `4`",)), "failed", id="does-not-hold"),
        pytest.param(Checks(("output.total == `3`",)), "failed", id="names-nothing"),
        pytest.param(Checks(schema={"properties": {"sum": {"type": "string"}}}), "failed", id="schema"),
        pytest.param(Checks(), "succeeded", id="none"),
    ],
)
async def test_the_status_says_who_was_asked(open_desk, adding, checks, status):
    async with open_desk() as desk:
        report = await desk.bank.run(adding, {"a": 1}, checks)
        assert desk.store.trace(report.trace_id).status == status
    assert report.status == status
    assert len(report.verifications) == len(checks.assertions) + (checks.schema is not None)


async def test_only_world_faults_exit_with_four(open_desk, node, document):
    gone = ScriptedServer([ScriptedTool("look", [Vanish()])])
    looking = document(node("look", "away/look"), outputs={"seen": "$nodes.look.output"})
    async with open_desk({"away": gone}, effects={"away": {"*": Effect.PURE}}) as desk:
        report = await desk.bank.run(looking, {}, Checks())
    assert (report.status, kinds(report)) == ("failed", ["server_unavailable"])
    assert exit_code(report.status, report.faults) == 4


async def test_large_outputs_are_shown_in_full_and_stored_by_digest(open_desk, node, document):
    big = "x" * 50_000
    server = ScriptedServer([ScriptedTool("big", [{"text": big}])])
    reading = document(node("big", "s/big"), outputs={"text": "$nodes.big.output#/text"})
    async with open_desk({"s": server}, effects={"s": {"*": Effect.PURE}}) as desk:
        report = await desk.bank.run(reading, {}, Checks())
        kept = desk.store.trace(report.trace_id)
    assert report.outputs == {"text": big}
    assert kept.outputs["text"].keys() == {"$digest", "size", "preview"}


class TestServersThatAreAway:
    async def test_a_server_that_was_never_reached_is_named_and_its_tools_are_not_unknown(
        self, open_desk, node, document
    ):
        calling = document(node("n", "broken/look"), outputs={"seen": "$nodes.n.output"})
        async with open_desk({"broken": ScriptedServer(_refuses)}) as desk:
            report = await desk.bank.run(calling, {}, Checks())
            checked = await desk.bank.check(calling, connect=True)
        assert kinds(report) == kinds(checked) == ["server_unavailable"]
        assert report.faults[0].pointer == "/nodes/0/tool"
        assert "server 'broken' cannot be reached" in report.faults[0].message
        assert exit_code(report.status, report.faults) == 4

    async def test_check_without_connecting_says_how_to_get_to_know_it(self, open_desk, adding):
        async with open_desk() as desk:
            unseen = await desk.bank.check(adding)
            seen = await desk.bank.check(adding, connect=True)
            again = await desk.bank.check(adding)
        assert [fault.kind for fault in unseen.faults] == ["unknown_tool"]
        assert "--connect" in unseen.warnings[0]
        assert seen.faults == again.faults == seen.warnings == again.warnings == ()

    async def test_a_server_that_is_not_configured_is_said_to_be_none(self, open_desk, node, document):
        calling = document(node("n", "other/look"), outputs={"seen": "$nodes.n.output"})
        async with open_desk() as desk:
            report = await desk.bank.check(calling)
        assert [fault.kind for fault in report.faults] == ["unknown_tool"]
        assert "skillbank add other" in report.warnings[0]


def _refuses():
    raise RuntimeError("it does not start")


async def test_an_unknown_field_hides_no_other_fault(open_desk, node, document):
    wrong = document(node("n", "calculator/nosuch"), outputs={"seen": "$nodes.zz.output"})
    wrong["nodes"][0]["bar"] = 1
    async with open_desk() as desk:
        await desk.bank.doctor()
        report = await desk.bank.check(wrong)
    assert [fault.kind for fault in report.faults][:2] == ["malformed", "unknown_tool"]
    assert "dangling_reference" in {fault.kind for fault in report.faults}


class TestSkillNodes:
    async def test_a_workflow_calls_a_kept_skill_by_its_version(self, open_desk, adding, document):
        async with open_desk() as desk:
            await _kept(desk, adding)
            report = await desk.bank.run(_calling_skill(document, 1), {}, Checks())
        assert (report.status, report.outputs) == ("succeeded", {"sum": 5})

    async def test_a_workflow_that_calls_a_skill_is_repaired_like_any_other(
        self, open_desk, adding, document
    ):
        broken = _calling_skill(document, 1)
        broken["outputs"] = {"sum": "$nodes.inner.output#/total"}
        async with open_desk() as desk:
            await _kept(desk, adding)
            request = RepairRequest(checks=Checks(("output.sum == `5`",)))
            report = await desk.bank.repair(broken, request)
        assert (report.status, report.outputs) == ("verified", {"sum": 5})

    @pytest.mark.parametrize("version", [2, 1], ids=["no-such-version", "retired"])
    async def test_a_version_that_may_not_be_called_is_a_static_fault(
        self, open_desk, adding, document, version
    ):
        async with open_desk() as desk:
            await _kept(desk, adding)
            await desk.bank.retire("add_two", "no longer wanted")
            report = await desk.bank.run(_calling_skill(document, version), {}, Checks())
        assert kinds(report) == ["dangling_reference"]
        assert report.faults[0].pointer == "/nodes/0/skill"

    async def test_skills_inside_each_other_run_to_the_depth_that_is_allowed(
        self, open_desk, adding, document
    ):
        async with open_desk() as desk:
            await _kept(desk, adding)
            for level in range(2, MAX_SKILL_DEPTH + 1):
                _put_around(desk, document, level, around=level - 1)
            deepest = await desk.bank.run(_calling_skill(document, MAX_SKILL_DEPTH), {}, Checks())
            _put_around(desk, document, MAX_SKILL_DEPTH + 1, around=MAX_SKILL_DEPTH)
            over = await desk.bank.run(_calling_skill(document, MAX_SKILL_DEPTH + 1), {}, Checks())
        assert (deepest.status, deepest.outputs) == ("succeeded", {"sum": 5})
        assert (over.status, kinds(over), over.calls) == ("failed", ["over_limit"], 0)
        assert f"nested more than {MAX_SKILL_DEPTH} deep" in over.faults[0].message

    async def test_skills_that_call_each_other_in_a_ring_end_at_that_depth(self, open_desk, adding, document):
        """No admission makes a ring, since a version calls versions that are there; a store may hold one."""
        async with open_desk() as desk:
            await _kept(desk, adding)
            _put_around(desk, document, 2, around=3)
            _put_around(desk, document, 3, around=2)
            report = await desk.bank.run(_calling_skill(document, 2), {}, Checks())
        assert (report.status, kinds(report), report.calls) == ("failed", ["over_limit"], 0)

    async def test_one_that_reaches_itself_through_another_is_not_admitted(self, open_desk, adding, document):
        async with open_desk() as desk:
            await _kept(desk, adding)
            outer = {**_calling_skill(document, 1), "inputs": adding["inputs"]}
            outer["nodes"][0]["arguments"] = {"a": "$inputs.a"}
            kept = await desk.bank.repair(outer, RepairRequest(inputs={"a": 1}, save="outer"))
            ring = {**outer, "nodes": [{**outer["nodes"][0], "skill": {"name": "outer", "version": 1}}]}
            revised = await desk.bank.revise("add_two", ring)
            in_use = await desk.bank.show_skill("add_two")
        assert kept.skill_state == "active", kept.skill_reason
        failed = [check.name for check in revised.verdict.checks if not check.passed]
        assert (revised.verdict.state, failed) == ("proposed", ["no_self_call"])
        assert in_use.standing.in_use == 1

    async def test_a_run_that_would_make_one_reach_itself_through_another_is_set_aside(
        self, open_desk, adding, document
    ):
        """What a person wrote waits for them instead, and they cannot approve it."""
        async with open_desk() as desk:
            await _kept(desk, adding)
            outer = {**_calling_skill(document, 1), "inputs": adding["inputs"]}
            outer["nodes"][0]["arguments"] = {"a": "$inputs.a"}
            await desk.bank.repair(outer, RepairRequest(inputs={"a": 1}, save="outer"))
            ring = {**outer, "nodes": [{**outer["nodes"][0], "skill": {"name": "outer", "version": 1}}]}
            saved = await desk.bank.repair(ring, RepairRequest(inputs={"a": 1}, save="add_two"))
            in_use = await desk.bank.show_skill("add_two")
            await desk.bank.revise("add_two", ring | {"description": "By hand."})
            with pytest.raises(NotDecided, match="it would call itself"):
                await desk.bank.approve("add_two", 3)
        assert (saved.skill_state, "it would call itself" in saved.skill_reason) == ("shadow", True)
        assert in_use.standing.in_use == 1

    async def test_a_skill_keeps_the_version_and_the_tools_it_was_admitted_with(
        self, open_desk, adding, document
    ):
        async with open_desk() as desk:
            await _kept(desk, adding)
            outer = {**_calling_skill(document, 1), "inputs": adding["inputs"]}
            outer["nodes"][0]["arguments"] = {"a": "$inputs.a"}
            kept = await desk.bank.repair(outer, RepairRequest(inputs={"a": 1}, save="outer"))
            await desk.bank.revise("add_two", _swapped(adding))
            inner, skill = desk.store.head("add_two"), desk.store.head("outer")
            report = await desk.bank.call_skill("outer", {"a": 1})
        assert (kept.skill_state, inner.version) == ("active", 2)
        assert [(node.skill.name, node.skill.version) for node in skill.workflow.nodes] == [("add_two", 1)]
        assert [str(pin.tool) for pin in skill.pins] == ["calculator/add"]
        assert report.outputs == {"sum": 3}


def _put_around(desk, document, version, *, around):
    """Put a version of the kept skill into the store that calls another one, unseen by any gate."""
    body = {**_calling_skill(document, around), "name": "add_two"}
    body["inputs"] = {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}
    body["nodes"][0]["arguments"] = {"a": "$inputs.a"}
    workflow = parse_workflow(body)
    first = desk.store.version("add_two", 1)
    hashes = {"content_hash": content_hash(workflow), "shape_hash": shape_hash(workflow)}
    skill = first.model_copy(update={"version": version, "workflow": workflow, **hashes})
    desk.store.add_version(skill, expected_head=desk.store.head("add_two").version)


def _swapped(adding):
    return {**adding, "nodes": [{**adding["nodes"][0], "arguments": {"a": 2, "b": "$inputs.a"}}]}


async def _kept(desk, adding):
    request = RepairRequest(inputs={"a": 1}, checks=Checks(("output.sum == `3`",)), save="add_two")
    report = await desk.bank.repair(adding, request)
    assert report.skill_state == "active", report.skill_reason


def _calling_skill(document, version):
    return document(
        {"id": "inner", "skill": {"name": "add_two", "version": version}, "arguments": {"a": 3}},
        outputs={"sum": "$nodes.inner.output#/sum"},
    )
