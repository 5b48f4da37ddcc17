"""skills list, show, run, test, approve, reject, rollback, retire."""

from __future__ import annotations

from io import StringIO

import pytest

from catalog.effects import Effect
from catalog.tools import ToolId
from server.bank.errors import NotDecided
from server.reports import (
    DeletedReport,
    MoveReport,
    NeededTool,
    PlanningSaved,
    RunCost,
    RunReport,
    ShownSkill,
    SkillReport,
    SkillsReport,
    Standing,
    TestOutcome,
    TestReport,
    UseReport,
)
from skills_store.errors import IllegalTransition, SkillInUse, UnknownSkill, VersionConflict
from skills_store.skill import (
    AdmissionCheck,
    AdmissionVerdict,
    Pin,
    Provenance,
    RecordedCall,
    ReplayTest,
    Signature,
    Skill,
)
from skills_store.trace import Verification
from skills_store.workflow.model import parse_workflow

CONVERT = ToolId("units", "convert")
ROUND = ToolId("mathematics", "round")
WORKFLOW = parse_workflow(
    {
        "name": "to_f",
        "inputs": {"type": "object", "properties": {"c": {"type": "number"}}},
        "nodes": [
            {
                "id": "conv",
                "tool": {"server": "units", "tool": "convert"},
                "arguments": {"value": "$inputs.c"},
            },
            {
                "id": "round",
                "tool": {"server": "mathematics", "tool": "round"},
                "arguments": {"x": "$nodes.conv.output#/value"},
            },
        ],
        "outputs": {"f": "$nodes.round.output#/result"},
    }
)
SKILL = Skill(
    name="to_f",
    version=2,
    state="active",
    reason="all gates pass",
    description="Convert Celsius to Fahrenheit.",
    workflow=WORKFLOW,
    content_hash="sha256:1",
    shape_hash="sha256:2",
    signature=Signature(
        input_schema={
            "type": "object",
            "properties": {
                "c": {"type": "number", "description": "Degrees Celsius"},
                "digits": {"type": ["integer", "null"]},
            },
            "required": ["c"],
        },
        output_schema={"type": "object", "properties": {"f": {"type": "number"}}, "required": ["f"]},
    ),
    tests=(
        ReplayTest(
            name="original",
            inputs={"c": 21},
            outputs={"f": 69.8},
            volatile=("/at",),
            recorded=(RecordedCall(node="conv", tool=CONVERT, arguments={}, output=1),),
        ),
    ),
    pins=(Pin(tool=CONVERT, contract_hash="sha256:0123456789abcdef", effect=Effect.PURE),),
    provenance=Provenance(verifications=(Verification(by="assertion", passed=True, detail="output.f"),)),
    verdict=AdmissionVerdict(
        state="active",
        reason="all gates pass",
        checks=(AdmissionCheck(name="varied_runs", gate="function", passed=False, detail="1 of 2"),),
    ),
)
NOT_USED = {
    "uses": 0,
    "successes": 0,
    "world_faults": 0,
    "likely_at_least": 0,
    "round_trips_saved": 0,
    "planning": None,
}
SHOWN = ShownSkill(
    **dict(SKILL),
    standing=Standing(
        in_use=2,
        pinned=2,
        published=True,
        moves=(
            MoveReport(before=None, after="proposed", by="system", reason="added", at=1),
            MoveReport(before="proposed", after="active", by="person", reason="approved", at=2),
        ),
        tools=(
            NeededTool(server="units", tool="convert", effect=Effect.PURE, configured=True, holds=True),
            NeededTool(server="mathematics", tool="round", effect=Effect.READ, configured=True, holds=False),
            NeededTool(server="gone", tool="away", effect=Effect.UNKNOWN, configured=False, holds=None),
        ),
        learned=RunCost(runs=1, calls=2, seconds=0.5, median=0.5),
        admission_seconds=0,
        use=UseReport(
            uses=5,
            successes=3,
            world_faults=1,
            likely_at_least=0.3,
            cost=RunCost(runs=2, calls=4, seconds=1, median=0.5),
            round_trips_saved=3,
            planning=PlanningSaved(
                runs=2, tokens_a_run=612.5, seconds_a_run=4.25, tokens=1838, seconds=12.75
            ),
        ),
    ),
)
MOVED = SkillReport(name="to_f", version=1, state="active", reason="rolled back")


def test_skills_list_shows_state_and_use(cli):
    listed = SkillReport(
        name="to_f",
        version=2,
        state="active",
        inputs=("c",),
        outputs=("f",),
        uses=4,
        successes=3,
        description="Convert.",
    )
    cli.bank.answers["list_skills"] = SkillsReport(skills=(listed,))
    assert cli("skills", "list").out.splitlines()[1].split() == [
        *("to_f", "2", "active", "c", "f", "3/4", "Convert.")
    ]
    shown = cli("skills", "list", "--json").json["skills"][0]
    assert (shown["name"], shown["version"], shown["state"]) == ("to_f", 2, "active")


def test_an_empty_bank_says_how_to_fill_it(cli):
    cli.bank.answers["list_skills"] = SkillsReport(skills=())
    assert "--save NAME" in cli("skills", "list").out


def test_skills_show_fits_a_skill_on_one_screen(cli):
    cli.bank.answers["show_skill"] = SHOWN
    ran = cli("skills", "show", "to_f", "--version", "2")
    assert cli.bank.asked == [("show_skill", "to_f", 2)]
    assert ran.out == (
        "to_f version 2  active  all gates pass\n"
        "Convert Celsius to Fahrenheit.\n"
        "  proposed → active by a person  approved\n"
        "  in use, pinned to version 2, clients see it as a tool\n"
        "\nInputs\n  c number  Degrees Celsius\n  digits integer or null, optional  \n"
        "\nOutputs\n  f number  \n"
        "\nGraph\n  conv  units/convert\n  round  mathematics/round  ← conv\n"
        "\nEvidence\n  ✓ assertion  output.f\n  ✗ function: varied_runs  1 of 2\n"
        "\nTests\n  original (original, 1 recorded calls, 1 volatile)\n"
        "\nNeeds\n  ✓ units/convert  pure  as it was when verified\n"
        "  ✗ mathematics/round  read  changed or gone since\n"
        "  ✗ gone/away  unknown  its server is not configured\n"
        "\nCost and use\n  learned from 1 run: 2 calls, 0.5 s; judged in 0.0 s\n"
        "  3 of 5 uses right (likely at least 30%), 1 stopped by the world"
        "; 2 runs: 4 calls, 1.0 s, 0.50 s each\n"
        "  saved a client 3 round trips; of planning 1838 tokens and 12.8 s, by 2 planned runs of its family"
        " (612 tokens and 4.2 s each)\n"
    )
    shown = cli("skills", "show", "to_f", "--json").json
    assert shown == {**SKILL.model_dump(mode="json"), "standing": SHOWN.standing.model_dump(mode="json")}
    assert shown["standing"]["use"]["planning"]["tokens"] == 1838


def test_skills_show_says_what_is_not_known(cli):
    standing = SHOWN.standing.model_copy(
        update={"learned": None, "pinned": None, "use": UseReport(**{**NOT_USED, "cost": None})}
    )
    worded = SHOWN.provenance.model_copy(update={"worded_by": "local:qwen"})
    cli.bank.answers["show_skill"] = SHOWN.model_copy(
        update={"standing": standing, "origin": "user", "provenance": worded}
    )
    out = cli("skills", "show", "to_f").out
    assert "  learned from runs no longer kept; judged in 0.0 s\n  not used yet\n" in out
    assert "written by a person: the system does not change it, words by local:qwen\n" in out


def test_skills_run_prints_outputs(cli):
    cli.bank.answers["run_skill"] = RunReport(status="succeeded", outputs={"f": 69.8})
    ran = cli("skills", "run", "to_f", "--inputs", '{"c": 21}')
    assert ran.code == 0
    assert '"f": 69.8' in ran.out
    assert cli.bank.asked == [("run_skill", "to_f", {"c": 21}, None)]


@pytest.mark.parametrize(("passed", "code"), [(True, 0), (False, 1)])
def test_skills_test_is_code_one_when_one_does_not_pass(cli, passed, code):
    outcomes = (TestOutcome(name="original", passed=passed, detail="f differs"),)
    cli.bank.answers["test_skill"] = TestReport(name="to_f", version=2, passed=passed, tests=outcomes)
    ran = cli("skills", "test", "to_f")
    assert ran.code == code
    assert f"{int(passed)} of 1 passed" in ran.out
    assert "f differs" in ran.out


def test_rollback_and_retire_pass_on_what_was_said(cli):
    cli.bank.answers = {"rollback": MOVED, "retire": MOVED}
    assert cli("skills", "rollback", "to_f", "1").out == "to_f version 1 is active: rolled back\n"
    cli("skills", "retire", "to_f", "--reason", "replaced")
    cli("skills", "retire", "to_f")
    assert cli.bank.asked == [
        ("rollback", "to_f", 1),
        ("retire", "to_f", "replaced"),
        ("retire", "to_f", "retired by a person"),
    ]


def test_pin_and_unpin_pass_on_what_was_said_and_show_what_stays(cli):
    cli.bank.answers = {"pin": MOVED.model_copy(update={"pinned": 1}), "unpin": MOVED}
    assert cli("skills", "pin", "to_f", "1").out == "to_f version 1 is active, pinned: rolled back\n"
    cli("skills", "pin", "to_f")
    assert cli("skills", "unpin", "to_f", "--json").json["pinned"] is None
    assert cli.bank.asked == [("pin", "to_f", 1), ("pin", "to_f", None), ("unpin", "to_f")]


def test_delete_asks_on_a_terminal_and_needs_yes_elsewhere(cli, monkeypatch):
    cli.bank.answers["delete"] = DeletedReport(name="to_f", versions=2, uses=7)
    refused = cli("skills", "delete", "to_f", "--json")
    assert (refused.code, refused.json["error"]["kind"]) == (3, "needs_approval")
    cli.interactive = True
    monkeypatch.setattr("sys.stdin", StringIO("n\ny\n"))
    assert cli("skills", "delete", "to_f").code == 3
    assert cli.bank.asked == []
    assert cli("skills", "delete", "to_f").out == "to_f is deleted: 2 versions, 7 uses\n"
    cli.interactive = False
    assert cli("skills", "delete", "to_f", "--yes", "--json").json == {
        "name": "to_f",
        "versions": 2,
        "uses": 7,
    }
    assert cli.bank.asked == [("delete", "to_f")] * 2


PROPOSED = SKILL.model_copy(update={"state": "proposed", "reason": "leaves lasting effects"})
APPROVED = SkillReport(name="to_f", version=2, state="active", reason="approved by a person")


def test_approve_shows_on_a_terminal_what_it_approves_and_asks_once(cli, monkeypatch):
    cli.bank.answers = {"proposal": PROPOSED, "approve": APPROVED}
    cli.interactive = True
    monkeypatch.setattr("sys.stdin", StringIO("y\n"))
    ran = cli("skills", "approve", "to_f")
    assert (ran.code, ran.out) == (0, "to_f version 2 is active: approved by a person\n")
    assert ran.err == (
        "to_f version 2  proposed  leaves lasting effects\n"
        "Convert Celsius to Fahrenheit.\n"
        "\nGraph\n  conv  units/convert\n  round  mathematics/round  ← conv\n"
        "\nFailed checks\n  ✗ function: varied_runs  1 of 2\n"
        "\nTools\n  units/convert  pure\n"
        "Approve to_f@2? Clients can then call it. [y/N]: "
    )
    assert cli.bank.asked == [("proposal", "to_f", None), ("approve", "to_f", 2)]


def test_what_a_person_does_not_approve_stays_as_it_is(cli, monkeypatch):
    cli.bank.answers = {"proposal": PROPOSED, "approve": APPROVED}
    cli.interactive = True
    monkeypatch.setattr("sys.stdin", StringIO("\n"))
    ran = cli("skills", "approve", "to_f", "--version", "2")
    assert (ran.code, ran.out) == (3, "")
    assert "not approved: to_f@2 stays proposed" in ran.err
    assert cli.bank.asked == [("proposal", "to_f", 2)]


@pytest.mark.parametrize("interactive", [False, True], ids=["no-terminal", "json-on-a-terminal"])
def test_approve_needs_yes_where_nobody_can_be_asked(cli, interactive):
    cli.bank.answers = {"proposal": PROPOSED, "approve": APPROVED}
    cli.interactive = interactive
    ran = cli("skills", "approve", "to_f", "--json")
    assert (ran.code, ran.json["error"]["kind"]) == (3, "needs_approval")
    assert "--yes" in ran.json["error"]["message"]
    assert cli.bank.asked == [("proposal", "to_f", None)]
    ran = cli("skills", "approve", "to_f", "--json", "--yes")
    assert (ran.code, ran.json) == (0, APPROVED.model_dump(mode="json"))


def test_reject_passes_on_its_reason_and_needs_one(cli):
    rejected = SkillReport(name="to_f", version=2, state="rejected", reason="wrong scale")
    cli.bank.answers["reject"] = rejected
    ran = cli("skills", "reject", "to_f", "--reason", "wrong scale")
    assert (ran.code, ran.out) == (0, "to_f version 2 is rejected: wrong scale\n")
    assert cli("skills", "reject", "to_f", "--version", "2", "--reason", "no", "--json").json == (
        rejected.model_dump(mode="json")
    )
    assert cli.bank.asked == [("reject", "to_f", "wrong scale", None), ("reject", "to_f", "no", 2)]
    assert cli("skills", "reject", "to_f").code == 2


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        pytest.param(UnknownSkill("there is no skill x"), "unknown_skill", 2, id="unknown"),
        pytest.param(NotDecided("x@1 is active: only a proposed skill"), "refused", 1, id="not-proposed"),
    ],
)
def test_a_word_on_what_is_not_proposed_is_answered_before_it_is_asked_for(cli, error, kind, code):
    cli.bank.answers = {"proposal": error, "reject": error}
    for command in (("approve", "x"), ("reject", "x", "--reason", "no")):
        ran = cli("skills", *command, "--json")
        assert (ran.code, ran.json["error"]) == (code, {"kind": kind, "message": str(error)})


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (UnknownSkill("no skill 'x'"), "unknown_skill", 2),
        (IllegalTransition("rejected is final"), "illegal_transition", 2),
        (VersionConflict("the head moved"), "version_conflict", 1),
        (SkillInUse("x is called by y@1"), "skill_in_use", 1),
        (NotDecided("x@1 is shadow"), "refused", 1),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_done_with_a_skill_is_a_typed_error(cli, error, kind, code):
    cli.bank.answers["rollback"] = error
    ran = cli("skills", "rollback", "x", "1", "--json")
    assert (ran.code, ran.json["error"]["kind"]) == (code, kind)


def test_a_version_is_a_number_from_one(cli):
    assert cli("skills", "rollback", "x", "0").code == 2
