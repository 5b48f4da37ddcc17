"""add, init, doctor: what is started, what is asked, and what is written."""

from __future__ import annotations

from io import StringIO

import pytest

from catalog.config import load_config
from catalog.effects import Effect, Reset
from catalog.tools import ToolId
from server.onboarding import Probed
from server.reports import DoctorReport, ServerReport


@pytest.fixture
def clock(cli, tools):
    """A server with a tool that reads, one that writes and one that nobody can know."""
    listed = tools(
        "clock",
        list_zones="List all time zones.",
        delete_alarm="Delete an alarm.",
        frobnicate="Frobnicate.",
    )
    cli.servers["clock"] = Probed("clock", "ok", tools=listed, seconds=0.5)
    return listed


ADD = ("add", "clock", "--", "run-clock", "--zone", "UTC")
ENTRY = {"command": "run-clock", "args": ["--zone", "UTC"]}


def test_add_starts_the_server_once_and_keeps_its_tools(cli, clock):
    ran = cli(*ADD)
    assert ran.code == 0
    assert cli.started == ["clock"]
    assert [tool.id for tool in cli.remembered[0]] == [tool.id for tool in clock]
    assert cli.document["mcpServers"] == {"clock": ENTRY}
    assert "starting clock: run-clock --zone UTC" in ran.err


@pytest.mark.usefixtures("clock")
def test_add_without_anyone_to_ask_leaves_the_tools_unknown_and_says_how_to_change_it(cli):
    ran = cli(*ADD)
    assert "skillbank" not in cli.document
    assert "--yes" in ran.err
    assert "skillbank effects set SERVER/TOOL CLASS" in ran.err
    assert ran.out == "added clock: 3 tools, 0 classified, reset none\n"


@pytest.mark.usefixtures("clock")
def test_add_with_yes_takes_the_proposal(cli):
    ran = cli("add", "clock", "--yes", *ADD[2:])
    assert cli.document["skillbank"]["effects"]["clock"] == {"list_zones": "read", "delete_alarm": "write"}
    assert "list_zones" in ran.err
    assert "2 classified" in ran.out


@pytest.mark.usefixtures("clock")
@pytest.mark.parametrize(("answer", "kept"), [("y\n", True), ("\n", True), ("n\n", False)])
def test_add_asks_a_person_once(cli, monkeypatch, answer, kept):
    cli.interactive = True
    monkeypatch.setattr("sys.stdin", StringIO(answer))
    ran = cli(*ADD)
    assert ran.code == 0
    assert ran.err.count("Keep these classes?") == 1
    assert ("skillbank" in cli.document) is kept


@pytest.mark.usefixtures("clock")
def test_add_takes_classes_from_a_file(cli):
    given = cli.file("e.json", {"effects": {"clock": {"list_*": "pure"}}, "reset": {"clock": "process"}})
    ran = cli("add", "clock", "--effects", given, "--json", *ADD[2:])
    assert cli.document["skillbank"] == {
        "effects": {"clock": {"list_*": "pure"}},
        "reset": {"clock": "process"},
    }
    assert ran.json["reset"] == "process"
    assert [(e["tool"], e["effect"]) for e in ran.json["effects"]] == [
        ("list_zones", "pure"),
        ("delete_alarm", "unknown"),
        ("frobnicate", "unknown"),
    ]


@pytest.mark.usefixtures("clock")
def test_a_reset_mode_that_is_taken_is_said_to_be_untried(cli):
    given = cli.file("e.json", {"effects": {"clock": {"*": "write"}}, "reset": {"clock": "process"}})
    ran = cli("add", "clock", "--effects", given, *ADD[2:])
    assert "reset is not tried: skillbank effects verify clock" in ran.out


@pytest.mark.usefixtures("clock")
def test_a_file_of_classes_that_is_wrong_writes_nothing(cli):
    given = cli.file("e.json", '{"effects": {"clock":\n{"*": "often"}}}')
    ran = cli("add", "clock", "--effects", given, *ADD[2:])
    assert ran.code == 2
    assert f"{given}:2, key 'effects.clock.*'" in ran.err
    assert cli.document == {}


@pytest.mark.usefixtures("clock")
def test_add_as_json_says_what_was_proposed_and_written(cli):
    ran = cli("add", "clock", "--yes", "--json", *ADD[2:])
    assert ran.json["server"] == "clock"
    assert ran.json["tools"] == ["list_zones", "delete_alarm", "frobnicate"]
    assert {e["tool"]: e["effect"] for e in ran.json["effects"]} == {
        "list_zones": "read",
        "delete_alarm": "write",
        "frobnicate": "unknown",
    }
    assert all(e["reason"] for e in ran.json["effects"])
    assert (ran.json["written"], ran.json["kept"]) == (True, True)


def test_a_server_that_cannot_start_is_not_written(cli):
    ran = cli("add", "clock", "--json", *ADD[2:])
    assert ran.code == 4
    assert ran.json["error"]["kind"] == "server_unavailable"
    assert "No such file or directory" in ran.json["error"]["message"]
    assert cli.document == {}
    assert cli.remembered == []


def test_force_writes_a_server_that_cannot_start(cli):
    ran = cli("add", "clock", "--force", *ADD[2:])
    assert ran.code == 0
    assert cli.document["mcpServers"] == {"clock": ENTRY}
    assert "No such file or directory" in ran.out


@pytest.mark.usefixtures("clock")
def test_add_keeps_everything_else_in_the_file(cli):
    cli.file("config.json", {"theme": "dark", "mcpServers": {"other": {"command": "x", "note": 1}}})
    cli("add", "clock", "--yes", *ADD[2:])
    assert cli.document["theme"] == "dark"
    assert cli.document["mcpServers"] == {"other": {"command": "x", "note": 1}, "clock": ENTRY}


@pytest.mark.usefixtures("clock")
def test_a_server_that_replaces_another_inherits_nothing_said_of_it(cli):
    cli.file(
        "config.json",
        {
            "mcpServers": {"clock": {"command": "old"}},
            "skillbank": {"effects": {"clock": {"*": "pure"}}, "allow": {"clock": ["*"]}},
        },
    )
    assert cli(*ADD).code == 2
    assert cli("add", "clock", "--force", *ADD[2:]).code == 0
    assert cli.document["skillbank"] == {"effects": {}, "allow": {}}


@pytest.mark.usefixtures("clock")
def test_add_makes_a_file_that_is_not_there(cli):
    cli.config.unlink()
    assert cli(*ADD).code == 0
    assert cli.document["mcpServers"] == {"clock": ENTRY}


@pytest.mark.usefixtures("clock")
def test_add_by_address_keeps_headers_unexpanded(cli):
    cli("add", "clock", "--url", "https://h/mcp", "--header", "Authorization=Bearer ${TOKEN}", "--yes")
    assert cli.document["mcpServers"]["clock"] == {
        "url": "https://h/mcp",
        "headers": {"Authorization": "Bearer ${TOKEN}"},
    }


@pytest.mark.usefixtures("clock")
def test_add_keeps_variables_of_the_command(cli):
    cli("add", "clock", "--env", "KEY=${SECRET}", "--env", "EMPTY=", "--", "run-clock")
    assert cli.document["mcpServers"]["clock"] == {
        "command": "run-clock",
        "args": [],
        "env": {"KEY": "${SECRET}", "EMPTY": ""},
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["clock"], "give either a command after -- or --url"),
        (["clock", "--url", "https://h", "--", "run"], "give either a command after -- or --url"),
        (["clock", "--header", "A=b", "--", "run"], "--header goes with --url"),
        (["clock", "--url", "https://h", "--env", "A=b"], "--env goes with a command"),
        (["clock", "--env", "A", "--", "run"], "'A' is not KEY=VALUE"),
        (["clock", "--url", "ftp://h"], "must be an http or https address"),
        (["a__b", "--", "run"], "may not contain '__' or '/'"),
        (["me", "--", "skillbank", "serve"], "would start skillbank itself"),
    ],
)
def test_a_server_that_makes_no_sense_is_misuse(cli, arguments, message):
    ran = cli("add", *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert (cli.started, cli.document) == ([], {})


@pytest.fixture
def hosts(cli, clock, tools):
    """Files of three hosts: a project's, a broken one, and a user's with the same name again."""
    cli.file(
        "project/.mcp.json",
        {"mcpServers": {"clock": ENTRY, "me": {"command": "skillbank", "args": ["serve"]}}},
    )
    cli.file("project/.cursor/mcp.json", '{"mcpServers": {\n')
    cli.file(
        "project/.vscode/mcp.json",
        '{"servers": {"files": {"command": "run-files", "args": ["${workspaceFolder}/x"]}}, /* mine */}',
    )
    cli.file("home/.claude.json", {"mcpServers": {"clock": {"command": "other"}}, "projects": {}})
    cli.file("home/.codex/config.toml", '[mcp_servers.off]\ncommand = "z"\nenabled = false\n')
    assert cli.servers["clock"].tools == clock
    cli.servers["files"] = Probed("files", "ok", tools=tools("files", read_file="Read a file."))


@pytest.mark.usefixtures("hosts")
def test_init_shows_what_would_start_and_starts_nothing_unasked(cli):
    ran = cli("init")
    assert ran.code == 3
    assert "run-clock --zone UTC" in ran.err
    assert "run-files" in ran.err
    assert "say --yes" in ran.err
    assert (cli.started, cli.document) == ([], {})


@pytest.mark.usefixtures("hosts")
def test_init_as_json_says_what_is_planned_and_what_is_skipped(cli):
    ran = cli("init", "--json")
    assert ran.code == 3
    assert [(p["server"], p["starts"]) for p in ran.json["planned"]] == [
        ("clock", "run-clock --zone UTC"),
        ("files", "run-files ${workspaceFolder}/x"),
        ("off", "z"),
    ]
    project = cli.folder / "project"
    assert [(s["server"], s["reason"]) for s in ran.json["skipped"]] == [
        ("me", "starts skillbank itself"),
        ("clock", f"the name is taken by the one of {project / '.mcp.json'}"),
        (
            None,
            f"{project / '.cursor/mcp.json'}:2: not JSON: Expecting property name enclosed in double quotes",
        ),
    ]
    assert ran.json["imported"] == []


@pytest.mark.usefixtures("hosts")
def test_init_with_yes_takes_over_the_rest_of_a_broken_world(cli):
    del cli.servers["clock"]
    ran = cli("init", "--yes", "--json")
    assert ran.code == 0
    assert cli.started == ["clock", "files"]
    assert cli.document["mcpServers"] == {
        "clock": ENTRY,
        "files": {"command": "run-files", "args": [f"{cli.folder}/project/x"]},
        "off": {"command": "z", "enabled": False},
    }
    assert cli.document["skillbank"]["effects"] == {"files": {"read_file": "read"}}
    assert {a["server"]: a["problems"] for a in ran.json["imported"]} == {
        "clock": ["No such file or directory"],
        "files": [],
    }


@pytest.mark.usefixtures("hosts")
@pytest.mark.parametrize(
    ("answers", "started", "classes"),
    [("y\ny\n", True, True), ("y\nn\n", True, False), ("n\n", False, False)],
    ids=["both", "servers only", "nothing"],
)
def test_init_asks_before_it_starts_and_again_about_classes(cli, monkeypatch, answers, started, classes):
    cli.interactive = True
    monkeypatch.setattr("sys.stdin", StringIO(answers))
    ran = cli("init")
    assert ran.code == (0 if started else 3)
    assert bool(cli.started) is started
    assert ("mcpServers" in cli.document) is started
    assert ("skillbank" in cli.document) is classes


@pytest.mark.usefixtures("hosts")
def test_init_from_a_named_file_reads_no_other(cli):
    named = cli.file("mine.json", {"mcpServers": {"files": {"command": "mine"}}})
    ran = cli("init", "--from", named, "--yes", "--json")
    assert [p["server"] for p in ran.json["planned"]] == ["files"]
    assert cli.document["mcpServers"] == {"files": {"command": "mine"}}


def test_init_from_a_named_file_that_is_wrong_is_misuse(cli):
    named = cli.file("mine.json", '{"mcpServers": {"a": {"command": ""}}}')
    ran = cli("init", "--from", named, "--yes", "--json")
    assert ran.code == 2
    assert ran.json["error"]["kind"] == "invalid_config"
    assert "mcpServers.a.command" in ran.json["error"]["message"]


@pytest.mark.usefixtures("hosts")
def test_init_keeps_what_is_configured(cli):
    cli.file("config.json", {"mcpServers": {"clock": {"command": "ours"}, "files": {"command": "ours"}}})
    cli("init", "--yes")
    assert cli.document["mcpServers"]["clock"] == cli.document["mcpServers"]["files"] == {"command": "ours"}


def test_init_on_a_bare_machine_says_what_to_do(cli):
    ran = cli("init")
    assert ran.code == 0
    assert "skillbank add NAME -- COMMAND ARGS" in ran.out


def server(name, status="ok", *problems):
    return ServerReport(
        name=name, status=status, transport="stdio", era="modern", tools=3, seconds=0.5, problems=problems
    )


@pytest.mark.parametrize(
    ("servers", "problems", "code"),
    [
        ((server("a"), server("b")), (), 0),
        ((server("a"), server("b", "problems", "two tools are left out")), (), 1),
        ((server("a", "unreachable", "\x1b[1mgone"),), (), 1),
        ((server("a"),), ("reset of nobody",), 1),
        ((), ("no server is configured",), 1),
    ],
    ids=["well", "problems", "unreachable", "config", "none"],
)
def test_doctor_names_every_server_and_its_problems(cli, servers, problems, code):
    cli.bank.answers["doctor"] = DoctorReport(servers=servers, config="c.json", problems=problems)
    ran = cli("doctor")
    assert ran.code == code
    assert all(problem in ran.out for problem in problems)
    assert "\x1b" not in ran.out
    for report in servers:
        assert report.name in ran.out
    ran = cli("doctor", "--json")
    assert ran.code == code
    assert [s["name"] for s in ran.json["servers"]] == [s.name for s in servers]
    assert {"name", "status", "tools", "problems"} <= {
        key for s in ran.json["servers"] for key in s
    } or not servers


@pytest.mark.usefixtures("clock")
def test_the_tools_a_proposal_frees_are_the_ones_named(cli):
    cli("add", "clock", "--yes", *ADD[2:])
    table = load_config(cli.config).effects
    assert table.effect(ToolId("clock", "list_zones")) is Effect.READ
    assert table.effect(ToolId("clock", "list_added_later")) is Effect.UNKNOWN
    assert table.reset_mode("clock") is Reset.NONE
