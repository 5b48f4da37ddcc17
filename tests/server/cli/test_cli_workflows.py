"""check, run, repair, solve: what is asked of the bank, what is printed, and with which exit code."""

from __future__ import annotations

import json
import signal

import anyio
import pytest

from catalog.effects import Effect
from catalog.errors import ConfigError, ServerUnavailable
from catalog.tools import ToolId
from server.bank.errors import BankError, SkillNotCallable
from server.evolution.errors import RecordMismatch
from server.evolution.options import SearchOptions
from server.execution.consent import ConsentQuestion
from server.progress import Progress
from server.reports import CandidateRecord, CheckReport, NotRepeated, RepairReport, RunReport
from server.requests import Budget, RepairRequest, SolveRequest
from server.verification import Checks
from skills_store.errors import MalformedWorkflow, StoreUnusable
from skills_store.skill import AdmissionCheck, AdmissionVerdict
from skills_store.trace import Step, Verification
from skills_store.workflow.edits import EditParameter
from skills_store.workflow.faults import Denied, Malformed, TimeoutFault, ToolError, UnknownTool

CONVERT = ToolId("units", "convert")
UNKNOWN = UnknownTool(
    message="no tool units/convrt", node="conv", pointer="/nodes/0/tool", tool=ToolId("units", "convrt")
)
TIMED_OUT = TimeoutFault(message="no answer in 5 s", node="conv", tool=CONVERT)
REFUSED = Denied(message="not allowed yet", tool=CONVERT, needs_approval=True)
BROKEN = ToolError(message="\x1b[31mbad [bold]unit\x1b[0m", node="conv", item=2, tool=CONVERT)


def test_check_lists_every_fault_with_its_place(cli):
    cli.bank.answers["check"] = CheckReport(faults=(UNKNOWN,), warnings=("units was not asked",))
    ran = cli("check", cli.file("w.json", "{}"))
    assert ran.code == 1
    assert ran.out == (
        "✗ unknown_tool  conv  /nodes/0/tool\n  no tool units/convrt\n\n1 fault\nnote  units was not asked\n"
    )
    assert cli.bank.asked == [("check", b"{}", ("connect", False))]
    assert not cli.bank.open


def test_check_of_a_sound_workflow_is_code_zero(cli):
    cli.bank.answers["check"] = CheckReport(faults=())
    ran = cli("check", cli.file("w.json", "{}"), "--connect")
    assert (ran.code, ran.out) == (0, "no faults\n")
    assert cli.bank.asked == [("check", b"{}", ("connect", True))]


def test_check_hands_over_what_is_no_json_and_prints_its_faults(cli):
    cli.bank.answers["check"] = CheckReport(faults=(Malformed(message="not JSON: Expecting value"),))
    ran = cli("check", cli.file("w.json", "{nope"), "--json")
    assert ran.code == 1
    assert ran.json["faults"][0] == {
        "kind": "malformed",
        "message": "not JSON: Expecting value",
        "node": None,
        "pointer": "",
        "item": None,
    }
    assert cli.bank.asked == [("check", b"{nope", ("connect", False))]


def test_run_passes_inputs_checks_and_consents_on(cli):
    cli.bank.answers["run"] = RunReport(status="succeeded", outputs={"f": 69.8}, calls=2, seconds=0.25)
    schema = {"type": "object"}
    ran = cli(
        "run",
        cli.file("w.json", "{}"),
        *("--inputs", '{"celsius": 21}', "--assert", "output.f == `69.8`", "--assert", "output"),
        *("--expect-schema", cli.file("s.json", schema), "--allow", "mail/send", "--allow", "files/*"),
    )
    assert ran.code == 0
    assert ran.out == '{\n  "f": 69.8\n}\nsucceeded\n2 calls, 0.2 s\n'
    checks = Checks(assertions=("output.f == `69.8`", "output"), schema=schema)
    assert cli.bank.asked == [("run", b"{}", {"celsius": 21}, checks, ("mail/send", "files/*"))]


def test_run_reads_inputs_from_a_file(cli):
    cli.bank.answers["run"] = RunReport(status="succeeded", outputs={})
    cli("run", cli.file("w.json", "{}"), "--inputs", "@" + cli.file("i.json", {"a": [1]}))
    assert cli.bank.asked[0][2] == {"a": [1]}


@pytest.mark.parametrize(
    ("status", "faults", "code"),
    [
        ("verified", (), 0),
        ("succeeded", (), 0),
        ("failed", (UNKNOWN,), 1),
        ("failed", (UNKNOWN, TIMED_OUT), 1),
        ("failed", (TIMED_OUT,), 4),
        ("unverified", (), 1),
        ("needs_approval", (REFUSED,), 3),
        ("cancelled", (), 130),
    ],
)
def test_the_exit_code_is_that_of_the_status(cli, status, faults, code):
    workflow = cli.file("w.json", "{}")
    cli.bank.answers["run"] = RunReport(status=status, outputs=None, faults=faults)
    cli.bank.answers["repair"] = RepairReport(status=status, outputs=None, workflow={}, faults=faults)
    cli.bank.answers["solve"] = RepairReport(status=status, outputs=None, workflow={}, faults=faults)
    assert cli("run", workflow).code == code
    assert cli("repair", workflow).code == code
    assert cli("solve", "a task", "--json").code == code


def test_run_shows_each_step_when_asked(cli):
    steps = (
        Step(node="a", tool=CONVERT, arguments={"x": 1}, outcome="succeeded", output={"y": 2}, seconds=0.5),
        Step(node="b", item=1, tool=CONVERT, outcome="failed", fault=BROKEN),
        Step(node="c", skill="other@1", outcome="skipped", from_memory=True),
    )
    cli.bank.answers["run"] = RunReport(status="failed", outputs=None, faults=(BROKEN,), trace=steps)
    lines = cli("run", cli.file("w.json", "{}"), "--trace").out.splitlines()
    assert [line.split() for line in lines[:4]] == [
        ["step", "calls", "arguments", "answer", "s"],
        ["✓", "a", "units/convert", '{"x":', "1}", '{"y":', "2}", "0.50"],
        ["✗", "b[1]", "units/convert", "{}", "bad", "[bold]unit", "0.00"],
        ["-", "c", "other@1", "{}", "null", "memory"],
    ]


def test_nothing_a_server_said_reaches_the_terminal_as_an_escape_or_as_markup(cli):
    cli.bank.answers["run"] = RunReport(
        status="failed", outputs={"t": "\x1b]0;owned\x07[red]x[/red]\u202e"}, faults=(BROKEN,)
    )
    ran = cli("run", cli.file("w.json", "{}"))
    assert "✗ tool_error  conv[2]" in ran.out
    assert "  bad [bold]unit\n" in ran.out
    assert "\x1b" not in ran.out
    assert "\u202e" not in ran.out


def test_repair_passes_the_request_on(cli):
    cli.bank.answers["repair"] = RepairReport(status="verified", outputs={}, workflow={})
    cli(
        "repair",
        cli.file("w.json", "{}"),
        *("--task", "convert it", "--inputs", '{"a": 1}', "--assert", "output"),
        *("--budget-seconds", "0", "--budget-calls", "7", "--save", "to_f", "--allow", "mail/send"),
        *("--example", '{"a": 2}', "--example", '{"a": 3}'),
    )
    request = RepairRequest(
        task="convert it",
        inputs={"a": 1},
        checks=Checks(assertions=("output",)),
        budget=Budget(seconds=0, calls=7),
        save="to_f",
        allow=("mail/send",),
        examples=({"a": 2}, {"a": 3}),
    )
    assert cli.bank.asked == [("repair", b"{}", request)]


def test_repair_passes_on_how_to_search_and_where_it_is_written_down(cli):
    cli.bank.answers["repair"] = RepairReport(status="verified", outputs={}, workflow={})
    record = cli.folder / "search.jsonl"
    cli(
        "repair",
        cli.file("w.json", "{}"),
        *("--strategy", "population", "--seed", "7", "--record", str(record), "--budget-tokens", "100"),
    )
    request = RepairRequest(
        budget=Budget(tokens=100), search=SearchOptions(strategy="population", seed=7), record=record
    )
    assert cli.bank.asked == [("repair", b"{}", request)]


def test_a_search_is_gone_on_with_in_its_own_record_alone(cli):
    ran = cli("repair", cli.file("w.json", "{}"), "--record", "a", "--resume", "b")
    assert ran.code == 2
    assert "--resume goes on in its own file" in ran.err
    ran = cli("repair", cli.file("w.json", "{}"), "--strategy", "luck")
    assert ran.code == 2
    assert "'luck' is not one of" in ran.err


def test_a_record_that_cannot_be_gone_on_with_is_misuse(cli):
    cli.bank.answers["repair"] = RecordMismatch("r is the record of a search with another workflow")
    ran = cli("repair", cli.file("w.json", "{}"), "--resume", "r", "--json")
    assert ran.code == 2
    message = "r is the record of a search with another workflow"
    assert ran.json["error"] == {"kind": "record", "message": message}


@pytest.mark.parametrize(
    ("name", "begins"), [("l.mmd", "flowchart TD"), ("l.json", '{\n  "best": "sha256:b"')]
)
def test_repair_writes_the_lineage_as_the_name_says(cli, name, begins):
    lineage = (
        CandidateRecord(id="sha256:a", parent=None, edits=(), score=0.5, status="failed"),
        CandidateRecord(id="sha256:b", parent="sha256:a", edits=("x",), score=1.0, status="verified"),
    )
    cli.bank.answers["repair"] = RepairReport(
        status="verified", outputs={}, workflow={}, lineage=lineage, candidate="sha256:b"
    )
    path = cli.folder / name
    ran = cli("repair", cli.file("w.json", "{}"), "--lineage", str(path))
    assert ran.code == 0
    assert path.read_text().startswith(begins)
    assert f"wrote {path}" in ran.err
    ran = cli("repair", cli.file("w.json", "{}"), "--lineage", str(cli.folder / "no" / "where"))
    assert ran.code == 2


def test_solve_passes_the_request_on(cli):
    cli.bank.answers["solve"] = RepairReport(status="verified", outputs={}, workflow={})
    cli("solve", "convert it", "--route", "seeded", "--save", "to_f")
    assert cli.bank.asked == [("solve", "convert it", SolveRequest(route="seeded", save="to_f"))]


REPAIRED = RepairReport(
    status="verified",
    outputs={"f": 69.8},
    workflow={"name": "w"},
    route="dynamic",
    route_reasons=("no skill fits",),
    initial_faults=(UNKNOWN,),
    edits=(EditParameter(node="conv", pointer="/unit", value="F", because="nearest allowed"),),
    diff="- unit: f\n+ unit: F",
    candidate="sha256:b",
    lineage=(
        CandidateRecord(
            id="sha256:a", parent=None, edits=(), faults=(UNKNOWN,), score=0.5, status="static_faults"
        ),
        CandidateRecord(id="sha256:x", parent="sha256:a", edits=("elsewhere",), score=0.1, status="failed"),
        CandidateRecord(
            id="sha256:b", parent="sha256:a", edits=("conv: unit = F",), score=1.0, status="verified"
        ),
    ),
    calls=3,
    candidates=1,
    seconds=1.25,
    budget_spent="calls",
    skill="to_f",
    skill_state="proposed",
    verdict=AdmissionVerdict(
        state="proposed",
        reason="waits for a person",
        checks=(
            AdmissionCheck(name="callable", gate="interface", passed=True, detail="portable"),
            AdmissionCheck(name="effects", gate="safety", passed=False, detail="writes"),
        ),
    ),
    verifications=(Verification(by="assertion", passed=True, detail="output.f == `69.8`"),),
    not_repeated=(
        NotRepeated(
            node="conv",
            tool=CONVERT,
            effect=Effect.UNKNOWN,
            reason="unknown is never re-executed in a repair",
            allow="skillbank effects set units/convert CLASS",
        ),
    ),
)


def test_repair_tells_its_story_in_order(cli):
    cli.bank.answers["repair"] = REPAIRED
    out = cli("repair", cli.file("w.json", "{}")).out
    told = [
        "route dynamic  no skill fits",
        "Before",
        "✗ unknown_tool  conv  /nodes/0/tool",
        "Edits",
        "• ",
        "Lineage",
        "0 the workflow as given  static faults, 1 fault, score 0.50",
        "1 conv: unit = F  verified, 0 faults, score 1.00",
        "Difference",
        "- unit: f",
        "+ unit: F",
        "Result",
        '"f": 69.8',
        "\nverified\n",
        "✓ assertion  output.f == `69.8`",
        "Skill",
        "to_f  proposed  waits for a person",
        "✓ interface: callable  portable",
        "✗ safety: effects  writes",
        "Not run or not repeated",
        "• conv: units/convert (unknown)  unknown is never re-executed in a repair",
        "to allow it: skillbank effects set units/convert CLASS",
        "1 candidate, 3 calls, 1.2 s, ended by its budget of calls",
    ]
    places = [out.find(line) for line in told]
    assert -1 not in places
    assert places == sorted(places)
    assert "elsewhere" not in out, "the lineage is the way to what is reported, not the whole search"


def test_repair_says_why_there_is_no_skill(cli):
    cli.bank.answers["repair"] = REPAIRED.model_copy(
        update={"skill": None, "skill_state": None, "skill_reason": "not compilable: no tool"}
    )
    assert "no skill  not compilable: no tool" in cli("repair", cli.file("w.json", "{}")).out


def test_repair_as_json_is_the_report_and_nothing_else(cli):
    cli.bank.answers["repair"] = REPAIRED
    cli.bank.progress = (Progress("repair", "trying", candidates=1),)
    ran = cli("repair", cli.file("w.json", "{}"), "--json")
    assert ran.json == REPAIRED.model_dump(mode="json")
    assert {"status", "outputs", "workflow", "edits", "faults", "calls", "candidates"} <= ran.json.keys()
    assert ran.err == "repair  1 candidates  trying\n"


def test_the_best_workflow_is_written_where_asked(cli):
    cli.bank.answers["repair"] = REPAIRED
    target = cli.folder / "better.json"
    ran = cli("repair", cli.file("w.json", "{}"), "--output", str(target), "--json")
    assert json.loads(target.read_text()) == {"name": "w"}
    assert ran.json["status"] == "verified"


def test_progress_goes_to_stderr_once_per_stage(cli):
    cli.bank.answers["run"] = RunReport(status="succeeded", outputs={})
    cli.bank.progress = (
        Progress("connect", "units\x1b[2J", calls=0),
        Progress("repair", "swap_tool", candidates=4, calls=9, best=0.5),
        Progress("connect", "again"),
        Progress("repair", "again", candidates=5),
    )
    ran = cli("run", cli.file("w.json", "{}"))
    assert ran.err == "connect  units\nrepair  4 candidates · 9 calls · best 0.50  swap_tool\n"


@pytest.mark.parametrize(
    ("interactive", "arguments", "answer"),
    [(True, (), True), (False, (), None), (True, ("--json",), None)],
    ids=["a person at a terminal", "nobody there", "a program reads"],
)
def test_consent_is_asked_only_of_a_person(cli, interactive, arguments, answer):
    cli.interactive = interactive
    cli.bank.answers["run"] = RunReport(status="succeeded", outputs={})
    cli("run", cli.file("w.json", "{}"), *arguments)
    question = ConsentQuestion(CONVERT, {}, Effect.WRITE, "writes")
    assert anyio.run(cli.consents[0].ask, question) is answer


MISUSE = {
    "no file": (["run", "missing.json"], "missing.json"),
    "inputs no JSON": (["run", "W", "--inputs", "{a"], "not JSON"),
    "inputs no object": (["run", "W", "--inputs", "[1]"], "must be a JSON object"),
    "inputs not finite": (["run", "W", "--inputs", '{"a": NaN}'], "NaN is not JSON"),
    "inputs file missing": (["run", "W", "--inputs", "@nowhere.json"], "cannot be read"),
    "assertion unreadable": (["run", "W", "--assert", "output.[["], "output.[["),
    "schema missing": (["run", "W", "--expect-schema", "nowhere.json"], "nowhere.json"),
    "allow without tool": (["run", "W", "--allow", "mail"], "'mail' is not SERVER/TOOL"),
    "negative budget": (["repair", "W", "--budget-calls", "-1"], "-1 is not in the range"),
    "budget no number": (["repair", "W", "--budget-seconds", "nan"], "is no number of seconds"),
    "skill name": (["repair", "W", "--save", "My Skill"], "'My Skill' is no skill name"),
    "unknown option": (["check", "W", "--fast"], "--fast"),
    "unknown command": (["fly"], "fly"),
    "unknown route": (["solve", "x", "--route", "long"], "'long' is not one of"),
}


@pytest.mark.parametrize(("arguments", "message"), MISUSE.values(), ids=MISUSE)
def test_misuse_is_code_two_and_asks_nothing_of_the_bank(cli, arguments, message):
    workflow = cli.file("w.json", "{}")
    given = [workflow if argument == "W" else argument for argument in arguments]
    ran = cli.bare(*given)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    ran = cli.bare(*given, "--json")
    assert ran.code == 2
    assert ran.json["error"]["kind"] == "misuse"
    assert message in ran.json["error"]["message"]
    assert cli.bank.asked == []


def test_a_schema_that_is_none_is_misuse(cli):
    ran = cli("run", cli.file("w.json", "{}"), "--expect-schema", cli.file("s.json", {"type": 7}), "--json")
    assert ran.code == 2
    assert ran.json["error"]["kind"] == "schema_rejected"
    assert "s.json: " in ran.json["error"]["message"]


def test_an_expected_schema_that_is_no_json_is_named(cli):
    ran = cli("run", cli.file("w.json", "{}"), "--expect-schema", cli.file("s.json", "{"), "--json")
    assert ran.code == 2
    assert "s.json: not JSON" in ran.json["error"]["message"]


ERRORS = {
    "config": (ConfigError("no", file="c.json", line=3, key="a.b"), "invalid_config", 2),
    "store": (StoreUnusable("from a newer version"), "store_unusable", 1),
    "server": (ServerUnavailable("units", "gone"), "server_unavailable", 4),
    "skill state": (SkillNotCallable("to_f is stale"), "skill_not_callable", 1),
    "bank": (BankError("no"), "refused", 1),
    "interrupt": (KeyboardInterrupt(), "cancelled", 130),
    "group of one": (ExceptionGroup("tasks", [ConfigError("no", key="a")]), "invalid_config", 2),
    "interrupt in a group": (BaseExceptionGroup("tasks", [KeyboardInterrupt()]), "cancelled", 130),
}


@pytest.mark.parametrize(("error", "kind", "code"), ERRORS.values(), ids=ERRORS)
def test_a_typed_error_is_told_as_one(cli, error, kind, code):
    cli.bank.answers["check"] = error
    ran = cli("check", cli.file("w.json", "{}"))
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.lstrip().startswith("skillbank: ")
    assert "Traceback" not in ran.err
    ran = cli("check", cli.file("w.json", "{}"), "--json")
    assert ran.code == code
    assert ran.json["error"]["kind"] == kind
    assert not cli.bank.open


def test_an_error_about_a_document_has_a_pointer(cli):
    cli.bank.answers["run"] = MalformedWorkflow([Malformed(message="unknown field 'x'", pointer="/x")])
    ran = cli("run", cli.file("w.json", "{}"), "--json")
    assert ran.code == 1
    assert ran.json == {"error": {"kind": "malformed", "message": "/x: unknown field 'x'", "pointer": "/x"}}


def test_a_wrong_configuration_names_file_line_and_key(cli):
    cli.bank.answers["check"] = CheckReport(faults=())
    cli.file("config.json", '{"mcpServers": {\n"a": {"command": 1}}}')
    ran = cli("check", cli.file("w.json", "{}"))
    assert ran.code == 2
    assert ran.err == (
        f"skillbank: {cli.config}:2, key 'mcpServers.a.command': Input should be a valid string\n"
    )


def test_a_defect_of_ours_keeps_its_traceback_and_still_answers_in_json(cli):
    cli.bank.answers["check"] = RuntimeError("oops")
    with pytest.raises(RuntimeError, match="oops"):
        cli("check", cli.file("w.json", "{}"))
    ran = cli("check", cli.file("w.json", "{}"), "--json")
    assert (ran.code, ran.json["error"]["kind"]) == (1, "internal")
    assert "Traceback" in ran.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "termination"])
def test_a_signal_cancels_the_work_and_waits_for_its_cleanup(cli, number):
    seen = []

    async def interrupted():
        signal.raise_signal(number)
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            seen.append("cancelled")
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
            seen.append("cleaned up")
            raise

    cli.bank.answers["run"] = interrupted
    ran = cli("run", cli.file("w.json", "{}"), "--json")
    assert ran.code == 130
    assert ran.json == {"error": {"kind": "cancelled", "message": "interrupted"}}
    assert seen == ["cancelled", "cleaned up"]
    assert not cli.bank.open


def test_work_in_the_background_ends_when_told_to(cli):
    async def told_to_end():
        signal.raise_signal(signal.SIGTERM)
        await anyio.sleep_forever()

    cli.bank.answers["run"] = told_to_end
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as shells start background work
    try:
        ran = cli("run", cli.file("w.json", "{}"), "--json")
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert ran.code == 130
