"""effects list and set: what is shown, and what is written to the configuration."""

from __future__ import annotations

from dataclasses import replace

import pytest

from catalog.effects import Effect, Reset
from catalog.labels import Label
from catalog.tools import ToolId
from server.onboarding import Probed
from server.reports import EffectsReport, LabelsReport, ToolEffect, ToolLabels
from server.reset_trial import TrialCall, TrialVerdict


def test_effects_list_shows_class_and_reason_of_each_tool(cli):
    effects = (ToolEffect(server="tables", tool="query", effect=Effect.READ, reason="configured: query"),)
    cli.bank.answers["list_effects"] = EffectsReport(effects=effects, reset={"tables": Reset.PROCESS})
    ran = cli("effects", "list")
    assert [line.split() for line in ran.out.splitlines()] == [
        ["tool", "class", "why"],
        ["tables/query", "read", "configured:", "query"],
        ["tables", "reset:", "process", "(not", "tried:", "skillbank", "effects", "verify", "tables)"],
    ]
    assert cli("effects", "list", "--json").json == {
        "effects": [{"server": "tables", "tool": "query", "effect": "read", "reason": "configured: query"}],
        "reset": {"tables": "process"},
        "reset_checks": {},
    }


def test_effects_labels_shows_what_each_label_follows_from_and_what_is_granted(cli):
    told = ToolLabels(server="mail", tool="send", labels={Label.PUBLIC_SINK: "its name says send"})
    silent = ToolLabels(server="clock", tool="now", labels={})
    cli.bank.answers["list_labels"] = LabelsReport(tools=(silent, told), flows={"files/*": ("mail/send",)})
    assert [line.split() for line in cli("effects", "labels").out.splitlines()] == [
        ["tool", "label", "why"],
        ["mail/send", "public_sink", "its", "name", "says", "send"],
        ["granted:", "files/*", "→", "mail/send"],
    ]
    assert cli("effects", "labels", "--json").json["tools"][1] == {
        "server": "mail",
        "tool": "send",
        "labels": {"public_sink": "its name says send"},
    }


@pytest.fixture
def tables(cli):
    known = ToolEffect(server="tables", tool="query", effect=Effect.READ, reason="configured by name")
    cli.bank.answers["list_effects"] = EffectsReport(effects=(known,))
    cli.file(
        "config.json",
        {
            "theme": "dark",
            "mcpServers": {"tables": {"command": "x"}},
            "skillbank": {"note": 1, "effects": {"tables": {"query": "read"}}},
        },
    )


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(
    ("arguments", "own"),
    [
        (["tables", "write"], {"effects": {"tables": {"query": "read", "*": "write"}}}),
        (["tables/query", "write"], {"effects": {"tables": {"query": "write"}}}),
        (["tables/get_*", "read"], {"effects": {"tables": {"query": "read", "get_*": "read"}}}),
        (["tables/a/b", "read"], {"effects": {"tables": {"query": "read", "a/b": "read"}}}),
        (
            ["tables", "--reset", "process+dirs"],
            {"effects": {"tables": {"query": "read"}}, "reset": {"tables": "process+dirs"}},
        ),
        (
            ["tables/send", "write", "--allow"],
            {"effects": {"tables": {"query": "read", "send": "write"}}, "allow": {"tables": ["send"]}},
        ),
        (["tables", "--no-allow"], {"effects": {"tables": {"query": "read"}}, "allow": {"tables": []}}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_effects_set_writes_what_was_said_and_keeps_the_rest(cli, arguments, own):
    assert cli("effects", "set", *arguments).code == 0
    assert cli.document == {
        "theme": "dark",
        "mcpServers": {"tables": {"command": "x"}},
        "skillbank": {"note": 1, **own},
    }


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(
    ("tool", "doubted"), [("qurey", True), ("query", False), ("q*", False)], ids=["slip", "known", "pattern"]
)
def test_effects_set_doubts_a_tool_that_a_listed_server_does_not_have(cli, tool, doubted):
    ran = cli("effects", "set", f"tables/{tool}", "pure")
    assert ran.code == 0
    assert ("near: query" in ran.err) is doubted


@pytest.mark.usefixtures("tables")
def test_effects_set_answers_with_what_the_configuration_now_says(cli):
    ran = cli("effects", "set", "tables/send", "write", "--allow", "--json")
    assert ran.json == {
        "effects": [
            {"server": "tables", "tool": "query", "effect": "read", "reason": "configured"},
            {
                "server": "tables",
                "tool": "send",
                "effect": "write",
                "reason": "configured, may run once without asking",
            },
        ],
        "reset": {"tables": "none"},
        "reset_checks": {},
    }


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tables"], "give a CLASS, --reset or --allow"),
        (["tabels", "read"], "no server 'tabels' is configured; there are: tables"),
        (["tables/query", "--reset", "process"], "--reset is of a whole server"),
        (["tables", "often"], "'often' is not one of"),
        (["tables", "--reset", "reboot"], "'reboot' is not one of"),
    ],
)
def test_effects_set_of_nonsense_is_misuse_and_writes_nothing(cli, arguments, message):
    before = cli.config.read_text()
    ran = cli("effects", "set", *arguments, "--json")
    assert ran.code == 2
    assert message in ran.json["error"]["message"]
    assert cli.config.read_text() == before


@pytest.fixture
def listed(cli, tools):
    """A server of notes with a tool that writes and one that reads without arguments."""
    add, read = tools("tables", add_note="Add a note.", list_notes="List notes.")
    listing = replace(read, input_schema={"type": "object"})
    sending = replace(add, id=ToolId("tables", "send"), input_schema={"properties": {"to": {}}})
    cli.servers["tables"] = Probed("tables", "ok", tools=(sending, add, listing))
    classes = {"add_note": "write", "send": "write", "list_notes": "read"}
    cli.file(
        "config.json",
        {
            "mcpServers": {"tables": {"command": "x"}},
            "skillbank": {"effects": {"tables": classes}, "reset": {"tables": "process"}},
        },
    )


@pytest.mark.usefixtures("listed")
def test_verify_shows_what_it_would_call_and_calls_nothing_unasked(cli):
    ran = cli("effects", "verify", "tables")
    assert ran.code == 3
    assert "nothing was called: say --yes" in ran.err
    assert "write  add_note" in ran.err
    assert "send" not in ran.err
    assert "read  list_notes {}" in ran.err
    assert cli.tried == []


@pytest.mark.usefixtures("listed")
@pytest.mark.parametrize(
    ("verdict", "code", "reset", "withdrawn"),
    [("holds", 0, "process", False), ("refuted", 1, "none", True), ("undecided", 1, "process", False)],
)
def test_a_verdict_is_kept_with_its_date_and_a_mode_that_does_not_hold_is_withdrawn(
    cli, verdict, code, reset, withdrawn
):
    cli.verdict = TrialVerdict(verdict, "because")
    ran = cli("effects", "verify", "tables", "--yes", "--json")
    assert (ran.code, ran.json["verdict"], ran.json["withdrawn"]) == (code, verdict, withdrawn)
    own = cli.document["skillbank"]
    assert own["reset"] == {"tables": reset}
    assert own["reset_checks"]["tables"] == {
        "mode": "process",
        "verdict": verdict,
        "on": ran.json["on"],
        "why": "because",
    }
    again = cli("effects", "set", "tables", "--reset", "process")
    assert again.code == (2 if verdict == "refuted" else 0)
    if verdict == "refuted":
        assert "process does not hold, tried on" in again.err
        assert cli("effects", "set", "tables", "--reset", "process+dirs").code == 0
        assert cli("effects", "set", "tables", "--reset", "process", "--force").code == 0


@pytest.mark.usefixtures("listed")
def test_a_mode_that_holds_is_set_and_the_calls_may_be_named(cli):
    cli.verdict = TrialVerdict("holds", "because")
    calls = ("--write", 'send={"to": "x"}', "--read", "list_notes")
    assert cli("effects", "verify", "tables", "--reset", "process+dirs", *calls, "--yes").code == 0
    (trial,) = cli.tried
    assert (trial.mode, trial.spec.name) == (Reset.PROCESS_DIRS, "tables")
    assert trial.writes == (TrialCall("send", {"to": "x"}),)
    assert trial.reads == (TrialCall("list_notes", {}),)
    assert cli.document["skillbank"]["reset"] == {"tables": "process+dirs"}
    assert cli.started == []


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tables"], "tables has no reset mode: say which to try with --reset"),
        (["tabels"], "no server 'tabels' is configured"),
        (["tables", "--reset", "process", "--write", "a=1"], "must be a JSON object"),
    ],
)
def test_verify_of_nonsense_is_misuse(cli, arguments, message):
    ran = cli("effects", "verify", *arguments)
    assert ran.code == 2
    assert message in ran.err
