"""explore and evolve: what is shown and asked first, what is written, and how they exit."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from catalog.errors import ServerUnavailable
from server.cli.render_evolving import render_evolution
from server.evolving.report import EvolveReport, RoundReport, TaskStanding
from server.execution.consent import NoConsent
from server.exploration.coverage import Coverage
from server.exploration.errors import NothingToExplore, UnknownServer
from server.exploration.health.findings import Finding, HealthReport, ShownCall
from server.exploration.profile import (
    Entity,
    Operation,
    Profile,
    TaskPreference,
    parse_profile,
    render_profile,
)
from server.exploration.report import ExplorationPlan, ExplorationReport, ExploredSkill, PlannedTool
from server.reports import SkillsReport
from server.reports.experience import ExperienceReport

PLAN = ExplorationPlan(
    server="clock",
    command="clock-server --quiet",
    budget_calls=400,
    calls_per_second=50,
    reset="none",
    tools=(PlannedTool(name="now", effect="read", reason="may repeat"),),
    withheld={"set_clock": "it writes"},
)
COVERAGE = Coverage(
    tools=1,
    called=1,
    succeeded=1,
    withheld=1,
    pairs=0,
    joined=0,
    enum_values=0,
    enum_values_tried=0,
    errors={},
)


def found(rule: str, severity: Any) -> Finding:
    return Finding(
        rule=rule,
        severity=severity,
        tool="now",
        message="it says nothing of the zone",
        call=ShownCall(arguments={"zone": "UTC"}, answer="{}", seconds=2.5),
        remedy="say it",
    )


def explored(*findings: Finding) -> ExplorationReport:
    health = HealthReport(
        server="clock", findings=findings, tools=2, called=1, calls=9, crashes=0, slowest={}
    )
    refused = ExploredSkill(
        name="now", state="shadow", reason="the input zone moves no output", task="clock-01"
    )
    return ExplorationReport(
        server="clock", coverage=COVERAGE, health=health, refused=(refused,), calls=9, budget_calls=400
    )


def test_nothing_is_explored_before_somebody_says_yes(cli):
    cli.bank.answers |= {"plan_exploration": PLAN, "explore": explored()}
    refused = cli("explore", "clock")
    assert refused.code == 3
    assert "would start clock-server --quiet" in refused.err
    assert "never set_clock" in refused.err
    assert [asked[0] for asked in cli.bank.asked] == ["plan_exploration"]


def test_with_yes_it_explores_and_says_what_admission_refused(cli):
    cli.bank.answers |= {"explore": explored(found("slow", "warning"))}
    ran = cli("explore", "clock", "--yes", "--budget-calls", "40", "--difficulty", "2")
    assert ran.code == 0
    [(_, asked)] = cli.bank.asked
    assert (asked.server, asked.options.budget_calls, asked.options.difficulty) == ("clock", 40, 2)
    assert "slow  now" in ran.out
    assert "the input zone moves no output" in ran.out


@pytest.mark.parametrize(
    ("severity", "fail_on", "code"),
    [("error", "error", 1), ("warning", "error", 0), ("warning", "warning", 1), ("note", "warning", 0)],
)
def test_ci_exits_with_1_on_findings_as_bad_as_asked(cli, severity: str, fail_on: str, code: int):
    cli.bank.answers |= {"explore": explored(found("slow", severity))}
    ran = cli("explore", "clock", "--ci", "--fail-on", fail_on)
    assert ran.code == code
    [(_, asked)] = cli.bank.asked
    assert (asked.learn, asked.options.tasks) == (False, 0)


def test_the_health_report_is_written_as_sarif_and_junit(cli):
    cli.bank.answers |= {"explore": explored(found("slow", "warning"))}
    sarif, junit, tasks = (str(cli.folder / name) for name in ("h.sarif", "h.xml", "tasks.jsonl"))
    ran = cli("explore", "clock", "--yes", "--json", "--sarif", sarif, "--junit", junit, "--out", tasks)
    assert ran.code == 0
    assert ran.json["files"] == {"tasks": tasks, "sarif": sarif, "junit": junit}
    assert json.loads((cli.folder / "h.sarif").read_text())["runs"][0]["results"][0]["ruleId"] == "slow"
    assert "slow" in (cli.folder / "h.xml").read_text()


def test_the_health_report_is_written_for_the_author_as_text_or_json(cli):
    report = explored(found("slow", "note"))
    cli.bank.answers |= {"explore": report}
    ran = cli("explore", "clock", "--yes", "--health", str(cli.folder / "h.txt"))
    assert ran.code == 0
    text = (cli.folder / "h.txt").read_text()
    assert 'called with {"zone": "UTC"} (2.5 s)' in text
    assert "remedy: " in text
    assert all(line in ran.out for line in text.splitlines())
    assert cli("explore", "clock", "--yes", "--health", str(cli.folder / "h.json")).code == 0
    assert HealthReport.model_validate_json((cli.folder / "h.json").read_text()) == report.health


def test_a_person_sees_every_tool_that_would_be_called_or_never_is(cli):
    many = tuple(PlannedTool(name=f"tool_{n:02d}", effect="read", reason="may repeat") for n in range(30))
    never = {f"kept_{n:02d}": "it writes" for n in range(30)}
    cli.bank.answers |= {"plan_exploration": PLAN.model_copy(update={"tools": many, "withheld": never})}
    shown = cli("explore", "clock").err
    assert all(name in shown for name in (*(tool.name for tool in many), *never))


@pytest.mark.parametrize(
    ("options", "severity", "code"),
    [(["--yes"], "note", 2), (["--ci"], "note", 0), (["--ci"], "error", 1)],
    ids=["asked for", "ci passes", "ci fails"],
)
def test_a_server_judged_by_its_listing_alone_says_what_would_change_that(
    cli, options: list[str], severity: str, code: int
):
    withheld = {"withheld": "say which only read"}
    cli.bank.answers |= {"explore": explored(found("no-annotations", severity)).model_copy(update=withheld)}
    ran = cli("explore", "clock", *options)
    assert ran.code == code
    assert "nothing was called: say which only read" in ran.out
    assert "no-annotations  now" in ran.out


def test_a_server_that_nothing_may_be_called_of_is_misuse(cli):
    cli.bank.answers |= {"explore": NothingToExplore("none of the 3 tools of 'clock' may be explored")}
    ran = cli("explore", "clock", "--yes", "--json")
    assert ran.code == 2
    assert ran.json["error"]["kind"] == "not_explored"


@pytest.mark.parametrize("option", ["--out", "--health", "--sarif", "--junit", "--write-profile"])
def test_a_file_that_could_not_be_written_is_misuse_before_anything_is_called(cli, option: str):
    cli.bank.answers |= {"explore": explored(), "profile_server": Profile(name="clock")}
    ran = cli("explore", "clock", "--yes", option, str(cli.folder / "nowhere" / "file"))
    assert ran.code == 2
    assert f"{option} " in ran.err
    assert "there is no folder" in ran.err
    assert cli.bank.asked == []


def test_a_call_needs_time(cli):
    ran = cli("explore", "clock", "--yes", "--call-seconds", "-1")
    assert ran.code == 2
    assert "more than zero seconds" in ran.err


def test_a_server_that_cannot_be_reached_is_reported_and_exits_with_4(cli):
    lost = explored(found("unavailable", "error")).model_copy(update={"unreachable": "it ended at once"})
    cli.bank.answers |= {"explore": lost}
    ran = cli("explore", "clock", "--yes", "--sarif", str(cli.folder / "h.sarif"))
    assert ran.code == 4
    assert "nothing was called: it ended at once" in ran.out
    assert "unavailable" in (cli.folder / "h.sarif").read_text()
    assert cli("explore", "clock", "--ci").code == 1


TIME = Entity(
    name="time",
    attributes={"zone": "a place, such as 'Asia/Tokyo'", "plain": ""},
    operations=(Operation(name="now"),),
)


def test_a_profile_is_replaced_only_where_that_is_said_and_never_taken_for_another_server(cli):
    cli.bank.answers |= {"explore": explored(), "profile_server": Profile(name="clock")}
    path = str(cli.folder / "clock.yaml")
    assert cli("explore", "clock", "--write-profile", path).code == 0
    again = cli("explore", "clock", "--write-profile", path)
    assert (again.code, "--force replaces it" in again.err) == (2, True)
    assert cli("explore", "clock", "--write-profile", path, "--force").code == 0
    other = cli("explore", "units", "--yes", "--profile", path)
    assert (other.code, "that of 'clock', not of 'units'" in other.err) == (2, True)


def test_an_edited_profile_says_what_kind_of_tasks_is_wanted(cli):
    cli.bank.answers |= {"explore": explored(), "profile_server": Profile(name="clock")}
    path = cli.folder / "clock.yaml"
    described = cli("explore", "clock", "--write-profile", str(path), "--json")
    assert described.json["name"] == "clock"
    edited = parse_profile(path).model_copy(
        update={
            "background": "A watchmaker.",
            "entities": (TIME,),
            "preference": TaskPreference(difficulty=1, operations=2, entities=1, style="brief"),
        }
    )
    path.write_text(render_profile(edited))
    assert cli("explore", "clock", "--yes", "--profile", str(path)).code == 0
    assert cli("explore", "clock", "--yes", "--profile", str(path), "--difficulty", "2").code == 0
    first, second = [one[1] for one in cli.bank.asked if one[0] == "explore"]
    wanted = first.options
    assert (first.only, first.entities) == ({"now"}, {"now": "time"})
    assert (wanted.difficulty, wanted.most_calls, wanted.most_entities) == (1, 2, 1)
    assert (wanted.chain_length, wanted.meanings) == (2, {"zone": "a place, such as 'Asia/Tokyo'"})
    assert (wanted.style, wanted.background) == ("brief", "A watchmaker.")
    assert (second.options.difficulty, second.options.style) == (2, "brief")


def evolving(cli) -> None:
    cli.bank.answers |= {
        "plan_exploration": PLAN,
        "explore": explored(),
        "list_skills": SkillsReport(skills=()),
        "list_experience": ExperienceReport(units=()),
    }


def test_nothing_evolves_before_somebody_says_yes(cli):
    evolving(cli)
    refused = cli("evolve", "clock", "--budget-calls", "90")
    assert refused.code == 3
    assert "90 calls at most in all, in 3 rounds" in refused.err
    assert {asked[0] for asked in cli.bank.asked} == {"plan_exploration"}


def test_rounds_are_held_with_nobody_to_ask_for_approvals(cli):
    evolving(cli)
    cli.interactive = True
    more = ("--budget-calls", "90", "--seed", "7", "--rate", "9", "--call-seconds", "2")
    ran = cli("evolve", "clock", "clock", "--yes", "--rounds", "1", *more)
    assert ran.code == 0
    [asked] = [one[1] for one in cli.bank.asked if one[0] == "explore"]
    assert (asked.server, asked.learn, asked.options.seed, asked.options.budget_calls) == (
        "clock",
        False,
        7,
        45,
    )
    assert (asked.options.calls_per_second, asked.options.call_timeout_seconds) == (9, 2)
    assert isinstance(cli.consents[-1].asked, NoConsent)
    assert "there is no task to practise" in ran.out
    assert cli.bank.kept_to == ("clock",)


@pytest.mark.parametrize("option", ["--rate", "--call-seconds"])
@pytest.mark.parametrize("value", ["nan", "inf", "0", "-1"])
@pytest.mark.parametrize("command", ["explore", "evolve"])
def test_what_is_no_positive_number_is_misuse_before_anything_is_asked(cli, command, option, value):
    evolving(cli)
    ran = cli(command, "clock", "--yes", option, value, "--json")
    assert (ran.code, ran.json["error"]["kind"]) == (2, "misuse")
    assert cli.bank.asked == []


def test_a_file_that_could_not_be_written_is_refused_before_rounds_are_held(cli):
    evolving(cli)
    ran = cli("evolve", "clock", "--yes", "--out", str(cli.folder / "none" / "made.jsonl"))
    assert ran.code == 2
    assert "there is no folder" in ran.err
    assert cli.bank.asked == []


def planned(cli, **problems: Exception) -> None:
    """Let the plans of some servers fail."""
    evolving(cli)
    use = cli.bank.plan_exploration

    async def plan(exploration):
        problem = problems.get(exploration.server)
        if problem is not None:
            raise problem
        return await use(exploration)

    cli.bank.plan_exploration = plan


def test_a_server_that_cannot_be_explored_is_named_and_the_rest_goes_on(cli):
    planned(cli, gone=ServerUnavailable("gone", "it ended"), shut=NothingToExplore("none of its tools may"))
    ran = cli("evolve", "gone", "clock", "shut", "--yes", "--rounds", "1", "--budget-calls", "90")
    assert ran.code == 0
    assert "not explored: gone: it ended" in ran.err
    assert "not explored: none of its tools may" in ran.err
    assert cli.bank.kept_to == ("gone", "clock", "shut")


def test_evolving_ends_where_no_server_can_be_explored_or_one_is_unknown(cli):
    planned(cli, gone=ServerUnavailable("gone", "it ended"), typo=UnknownServer("no server 'typo'"))
    assert cli("evolve", "gone", "--yes").code == 4
    assert cli("evolve", "clock", "typo", "--yes").code == 2
    assert {asked[0] for asked in cli.bank.asked} == {"plan_exploration"}


def test_a_bad_file_of_tasks_is_misuse_before_anything_is_asked(cli):
    evolving(cli)
    ran = cli("evolve", "clock", "--yes", "--tasks", cli.file("mine.jsonl", '{"task": "x"}'), "--json")
    assert ran.code == 2
    assert "mine.jsonl:1: assertions" in ran.json["error"]["message"]
    assert cli.bank.asked == []


def test_what_rounds_brought_is_drawn():
    one = RoundReport(
        number=1,
        explored={"clock": 3},
        problems={"gone": "it cannot be reached"},
        picked_user=1,
        picked_synthetic=2,
        attempts=6,
        solved=3,
        by_skill=1,
        taught=("r1-clock-01",),
        skills=("now_in",),
        lessons=-1,
        examined=2,
        examined_right=1,
        calls=80,
    )
    standing = TaskStanding(
        id="r1-clock-01",
        task="Tell the time",
        is_synthetic=True,
        attempts=2,
        right=1,
        estimate=0.5,
        examined=True,
    )
    report = EvolveReport(
        servers=("clock",), rounds=(one,), tasks=(standing,), mix=0.5, calls=80, budget_calls=90, seconds=4
    )
    drawn = StringIO()
    render_evolution(Console(width=140, file=drawn), report)
    text = drawn.getvalue()
    for said in (
        "2 made, 1 yours",
        "3/6",
        "+1",
        "-1",
        "1/2",
        "now_in",
        "gone: it cannot be reached",
        "exam passed",
    ):
        assert said in text


@pytest.mark.parametrize("command", ["explore", "evolve"])
def test_a_report_is_shown_also_where_its_files_can_no_longer_be_written(cli, command: str):
    folder = cli.folder / "results"
    folder.mkdir()
    evolving(cli)

    async def explore() -> ExplorationReport:
        if folder.exists():
            folder.rmdir()
        return explored()

    cli.bank.answers["explore"] = explore
    ran = cli(
        command, "clock", "--yes", "--json", "--budget-calls", "90", "--out", str(folder / "tasks.jsonl")
    )
    assert ran.code == 1
    assert ran.json["budget_calls"] in (90, 400)
    assert "written" in ran.err
    assert str(folder) in ran.err
