"""serve, demo, bench, and what the command line says of itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from server.bench.request import BenchRequest
from server.cli.app import app
from server.provisioning.errors import DemoServersMissing


def leaves(command=app, path=()):
    """Every command that does something, by its words."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from leaves(command.get_command(context, name), (*path, name))
    else:
        yield path


COMMANDS = sorted(leaves())


def test_the_commands_are_these():
    assert [" ".join(path) for path in COMMANDS] == [
        *("add", "audit", "bench", "check", "demo", "doctor"),
        *("effects approvals", "effects approve", "effects labels", "effects list", "effects revoke"),
        *("effects set", "effects verify", "envs list", "envs serve", "evolve"),
        *("experience drop", "experience list", "experience show"),
        *("explore", "export", "export training", "import", "init"),
        *("inputs forget", "inputs list", "inputs set", "install", "login", "logout"),
        *("model fetch", "model list", "model serve", "record list", "record prune", "record show", "repair"),
        *("review", "run", "serve", "skills add-code", "skills approve", "skills delete", "skills list"),
        *(
            "skills pin",
            "skills reject",
            "skills restore",
            "skills retire",
            "skills rollback",
            "skills run",
            "skills save",
            "skills show",
        ),
        *("skills test", "skills unpin", "solve", "train"),
    ]


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_has_help_and_the_common_options(cli, path):
    ran = cli.bare(*path, "--help")
    assert (ran.code, ran.err) == (0, "")
    for option in ("--config", "--store", "--json"):
        assert option in ran.out


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_examples_write_assertions_in_single_quotes(cli, path):
    text = cli.bare(*path, "--help").out
    for line in text.splitlines():
        if "`" in line:
            assert line.index("'") < line.index("`") < line.rindex("`") < line.rindex("'")


def test_the_version_is_the_installed_one(cli):
    assert cli.bare("--version").out == "skillbank, version 0.1.0\n"


def test_no_command_at_all_shows_help_and_is_misuse(cli):
    ran = cli.bare()
    assert ran.code == 2
    assert "Commands:" in ran.err


@pytest.mark.parametrize(
    ("arguments", "address"),
    [
        ((), None),
        (("--http", "127.0.0.1:8765"), ("127.0.0.1", 8765)),
        (("--http", "[::1]:0"), ("::1", 0)),
    ],
)
def test_serve_is_on_stdio_unless_an_address_is_given(cli, arguments, address):
    ran = cli("serve", *arguments)
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    settings, served = cli.work["serve"]
    assert (settings.config_path, served.address) == (cli.config, address)


@pytest.mark.parametrize("address", ["8765", ":8765", "host:", "host:http", "host:99999"])
def test_an_address_that_is_none_is_misuse(cli, address):
    ran = cli("serve", "--http", address)
    assert ran.code == 2
    assert "is not HOST:PORT" in ran.err


def test_demo_and_bench_are_told_what_was_asked(cli):
    tasks = cli.file("t.json", [])
    assert cli("demo", "--json", "--keep", "here", "--story", "one").code == 0
    assert cli("bench", "search", "--quick", "--tasks", tasks).code == 0
    request = BenchRequest("search", True, False, Path(tasks), config=cli.config, write=None)
    assert cli.work == {"demo": (True, Path("here"), "one"), "bench": (request,)}


def test_bench_on_its_own_cases_uses_its_own_servers(cli):
    cli("bench", "--json", "--write", "t.md")
    assert cli.work["bench"] == (
        BenchRequest("repair", False, True, tasks=None, config=None, write=Path("t.md")),
    )


def test_bench_planning_is_told_whose_plans_and_where_they_are_kept(cli):
    cli("bench", "planning", "--model", "recorded:old.jsonl", "--tape", "new.jsonl")
    [request] = cli.work["bench"]
    assert (request.name, request.model, request.tape) == (
        "planning",
        "recorded:old.jsonl",
        Path("new.jsonl"),
    )
    assert request.settings.config_path == cli.config


def test_missing_demo_servers_are_named_with_their_cure(cli):
    async def missing(*_):
        raise DemoServersMissing(["excel"])

    cli._worker = lambda *_: missing
    ran = cli("demo", "--json")
    assert ran.code == 2
    assert "pip install 'skillbank[demo]'" in ran.json["error"]["message"]


def test_help_and_mistakes_answer_without_loading_the_protocol():
    script = (
        "import sys; from server.cli import main; main(['repair', '--help']); print('mcp' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
