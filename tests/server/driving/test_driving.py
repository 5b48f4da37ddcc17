"""Driving: a model goes step by step; what it did is a workflow, verified, repaired and learned like any."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from catalog.schema import is_valid
from server.backends.backend import Request
from server.backends.errors import BackendUnavailable
from server.backends.roles import with_backend
from server.backends.scripted import ScriptedBackend
from server.bank import Bank
from server.bank.exchange.training import TrainingRequest
from server.context.policy import ContextPolicy
from server.driving.options import DriveOptions
from server.reports import RepairReport
from server.requests import Budget, SolveRequest
from server.training.export import ExportOptions
from server.verification import Checks

pytestmark = pytest.mark.anyio
TASK = "Multiply 6 by 7, then add 8."
RIGHT = Checks(("output.total == `50`",))


def step(tool: str, **arguments: Any) -> str:
    return json.dumps({"tool": tool, "arguments": arguments})


WELL = (
    step("multiply", a="$inputs.a", b="$inputs.b"),
    step("add", a="$r1#/result", b=8),
    step("finish", total="$r2#/result"),
)


async def driven(desk: Any, *said: Any, backend: Any = None, **changed: Any):
    model = backend or ScriptedBackend(list(said))
    bank = Bank(replace(desk.context, models=with_backend(model)))
    options = {
        "inputs": {"a": 6, "b": 7},
        "checks": RIGHT,
        "budget": Budget(seconds=60, calls=60, candidates=60),
        "drive": DriveOptions(),
        **changed,
    }
    return await bank.solve(
        changed.pop("task", TASK), SolveRequest(**{k: v for k, v in options.items() if k != "task"})
    )


async def test_steps_become_a_workflow_that_is_verified_and_learned(open_desk):
    async with open_desk() as desk:
        report = await driven(desk, *WELL)
    assert (report.status, report.outputs) == ("verified", {"total": 50})
    assert [node["id"] for node in report.workflow["nodes"]] == ["r1", "r2"]
    assert report.workflow["nodes"][1]["arguments"] == {"a": "$nodes.r1.output#/result", "b": 8}
    assert (report.drive.ended, report.drive.steps, report.drive.template) == ("finished", 3, "window")
    assert report.skill is not None
    assert report.calls == 2  # the workflow is answered from what the steps were answered


async def test_a_wrong_step_is_told_with_its_remedy_and_the_next_one_is_right(open_desk):
    async with open_desk() as desk:
        report = await driven(
            desk,
            step("times", a=6, b=7),
            step("multiply", a="$inputs.a"),
            step("multiply", a="$inputs.a", b="$inputs.c"),
            *WELL,
        )
    assert report.status == "verified"
    told = report.drive.snapshots[3].messages[-1].text
    assert "there is no tool 'times'; there are" in report.drive.snapshots[1].messages[-1].text
    assert "b" in report.drive.snapshots[2].messages[-1].text
    assert "c" in told


async def test_what_is_driven_wrong_falls_into_repair(open_desk):
    async with open_desk() as desk:
        report = await driven(
            desk,
            step("multiply", a="$inputs.a", b="$inputs.b"),
            step("add", a="$r1#/result", b=7),
            step("finish", total="$r2#/result"),
        )
    assert report.initial_faults
    assert report.status == "verified"
    assert report.edits


async def test_a_write_happens_once_however_often_the_workflow_is_run(open_desk):
    async with open_desk() as desk:
        report = await driven(
            desk,
            step("save_note", text="$inputs.text"),
            step("finish", count="$r1#/count"),
            task="Save the note 'milk'.",
            inputs={"text": "milk"},
            checks=Checks(("output.count == `1`",)),
            allow=("notes/save_note",),
        )
        sent = [call.arguments for call in desk.servers["notes"].log.calls]
    assert report.status == "verified"
    assert sent == [{"text": "milk"}]


async def test_a_call_that_needs_consent_is_told_as_a_problem(open_desk):
    async with open_desk() as desk:
        report = await driven(
            desk,
            step("save_note", text="milk"),
            step("finish", count=1),
            task="Save the note 'milk'.",
            checks=Checks(()),
        )
    assert report.status == "failed"
    assert "no call gave 1" in report.drive.snapshots[-1].messages[-1].text or report.drive.ended == "model"


@pytest.mark.parametrize(
    ("said", "options", "ended"),
    [
        pytest.param([step("add", a=1, b=1)] * 6, {}, "loop", id="the-same-call"),
        pytest.param(["what?"] * 6, {}, "unreadable", id="no-steps"),
        pytest.param([step("add", a=n, b=1) for n in range(9)], {"steps": 4}, "steps", id="too-many-steps"),
        pytest.param([step("add", a=1, b=1), BackendUnavailable("gone")], {}, "model", id="no-answer"),
    ],
)
async def test_a_drive_ends_with_its_reason(open_desk, said: list[Any], options: dict[str, Any], ended: str):
    async with open_desk() as desk:
        report = await driven(
            desk, *said, drive=DriveOptions(**options), checks=Checks(("output.x == `99`",))
        )
    assert report.drive.ended == ended


async def test_a_budget_of_tokens_ends_it_before_the_call_that_could_pass_it(open_desk):
    async with open_desk() as desk:
        budget = Budget(seconds=60, calls=60, candidates=60, tokens=600)
        report = await driven(desk, *WELL, budget=budget)
    assert report.drive.ended == "tokens"
    assert report.tokens <= 600


async def test_without_a_model_it_says_so(open_desk):
    async with open_desk() as desk:
        report = await desk.bank.solve(TASK, SolveRequest(drive=DriveOptions()))
    assert report.status == "failed"
    assert "the driver needs a model" in report.faults[0].message


async def test_a_verified_skill_is_offered_to_the_next_drive(open_desk):
    async with open_desk() as desk:
        first = await driven(desk, *WELL, save="scaled_sum")
        assert first.skill == "scaled_sum"
        await desk.bank.approve("scaled_sum") if first.skill_state != "active" else None
        inputs = {"a": 2, "b": 3}
        report = await driven(
            desk,
            step("scaled_sum", **{key: f"$inputs.{key}" for key in inputs}),
            step("finish", total="$r1#/total"),
            inputs=inputs,
            checks=Checks(("output.total == `14`",)),
        )
    assert "Tested skills" in report.drive.snapshots[0].messages[0].text
    assert report.status == "verified"
    assert report.workflow["nodes"][0]["skill"]["name"] == "scaled_sum"


def remembering() -> Callable[[Request], str]:
    """Return a model that hashes a chain of texts and sees nothing but what it is shown."""

    def say(request: Request) -> str:
        shown = "\n".join(message.text for message in request.messages)
        if "gets too long" in shown:
            return json.dumps({"decisions": [{"id": "r1", "action": "drop"}]})
        done = shown.count('"tool": "sha256"')
        source = "$inputs.a" if not done else f"$r{done}#/digest"
        return step("finish", digest=f"$r{done}#/digest") if done == 6 else step("sha256", text=source)

    return say


@pytest.mark.parametrize("template", ["causal", "reasoned", "window", "self"])
async def test_every_template_carries_a_long_task(open_desk, template: Any):
    policy = ContextPolicy(template, budget_tokens=1_400, keep=1, clear_at_least=0, trigger=0.3)
    async with open_desk() as desk:
        report = await driven(
            desk,
            backend=ScriptedBackend(remembering()),
            task="Hash the text six times over.",
            inputs={"a": "milk"},
            checks=Checks(("length(output.digest) == `64`",)),
            drive=DriveOptions(policy=policy),
        )
    assert (report.status, report.drive.ended) == ("verified", "finished")
    assert len(report.workflow["nodes"]) == 6
    last = "\n".join(message.text for message in report.drive.snapshots[-1].messages)
    assert ("cleared" in last) == (template in ("window", "self"))


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"repeats": 0}, {"preview": 0}])
def test_options_that_make_no_sense_are_refused(wrong: dict[str, int]):
    with pytest.raises(ValueError, match="at least 1"):
        DriveOptions(**wrong)


async def test_a_drive_is_kept_and_exported_with_its_tools(open_desk):
    async with open_desk() as desk:
        await driven(desk, *WELL)
        await driven(desk, step("multiply", a=6, b="six"), step("finish", total=50), *WELL[:1], "?")
        kept = desk.context.store.drives(desk.context.principal).drives(10)
        exported = await desk.bank.export_training(TrainingRequest(ExportOptions(test_share=0.0)))
        assert await desk.bank.export_training(TrainingRequest(ExportOptions(test_share=0.0))) == exported
    assert [one.report["status"] for one in kept] == ["verified", "verified"]  # one of them by repair
    lines = [json.loads(line) for line in exported.files["episodes.jsonl"].splitlines()]
    drives = {one["provenance"]["id"]: one for one in lines if one["provenance"]["source"] == "drive"}
    assert [drives[one.id]["outcome"]["score"] for one in kept] == [0.0, 1.0]
    for one in drives.values():
        assert not one["provenance"]["simulated"]
        assert one["provenance"]["servers"] == ["calculator"]
        assert {"add", "multiply"} <= {tool["function"]["name"] for tool in one["tools"]}
    rows = [json.loads(line) for line in exported.files["trl/grpo.train.jsonl"].splitlines()]
    assert [row["tools"] for row in rows if row["episode"].startswith("drive:")] == [[], []]


async def test_a_drive_is_kept_without_secrets_its_spans_on_the_same_words(open_desk):
    def hide(value: Any) -> Any:
        return json.loads(json.dumps(value).replace("8123", "[redacted]"))

    async with open_desk() as desk:
        context = replace(desk.context, redact=hide)
        backend = ScriptedBackend([step("finish", total="8123")])
        bank = Bank(replace(context, models=with_backend(backend)))
        request = SolveRequest(drive=DriveOptions(steps=1), experiences=("Add last.",))
        await bank.solve("Say 8123.", request)
        [kept] = context.store.drives(context.principal).drives(10)
    assert "8123" not in json.dumps(kept.report)
    drive = RepairReport.model_validate(kept.report).drive
    assert drive is not None
    [asked] = [one for one in drive.snapshots[0].messages if one.spans]
    assert asked.text[asked.spans[0].start : asked.spans[0].end].strip() == "Add last."


async def test_drives_teach_and_every_other_one_is_told_what_they_taught(open_desk):
    async with open_desk(learning="off") as desk:
        reports = [await driven(desk, *WELL) for _ in range(3)]
        kept = await desk.bank.list_experience()
    assert [report.status for report in reports] == ["verified"] * 3
    [unit] = [told.unit for told in kept.units if told.unit.kind == "success"]
    assert (unit.tally.guided, unit.tally.unguided, unit.tally.helped) == (1, 1, 1)
    spans = [[span for one in report.drive.snapshots[0].messages for span in one.spans] for report in reports]
    assert [len(found) for found in spans] == [0, 1, 0]
    assert spans[1][0].unit == unit.id


async def test_what_came_to_the_same_is_not_offered_to_the_next_answer_which_is_told_how_to_finish(open_desk):
    asked: list[Request] = []

    def say(request: Request) -> str:
        asked.append(request)
        return [*[step("multiply", a=6, b=7)] * 2, *WELL[1:]][len(asked) - 1]

    async with open_desk() as desk:
        report = await driven(desk, backend=ScriptedBackend(say))
    assert report.status == "verified"
    offered = [request.schema["properties"]["tool"]["enum"] for request in asked if request.schema]
    assert ["multiply" in names for names in offered] == [True, True, False, True]
    assert all({"add", "finish", "recall"} <= set(names) for names in offered)
    told = asked[2].messages[-1].text
    assert '{"tool": "finish", "arguments": {"total": "$r1#/result"}}' in told


async def test_a_plan_that_rules_offer_is_one_that_the_schema_takes(open_desk):
    asked: list[Request] = []

    def say(request: Request) -> str:
        asked.append(request)
        return json.dumps({**json.loads(WELL[len(asked) - 1]), "plan": "then $r1"})

    async with open_desk() as desk:
        await driven(desk, backend=ScriptedBackend(say))
    assert asked[0].schema is not None
    assert '"plan"' in asked[0].messages[0].text
    assert is_valid(asked[0].schema, json.loads(WELL[0]) | {"plan": "then $r1"})
    assert is_valid(asked[0].schema, json.loads(WELL[0]))
    assert any("then $r1" in message.text for message in asked[1].messages)


async def test_where_a_whole_answer_does_not_fit_its_parts_are_told(open_desk):
    async with open_desk() as desk:
        report = await driven(desk, WELL[0], step("add", a="$r1", b=8), *WELL[1:])
    assert report.status == "verified"
    told = report.drive.snapshots[2].messages[-1].text
    assert "argument 'a'" in told
    assert told.endswith("Parts of what you passed on: $r1#/result")
