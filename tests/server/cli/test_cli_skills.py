"""skills list, show, run, test, rollback, retire."""

from __future__ import annotations

import pytest

from catalog.effects import Effect
from catalog.tools import ToolId
from server.reports import RunReport, SkillReport, SkillsReport, TestOutcome, TestReport
from skills_store.errors import IllegalTransition, UnknownSkill, VersionConflict
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
    cli.bank.answers["show_skill"] = SKILL
    ran = cli("skills", "show", "to_f", "--version", "2")
    assert cli.bank.asked == [("show_skill", "to_f", 2)]
    assert ran.out == (
        "to_f version 2  active  all gates pass\n"
        "Convert Celsius to Fahrenheit.\n"
        "\nInputs\n  c number  Degrees Celsius\n  digits integer or null, optional  \n"
        "\nOutputs\n  f number  \n"
        "\nGraph\n  conv  units/convert\n  round  mathematics/round  ← conv\n"
        "\nEvidence\n  ✓ assertion  output.f\n  ✗ function: varied_runs  1 of 2\n"
        "\nTests\n  original (original, 1 recorded calls, 1 volatile)\n"
        "\nPinned tools\n  units/convert  pure  0123456789ab\n"
    )
    assert cli("skills", "show", "to_f", "--json").json == SKILL.model_dump(mode="json")


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


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (UnknownSkill("no skill 'x'"), "unknown_skill", 2),
        (IllegalTransition("rejected is final"), "illegal_transition", 2),
        (VersionConflict("the head moved"), "version_conflict", 1),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_done_with_a_skill_is_a_typed_error(cli, error, kind, code):
    cli.bank.answers["rollback"] = error
    ran = cli("skills", "rollback", "x", "1", "--json")
    assert (ran.code, ran.json["error"]["kind"]) == (code, kind)


def test_a_version_is_a_number_from_one(cli):
    assert cli("skills", "rollback", "x", "0").code == 2
