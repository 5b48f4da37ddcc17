"""Repairing and solving: what costs happens once, the world is not repaired, checks stay unseen."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from catalog.effects import Effect
from catalog.search import ToolIndex
from catalog.testing import Reply, ScriptedServer, ScriptedTool
from server.backends.roles import with_backend
from server.backends.scripted import ScriptedBackend
from server.bank.bank import Bank
from server.bank.errors import NotSaved
from server.bank.running import static_faults
from server.evolution.errors import RecordExists, RecordMismatch
from server.evolution.options import SearchOptions
from server.execution.consent import GrantAll
from server.planning.view import View, World
from server.reports import exit_code
from server.requests import Budget, RepairRequest, SolveRequest
from server.verification import Checks
from skills_store.workflow.faults import CheckFailed, PostconditionFailed
from skills_store.workflow.model import parse_workflow

pytestmark = pytest.mark.anyio

FIVE = Checks(("output.sum == `5`",))


@pytest.fixture
def broken(node, document):
    """Adds 3 and 2 once its misnamed argument is mended."""
    return document(
        node("sum", "calculator/add", {"a": "$inputs.a", "c": 2}),
        outputs={"sum": "$nodes.sum.output#/result"},
        inputs={"a": {"type": "number"}},
    )


def request(**more):
    return RepairRequest(**{"inputs": {"a": 3}, "checks": FIVE, **more})


async def test_a_broken_document_is_repaired_and_told(open_desk, broken):
    async with open_desk() as desk:
        report = await desk.bank.repair(broken, request())
        kept = desk.store.trace(report.trace_id)
    assert (report.status, report.outputs, report.faults) == ("verified", {"sum": 5}, ())
    assert {fault.kind for fault in report.initial_faults} == {"missing_argument", "unexpected_argument"}
    assert [edit.kind for edit in report.edits] == ["edit_parameter"]
    assert report.workflow["nodes"][0]["arguments"] == {"a": "$inputs.a", "b": 2}
    assert (report.lineage[0].parent, report.candidates) == (None, len(report.lineage))
    assert "b" in report.diff
    assert (kept.status, kept.outputs) == ("verified", {"sum": 5})
    assert (report.skill, report.skill_reason) == (None, "")


class TestSearching:
    """What a repair does beyond its ladder, through the bank."""

    SIX = Checks(("output.sum == `-6`",))

    async def test_by_default_and_without_a_model_the_ladder_is_all_there_is(self, open_desk, broken):
        async with open_desk() as desk:
            report = await desk.bank.repair(broken, request(checks=self.SIX, budget=Budget(candidates=60)))
        assert {record.strategy for record in report.lineage} == {"ladder"}
        assert report.tokens == 0

    async def test_a_population_goes_on_from_where_the_ladder_ends(self, open_desk, broken):
        wanted = SearchOptions(strategy="population", seed=4)
        async with open_desk() as desk:
            report = await desk.bank.repair(
                broken, request(checks=self.SIX, budget=Budget(candidates=80), search=wanted)
            )
        assert [r.strategy for r in report.lineage[:40]] == ["ladder"] * 40
        assert {r.strategy for r in report.lineage[40:]} == {"population"}
        assert {r.mode for r in report.lineage[40:]} <= {"explore", "exploit", "meta"}
        assert (report.status, report.candidates, report.budget_spent) == ("failed", 80, "candidates")

    async def test_a_model_that_edits_is_asked_when_the_ladder_has_not_found_it(self, open_desk, broken):
        answer = json.dumps(
            {"edits": [{"op": "edit_parameter", "node": "sum", "parameter": "b", "value": -9}]}
        )
        model = ScriptedBackend(lambda _: answer)
        async with open_desk() as desk:
            bank = Bank(replace(desk.context, models=with_backend(model)))
            report = await bank.repair(
                broken, request(checks=self.SIX, budget=Budget(candidates=200, tokens=20_000))
            )
        assert report.status == "verified"
        assert report.outputs == {"sum": -6}
        assert 0 < report.tokens <= 20_000
        assert "model" in {record.by for record in report.lineage}
        assert {request.schema_name for request in model.requests} == {"edits"}

    async def test_without_tokens_no_model_is_asked(self, open_desk, broken):
        model = ScriptedBackend([])
        async with open_desk() as desk:
            bank = Bank(replace(desk.context, models=with_backend(model)))
            await bank.repair(broken, request(checks=self.SIX, budget=Budget(candidates=30, tokens=0)))
        assert model.requests == []

    async def test_a_record_is_kept_taken_up_and_refused_for_another(
        self, open_desk, broken, tmp_path
    ):
        path, wanted = tmp_path / "search.jsonl", SearchOptions(strategy="population", seed=4)
        spent = Budget(candidates=40)
        async with open_desk() as desk:
            first = await desk.bank.repair(
                broken, request(checks=self.SIX, budget=spent, search=wanted, record=path)
            )
        assert len(path.read_text().splitlines()) > 40
        async with open_desk() as desk:
            again = await desk.bank.repair(
                broken, request(checks=self.SIX, budget=spent, search=wanted, resume=path)
            )
            ids = [record.id for record in again.lineage]
            assert ids[:40] == [record.id for record in first.lineage]
            assert again.candidates == 80
            with pytest.raises(RecordMismatch, match="other checks"):
                await desk.bank.repair(broken, request(budget=spent, resume=path))
            with pytest.raises(RecordExists):
                await desk.bank.repair(broken, request(checks=self.SIX, budget=spent, record=path))
            other = {**broken, "outputs": {"sum": "$nodes.sum.output"}}
            with pytest.raises(RecordMismatch, match="another workflow"):
                await desk.bank.repair(other, request(checks=self.SIX, budget=spent, resume=path))


class TestBudgets:
    @pytest.mark.parametrize("part", ["seconds", "calls", "candidates"])
    async def test_zero_returns_the_checked_original_and_runs_nothing(self, open_desk, broken, part):
        async with open_desk() as desk:
            await desk.context.snapshot()
            budget = Budget(**{part: 0})
            report = await desk.bank.repair(broken, request(budget=budget))
            known = static_faults(parse_workflow(broken), desk.context.known(), desk.context)
            assert desk.count() == 0
        assert (report.status, report.calls, report.candidates) == ("failed", 0, 0)
        assert report.workflow == parse_workflow(broken).to_json()
        assert list(report.faults) == known
        assert report.budget_spent == part
        assert report.trace_id is None

    async def test_zero_does_not_connect(self, open_desk, broken):
        async with open_desk() as desk:
            await desk.bank.repair(broken, request(budget=Budget(seconds=0)))
            assert all(server.starts == 0 for server in desk.servers.values())

    async def test_zero_says_a_sound_original_was_not_verified(self, open_desk, broken):
        broken["nodes"][0]["arguments"] = {"a": 3, "b": 2}
        async with open_desk() as desk:
            await desk.context.snapshot()
            report = await desk.bank.repair(broken, request(budget=Budget(calls=0)))
        assert (report.status, report.faults) == ("unverified", ())
        assert exit_code(report.status, report.faults) == 1

    async def test_zero_plans_a_task_and_runs_nothing(self, open_desk):
        async with open_desk() as desk:
            await desk.context.snapshot()
            report = await desk.bank.solve(
                "Compute the sha256 hash of the text 'hello'", SolveRequest(budget=Budget(candidates=0))
            )
            assert desk.count() == 0
        assert (report.status, report.route, report.budget_spent) == ("unverified", "dynamic", "candidates")
        assert report.workflow["nodes"]

    async def test_one_that_ends_before_the_first_answer_is_no_error(self, open_desk, node, document):
        slow = ScriptedServer([ScriptedTool("wait", [{"done": True}], latency_seconds=60)])
        waiting = document(node("n", "slow/wait"), outputs={"done": "$nodes.n.output#/done"})
        async with open_desk(
            {"slow": slow}, effects={"slow": {"*": Effect.PURE}}, timeout_seconds=90
        ) as desk:
            report = await desk.bank.repair(waiting, RepairRequest(budget=Budget(seconds=0.2)))
        assert (report.status, report.budget_spent) == ("unverified", "seconds")
        assert report.workflow == parse_workflow(waiting).to_json()

    async def test_is_kept_in_candidates(self, open_desk, broken):
        async with open_desk() as desk:
            report = await desk.bank.repair(
                broken, request(checks=Checks(("output.sum == `77`",)), budget=Budget(candidates=5))
            )
        assert (report.status, report.budget_spent) == ("failed", "candidates")
        assert report.candidates <= 5


class TestBadInput:
    @pytest.mark.parametrize(
        "written", [dict, json.dumps, lambda d: json.dumps(d).encode()], ids=["value", "text", "bytes"]
    )
    async def test_a_malformed_document_gets_faults(self, open_desk, broken, written):
        async with open_desk() as desk:
            report = await desk.bank.repair(written({**broken, "retries": 3}), request())
            assert desk.count() == 0
        assert report.status == "failed"
        assert [(f.kind, f.pointer) for f in report.faults] == [("malformed", "/retries")]

    async def test_wrong_inputs_are_faults_and_nothing_runs(self, open_desk, broken):
        async with open_desk() as desk:
            report = await desk.bank.repair(broken, request(inputs={"a": "three"}))
            assert desk.count() == 0
        assert [(f.kind, f.pointer) for f in report.faults] == [("invalid_argument", "/inputs/a")]

    async def test_a_name_that_cannot_be_one_is_refused_before_anything_runs(self, open_desk, broken):
        async with open_desk() as desk:
            with pytest.raises(NotSaved, match="letter"):
                await desk.bank.repair(broken, request(save="123"))
            with pytest.raises(NotSaved, match="letter"):
                await desk.bank.solve("Add 3 and 2", SolveRequest(save="!"))
            assert desk.count() == 0

    async def test_a_task_no_tool_fits_says_so(self, open_desk):
        async with open_desk() as desk:
            report = await desk.bank.solve("zzz qqq", SolveRequest())
        assert (report.status, report.route) == ("failed", "dynamic")
        assert "no known tool fits" in report.faults[0].message


class TestWhatCosts:
    @pytest.mark.parametrize(
        "check", ["output.text == 'never'", "output.count == `99`"], ids=["text", "count"]
    )
    async def test_a_repair_calls_a_write_once_whatever_it_tries(self, open_desk, node, document, check):
        name = check.split(" ")[0].removeprefix("output.")
        saving = document(
            node("hash", "hashes/sha256", {"text": "$inputs.text"}),
            node("save", "notes/save_note", {"text": "$nodes.hash.output#/digest"}),
            outputs={name: f"$nodes.save.output#/{name}"},
            inputs={"text": {"type": "string"}},
        )
        async with open_desk(consent=GrantAll()) as desk:
            wanted = RepairRequest(
                task="save the text 'a' as a note", inputs={"text": "a"}, checks=Checks((check,))
            )
            report = await desk.bank.repair(saving, wanted)
            assert desk.count("save_note") == 1
        assert (report.status, report.candidates > 3) == ("failed", True)
        assert {str(held.tool) for held in report.not_repeated} == {"notes/save_note"}

    async def test_a_repair_that_needs_consent_shows_the_call_and_tries_nothing_else(
        self, open_desk, node, document
    ):
        saving = document(
            node("save", "notes/save_note", {"text": "a"}), outputs={"count": "$nodes.save.output#/count"}
        )
        async with open_desk() as desk:
            report = await desk.bank.repair(saving, RepairRequest())
            assert desk.count("save_note") == 0
        assert (report.status, report.candidates) == ("needs_approval", 1)
        assert report.faults[0].arguments == {"text": "a"}
        assert exit_code(report.status, report.faults) == 3
        assert "notes/save_note" in report.not_repeated[0].allow

    async def test_solving_calls_a_write_once_over_all_its_plans(self, open_desk):
        async with open_desk() as desk:
            report = await desk.bank.solve(
                "Save the note 'buy milk' and then list the notes",
                SolveRequest(checks=Checks(("output.result == 'never'",)), allow=("notes/*",)),
            )
            assert desk.count("save_note") == 1
        assert report.status == "failed"


class TestTheWorld:
    async def test_a_timeout_is_reported_and_not_repaired(self, open_desk, node, document):
        slow = ScriptedServer(
            [
                ScriptedTool("wait", [{"done": True}], latency_seconds=60),
                ScriptedTool("wait_too", [{"done": True}]),
            ]
        )
        waiting = document(
            node("n", "slow/wait", timeout_seconds=0.1), outputs={"done": "$nodes.n.output#/done"}
        )
        async with open_desk({"slow": slow}, effects={"slow": {"*": Effect.PURE}}) as desk:
            report = await desk.bank.repair(waiting, RepairRequest())
            assert desk.count("wait_too") == 0
        assert (report.status, report.edits, report.candidates) == ("failed", (), 1)
        assert {fault.kind for fault in report.faults} == {"timeout"}
        assert exit_code(report.status, report.faults) == 4

    async def test_a_server_that_was_never_reached_is_named_and_no_tool_takes_its_place(
        self, open_desk, node, document
    ):
        def refuses():
            raise RuntimeError("it does not start")

        servers = {
            "away": ScriptedServer(refuses),
            "near": ScriptedServer([ScriptedTool("look", [{"seen": 1}])]),
        }
        looking = document(node("n", "away/look"), outputs={"seen": "$nodes.n.output#/seen"})
        async with open_desk(servers, effects={"near": {"*": Effect.PURE}}) as desk:
            report = await desk.bank.repair(looking, RepairRequest())
            assert desk.count() == 0
        assert (report.status, report.edits) == ("failed", ())
        assert [fault.kind for fault in report.faults] == ["server_unavailable"]
        assert exit_code(report.status, report.faults) == 4


@pytest.mark.parametrize(
    "fault",
    [
        CheckFailed(message="output.sum == 'SECRET-LITERAL': 5 is not it", found="SECRET-LITERAL"),
        PostconditionFailed(message="expected SECRET-LITERAL", found={"x": "SECRET-LITERAL"}, node="n"),
    ],
    ids=["assertion", "postcondition"],
)
async def test_proposers_never_see_what_a_check_compares_with(open_desk, broken, fault):
    async with open_desk() as desk:
        snapshot = await desk.context.snapshot()
        world = World("task", {}, snapshot, desk.context.config.effects, ToolIndex(snapshot))
    view = View(world, parse_workflow(broken), faults=(fault,))
    assert "SECRET-LITERAL" not in "".join(shown.model_dump_json() for shown in view.visible_faults)


async def test_no_candidate_is_made_of_what_the_assertion_says(open_desk, broken):
    secret = "c0ffee-in-the-assertion"
    async with open_desk() as desk:
        report = await desk.bank.repair(
            broken, request(checks=Checks((f"output.sum == '{secret}'",)), budget=Budget(candidates=60))
        )
        sent = [call.arguments for server in desk.servers.values() for call in server.log.calls]
    assert report.candidates > 5
    assert secret not in json.dumps([*sent, report.workflow])


async def test_a_repair_without_any_check_succeeds_and_is_not_called_verified(open_desk, broken):
    async with open_desk() as desk:
        report = await desk.bank.repair(broken, request(checks=Checks()))
    assert (report.status, report.outputs) == ("succeeded", {"sum": 5})


async def test_large_outputs_come_back_in_full(open_desk, node, document):
    big = "x" * 50_000
    server = ScriptedServer([ScriptedTool("big", [{"text": big}])])
    reading = document(node("big", "s/big"), outputs={"text": "$nodes.big.output#/text"})
    async with open_desk({"s": server}, effects={"s": {"*": Effect.PURE}}) as desk:
        report = await desk.bank.repair(reading, RepairRequest())
    assert report.outputs == {"text": big}


class TestSolving:
    @pytest.mark.parametrize(
        ("task", "check", "outputs"),
        [
            pytest.param(
                "Convert 5 kilometers to meters",
                "output.value == `5000`",
                {"value": 5000},
                id="one-tool",
            ),
            pytest.param("Add the numbers 3 and 4", "output.result == `7`", {"result": 7}, id="two-numbers"),
            pytest.param(
                "Compute the sha256 hash of the text 'hello'",
                "starts_with(output.digest, '2cf24dba')",
                {"digest": "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"},
                id="quoted-text",
            ),
        ],
    )
    async def test_a_simple_task_is_planned_without_a_model(self, open_desk, task, check, outputs):
        async with open_desk() as desk:
            report = await desk.bank.solve(task, SolveRequest(checks=Checks((check,))))
        assert (report.status, report.outputs) == ("verified", outputs), report.faults
        assert (report.route, report.tokens) == ("dynamic", 0)
        assert report.route_reasons == ("no active skill is this task's",)

    async def test_given_inputs_are_used(self, open_desk):
        async with open_desk() as desk:
            report = await desk.bank.solve(
                "Multiply two numbers",
                SolveRequest(inputs={"a": 6, "b": 7}, checks=Checks(("output.product == `42`",))),
            )
        assert (report.status, report.outputs) == ("verified", {"product": 42}), report.faults
        assert report.workflow["nodes"][0]["arguments"] == {"a": "$inputs.a", "b": "$inputs.b"}

    async def test_counts_what_all_its_plans_spent(self, open_desk):
        async with open_desk() as desk:
            report = await desk.bank.solve(
                "Add the numbers 3 and 4",
                SolveRequest(checks=Checks(("output.result == `99`",)), budget=Budget(candidates=30)),
            )
            assert report.calls == desk.count()
        assert report.status == "failed"
        assert report.candidates <= 30


async def test_a_tool_that_fails_in_disguise_is_a_fault(open_desk, node, document):
    server = ScriptedServer([ScriptedTool("look", [Reply.text("Error: no such thing", is_error=True)])])
    looking = document(node("n", "s/look"), outputs={"seen": "$nodes.n.output"})
    async with open_desk({"s": server}, effects={"s": {"*": Effect.PURE}}) as desk:
        report = await desk.bank.repair(looking, RepairRequest())
    assert report.status == "failed"
    assert [fault.kind for fault in report.faults] == ["tool_error"]
