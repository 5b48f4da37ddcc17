"""effects list and set: what is shown, and what is written to the configuration."""

from __future__ import annotations

import pytest

from catalog.effects import Effect, Reset
from server.reports import EffectsReport, ToolEffect


def test_effects_list_shows_class_and_reason_of_each_tool(cli):
    effects = (ToolEffect(server="tables", tool="query", effect=Effect.READ, reason="configured: query"),)
    cli.bank.answers["list_effects"] = EffectsReport(effects=effects, reset={"tables": Reset.PROCESS})
    ran = cli("effects", "list")
    assert [line.split() for line in ran.out.splitlines()] == [
        ["tool", "class", "why"],
        ["tables/query", "read", "configured:", "query"],
        ["tables", "reset:", "process"],
    ]
    assert cli("effects", "list", "--json").json == {
        "effects": [{"server": "tables", "tool": "query", "effect": "read", "reason": "configured: query"}],
        "reset": {"tables": "process"},
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
