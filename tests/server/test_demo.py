"""The demo's parts: its stories, its stage, its client, what it says; the whole of it is tests/live."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from rich.console import Console

from catalog.tools import ToolId
from server.cli import main
from server.demo.calling import call_as_client
from server.demo.connecting import connect_client, serve_command
from server.demo.errors import DemoRefused
from server.demo.files import build_files
from server.demo.judging import problems_of
from server.demo.mending import said_by_servers
from server.demo.narration import TerminalNarrator, open_narrator
from server.demo.report import Called, DemoReport, Skipped, StoryReport
from server.demo.staging import open_folder, prepare_stage
from server.demo.stories import Story, load_stories
from server.provisioning.demo_servers import DEMO_SERVERS, DemoServer
from server.provisioning.errors import DemoServersMissing
from server.reports import CandidateRecord, RepairReport, ServerReport
from server.settings import Settings
from skills_store.skill import AdmissionCheck, AdmissionVerdict
from skills_store.workflow.edits import EditParameter, apply_edit
from skills_store.workflow.faults import DisguisedError, MissingArgument, ToolError
from skills_store.workflow.hashing import content_hash
from skills_store.workflow.model import parse_workflow

FILES = Path("/somewhere/files")
STORIES = load_stories(FILES)
ALL_THERE = all(server.version() is not None for server in DEMO_SERVERS)
needs_demo = pytest.mark.skipif(not ALL_THERE, reason="needs skillbank[demo]")
each_story = pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
TOOL = ToolId("calculator", "divide")


# stories


def test_the_stories_make_every_kind_of_mistake_on_at_least_four_servers():
    kinds = {mistake.kind for story in STORIES for mistake in story.mistakes}
    servers = {server for story in STORIES for server in story.servers}

    assert kinds >= {
        *("wrong tool", "missing argument", "misnamed argument", "wrong type"),
        *("missing step", "dangling reference", "wrong order"),
    }
    assert servers == {server.name for server in DEMO_SERVERS}


@each_story
def test_a_story_calls_only_the_servers_it_names(story: Story):
    called = {node.tool.server for node in parse_workflow(story.broken).nodes if node.tool}
    assert called <= set(story.servers)


@each_story
def test_a_client_asks_what_neither_the_repair_nor_admission_has_seen(story: Story):
    assert story.call.arguments not in (story.inputs, *story.examples)
    assert story.call.arguments.keys() == story.inputs.keys()
    assert not set(story.call.assertions) >= set(story.assertions)


@each_story
def test_every_path_of_a_story_is_inside_the_folder(story: Story):
    text = story.model_dump_json()
    assert "${" not in text
    assert all(str(FILES) in str(v) for k, v in story.inputs.items() if k in ("path", "repository"))


def test_a_folder_with_quotes_and_backslashes_is_named_as_it_is():
    folder = Path('/odd "name" \\ here')
    assert load_stories(folder, "sales_by_region")[0].inputs["path"] == str(folder) + "/shop.xlsx"


def test_an_unknown_story_is_refused_with_those_there_are():
    with pytest.raises(DemoRefused, match="no story 'weather'; there are litres_per_100km, sales_by_region"):
        load_stories(FILES, "weather")


# the stage


def test_a_temporary_folder_is_gone_afterwards():
    with open_folder(None) as folder:
        (folder / "x").write_text("x")
    assert not folder.exists()


def test_a_folder_to_keep_is_made_and_stays(tmp_path):
    with open_folder(tmp_path / "new" / "here") as folder:
        (folder / "x").write_text("x")
    assert (tmp_path / "new" / "here" / "x").read_text() == "x"


def test_a_folder_that_holds_something_is_refused_and_left_alone(tmp_path):
    (tmp_path / "mine").write_text("x")
    with pytest.raises(DemoRefused, match="is not empty"), open_folder(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


def test_a_file_is_no_folder_to_keep(tmp_path):
    (tmp_path / "mine").write_text("x")
    with pytest.raises(DemoRefused, match="mine: File exists"), open_folder(tmp_path / "mine"):
        pass


def test_missing_servers_are_misuse_and_say_how_to_install_them(monkeypatch, capsys):
    absent = tuple(DemoServer(s.name, f"skillbank-has-no-{s.name}", script=s.name) for s in DEMO_SERVERS)
    monkeypatch.setattr("server.provisioning.demo_servers.DEMO_SERVERS", absent)

    code = main(["demo", "--json"])

    error = json.loads(capsys.readouterr().out)["error"]
    assert code == 2
    assert error["message"].startswith("not installed: calculator, excel, git, hashlib, mathematics")
    assert error["message"].endswith("pip install 'skillbank[demo]'")


@needs_demo
def test_without_git_its_story_is_skipped_and_four_servers_are_left(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    stage = prepare_stage(tmp_path, None)

    assert [story.name for story in stage.stories] == ["litres_per_100km", "sales_by_region"]
    assert [skipped.name for skipped in stage.skipped] == ["release_digest"]
    assert "git is not installed" in stage.skipped[0].reason
    assert set(stage.settings.load_config().servers) == {"calculator", "mathematics", "excel", "sqlite"}
    assert (tmp_path / "files" / "branch.xlsx").is_file()


@needs_demo
def test_one_story_configures_only_its_own_servers(tmp_path):
    stage = prepare_stage(tmp_path, "litres_per_100km")
    assert set(stage.settings.load_config().servers) == {"calculator", "mathematics"}


@pytest.mark.skipif(not ALL_THERE or shutil.which("git") is None, reason="needs git and skillbank[demo]")
def test_the_second_repository_is_the_first_as_it_was_at_its_release(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_DIR", "/nowhere")

    build_files(tmp_path, with_git=True)

    head = (tmp_path / "notes-1.1" / ".git" / "HEAD").read_text().strip()
    assert head == (tmp_path / "notes" / ".git" / "refs" / "tags" / "v1.1").read_text().strip()
    assert not (tmp_path / "notes-1.1" / "price.txt").exists()


def test_a_missing_library_for_workbooks_is_not_taken_for_a_missing_git(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(DemoServersMissing, match="excel"):
        build_files(tmp_path, with_git=False)


# what servers said

BASE = parse_workflow(STORIES[0].broken)
EDITS = (
    EditParameter(node="fuel", pointer="/to_unit", value="L", because="'L' is another spelling of 'l'"),
    EditParameter(node="per_100km", pointer="/b", value=100, because="'100 km' read as 100"),
)
FIRST = apply_edit(BASE, EDITS[0])
BEST = apply_edit(FIRST, EDITS[1])


def record(workflow, parent, *faults):
    return CandidateRecord(
        id=content_hash(workflow),
        parent=content_hash(parent) if parent else None,
        edits=(),
        faults=faults,
        score=0.5,
        status="failed",
    )


def test_only_answers_on_the_way_to_the_best_workflow_are_told_and_each_once():
    said = DisguisedError(message="Unknown unit", node="fuel", tool=TOOL)
    later = ToolError(message="Input should be a number", node="per_100km", tool=TOOL)
    static = MissingArgument(message="required", node="distance", argument="from_unit")
    aside = apply_edit(BASE, EDITS[1])
    lineage = (
        record(BASE, None, static, said),
        record(aside, BASE, ToolError(message="not on the way", node="fuel", tool=TOOL)),
        record(FIRST, BASE, said, later),
        record(BEST, FIRST),
    )
    report = RepairReport(status="verified", outputs={}, workflow=BEST.to_json(), lineage=lineage)

    assert said_by_servers(report) == (said, later)


# the client


def server_of(folder: Path, *tools: object) -> list[str]:
    scenario = folder / "scenario.json"
    scenario.write_text(json.dumps({"tools": tools}))
    return [sys.executable, "-m", "catalog.testing", str(scenario)]


def answering(*answers: object, name: str = "litres_per_100km"):
    return {"name": name, "answers": answers}


async def called(folder: Path, *tools: object) -> Called:
    story = STORIES[0]
    session = await call_as_client(server_of(folder, *tools), [story], folder / "log")
    return session.called[story.name]


@pytest.mark.anyio
async def test_the_right_answer_is_right(tmp_path):
    found = await called(tmp_path, answering({"litres_per_100km": 6.72041}))
    assert (found.right, found.problem, found.result) == (True, "", {"litres_per_100km": 6.72041})
    assert found.arguments == {"miles": 420, "gallons": 12}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("tool", "problem"),
    [
        pytest.param(answering({"litres_per_100km": 5.8804}), "5.8804", id="the-answer-of-the-task"),
        pytest.param(answering({"litres": 6.7204}), "litres_per_100km", id="another-key"),
        pytest.param(answering("6.7204"), "6.7204", id="text-only"),
        pytest.param(
            answering({"$reply": {"structured": {"litres_per_100km": 6.7204}, "is_error": True}}),
            "6.7204",
            id="an-error-with-the-right-number",
        ),
        pytest.param(answering({"$refuse": {"code": -32603, "message": "no"}}), "no", id="refused"),
        pytest.param(answering({"$vanish": True}), "Connection closed", id="gone"),
        pytest.param(answering({}, name="other"), "litres_per_100km is not in tools/list", id="not-listed"),
    ],
)
async def test_anything_else_is_not_right_and_says_why(tmp_path, tool, problem):
    found = await called(tmp_path, tool)
    assert not found.right
    assert problem in found.problem


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("command", "problem"),
    [
        pytest.param(
            [sys.executable, "-c", "raise SystemExit('the store is from the future')"],
            "its last words: the store is from the future",
            id="ends-at-once",
        ),
        pytest.param(["/nowhere/skillbank"], "our server could not be started", id="not-there"),
    ],
)
async def test_a_server_that_does_not_serve_is_a_problem_of_every_story(tmp_path, command, problem):
    session = await call_as_client(command, STORIES, tmp_path / "log")
    assert session.tools == ()
    assert set(session.called) == {story.name for story in STORIES}
    assert all(problem in found.problem and not found.right for found in session.called.values())


# connecting


def test_what_was_kept_is_served_by_its_own_paths(tmp_path):
    kept = Settings(tmp_path / "my config.json", tmp_path / "store.db")

    connect = connect_client(kept)

    arguments = ["serve", "--config", str(kept.config_path), "--store", str(kept.store_path)]
    assert connect.command.startswith("claude mcp add skillbank -- ")
    assert f"serve --config '{kept.config_path}' --store {kept.store_path}" in connect.command
    assert connect.snippet["mcpServers"]["skillbank"]["args"][-5:] == arguments
    assert serve_command(kept)[-5:] == arguments


def test_what_was_not_kept_is_not_named():
    connect = connect_client(None)
    assert connect.command.endswith(" serve")
    assert "skillbank init" in connect.note


def test_the_program_is_named_bare_only_where_the_path_finds_this_one(tmp_path, monkeypatch):
    other = tmp_path / "skillbank"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Path(connect_client(None).snippet["mcpServers"]["skillbank"]["command"]).is_absolute()

    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), str(tmp_path)]))
    if shutil.which("skillbank") != str(other):
        assert connect_client(None).snippet["mcpServers"]["skillbank"]["command"] == "skillbank"


# judging and telling


def story_report(**changes: object) -> StoryReport:
    story = STORIES[0]
    called = Called(
        arguments=story.call.arguments,
        result={"litres_per_100km": 6.7204},
        assertions=story.call.assertions,
        right=True,
    )
    check = AdmissionCheck(name="replay", gate="function", passed=True, detail="1 of 1 replays")
    report = StoryReport(
        **story.model_dump(exclude={"examples", "call", "mistakes"}),
        mistakes=story.mistakes,
        faults=(MissingArgument(message="'from_unit' is required", node="distance", argument="from_unit"),),
        said=(DisguisedError(message="Unknown unit in volume: gal or l", node="fuel", tool=TOOL),),
        edits=EDITS,
        diff='  node fuel: mathematics/convert_units\n-   to_unit = "l"\n+   to_unit = "L"',
        workflow=BEST.to_json(),
        status="verified",
        left=(),
        outputs={"litres_per_100km": 5.8804},
        calls=16,
        candidates=22,
        seconds=1.5,
        verdict=AdmissionVerdict(state="active", reason="all gates passed", checks=(check,)),
        skill=story.name,
        skill_state="active",
        skill_reason="all gates passed",
        called=called,
    )
    return report.model_copy(update=changes)


def servers(count: int, status: str = "ok") -> tuple[ServerReport, ...]:
    names = [server.name for server in DEMO_SERVERS[:count]]
    return tuple(ServerReport(name=name, status=status, transport="stdio", tools=3) for name in names)


SKIPPED = Skipped(name="release_digest", reason="git is not installed")


def test_a_skipped_story_is_no_problem_while_four_servers_took_part():
    assert problems_of(servers(4), [story_report()], [SKIPPED], is_whole=True) == ()
    assert problems_of(servers(2), [story_report()], [], is_whole=False) == ()


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        pytest.param((servers(3), [story_report()]), "only 3 tool servers took part", id="too-few"),
        pytest.param((servers(4), []), "release_digest was skipped: git", id="nothing-told"),
        pytest.param((servers(4, "unreachable"), [story_report()]), "server mathematics: unr", id="server"),
        pytest.param(
            (servers(4), [story_report(status="failed", left=(story_report().said))]),
            "the repair ended failed: Unknown unit",
            id="not-verified",
        ),
        pytest.param(
            (servers(4), [story_report(skill_state="proposed", skill_reason="an input moves nothing")]),
            "the skill is proposed: an input moves nothing",
            id="not-admitted",
        ),
        pytest.param((servers(4), [story_report(called=None)]), "no client called it", id="not-called"),
        pytest.param(
            (
                servers(4),
                [
                    story_report(
                        called=Called(arguments={}, result=None, assertions=(), right=False, problem="gone")
                    )
                ],
            ),
            "litres_per_100km: gone",
            id="wrong-answer",
        ),
    ],
)
def test_whatever_went_wrong_is_a_problem(found, problem):
    started, stories = found
    problems = problems_of(started, stories, [SKIPPED], is_whole=True)
    assert any(problem in said for said in problems)


def demo_report(*problems: str) -> DemoReport:
    return DemoReport(
        servers=servers(4),
        stories=(story_report(),),
        skipped=(SKIPPED,),
        tools=("litres_per_100km", "solve"),
        connect=connect_client(None),
        problems=problems,
        seconds=30.0,
        ok=not problems,
    )


def test_a_person_reads_all_of_it_in_order():
    out = io.StringIO()
    narrator = TerminalNarrator(Console(file=out, width=160), Console(file=io.StringIO()))
    report = demo_report()

    narrator.tell_servers(report.servers, report.skipped)
    narrator.tell_broken(STORIES[0], report.stories[0].faults)
    narrator.tell_mended(report.stories[0])
    narrator.tell_calls(["skillbank", "serve"], report.tools, report.stories)
    narrator.tell_end(report)

    text = out.getvalue()
    wanted = [
        "4 tool servers from PyPI",
        "release_digest: git is not installed",
        "dangling reference in per_km",
        "'from_unit' is required",
        "Unknown unit in volume: gal or l",
        'fuel: to_unit "l" → "L"',
        "because 'L' is another spelling of 'l'",
        '-   to_unit = "l"',
        '+   to_unit = "L"',
        "✓ approx(output.litres_per_100km, `5.8804`, `0.001`)",
        "22 candidates, 16 calls to servers",
        "✓ function: replay  1 of 1 replays",
        "$ skillbank serve",
        "tools/list  litres_per_100km, solve",
        '✓ litres_per_100km({"miles": 420, "gallons": 12})',
        '= {"litres_per_100km": 6.7204}',
        "claude mcp add skillbank -- ",
        '"mcpServers"',
        "1 of 1 stories went right, in 30 s",
    ]
    places = [text.find(part) for part in wanted]
    assert -1 not in places
    assert places == sorted(places)


def test_colours_are_for_terminals_only():
    terminal, pipe = io.StringIO(), io.StringIO()
    console = Console(file=terminal, width=160, force_terminal=True, color_system="standard")

    TerminalNarrator(console, Console(file=io.StringIO())).tell_mended(story_report())
    open_narrator(pipe, io.StringIO(), as_json=False).tell_mended(story_report())

    assert '\x1b[32m+   to_unit = "L"' in terminal.getvalue()
    assert '\n+   to_unit = "L"\n' in pipe.getvalue()
    assert "\x1b" not in pipe.getvalue()


def test_a_program_reads_one_object_and_a_person_may_read_progress_beside_it():
    out, err = io.StringIO(), io.StringIO()
    narrator = open_narrator(out, err, as_json=True)
    report = demo_report("one thing")

    narrator.tell_servers(report.servers, report.skipped)
    narrator.tell_broken(STORIES[0], report.stories[0].faults)
    narrator.tell_mended(report.stories[0])
    narrator.tell_calls(["skillbank", "serve"], report.tools, report.stories)
    assert out.getvalue() == ""
    narrator.tell_end(report)

    assert DemoReport.model_validate_json(out.getvalue()) == report
    assert json.loads(out.getvalue())["ok"] is False
