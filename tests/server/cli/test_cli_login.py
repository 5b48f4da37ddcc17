"""login, logout, inputs: against a real server behind a real authorization server, in subprocesses too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from io import StringIO

import anyio.from_thread
import httpx2
import pytest

from catalog.testing import ScriptedServer, ScriptedTool
from catalog.testing.oauth import open_guarded_server
from server.onboarding import Probed

BROWSER = "import sys, httpx2; httpx2.get(sys.argv[1], follow_redirects=True)"


@pytest.fixture
def guarded():
    tools = ScriptedServer([ScriptedTool("list_items", respond=["me"], description="List the items.")])
    with anyio.from_thread.start_blocking_portal() as portal:
        opening = portal.call(lambda: open_guarded_server(tools))
        with portal.wrap_async_context_manager(opening) as server:
            yield server


@pytest.fixture
def skillbank(tmp_path, guarded):
    """Runs the program as a person does, with a browser that says yes."""
    script = tmp_path / "browser.py"
    script.write_text(BROWSER)
    (tmp_path / "c.json").write_text(json.dumps({"mcpServers": {"far": {"url": guarded.url}}}))
    where = ["--config", str(tmp_path / "c.json"), "--store", str(tmp_path / "s.db")]
    environment = {**os.environ, "BROWSER": f"{sys.executable} {script} %s"}

    def run(*arguments):
        command = [sys.executable, "-m", "server.cli", *arguments, *where]
        return subprocess.run(
            command, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL, timeout=60
        )

    return run


def test_a_person_logs_in_uses_the_server_and_logs_out(skillbank, guarded, tmp_path):
    ran = skillbank("doctor")
    assert "needs login: skillbank login far (nobody is logged in)" in ran.stdout
    assert guarded.log == []

    ran = skillbank("login", "far", "--json")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {
        "server": "far",
        "status": "logged_in",
        "scopes": ["tools"],
        "kept_in": str(tmp_path / "s.secrets"),
    }
    assert "log in to far here: http://127.0.0.1:" in ran.stderr
    assert "Traceback" not in ran.stderr

    ran = skillbank("doctor", "--json")
    assert ran.returncode == 0, ran.stdout
    assert json.loads(ran.stdout)["servers"][0]["tools"] == 1
    assert skillbank("login", "far").stdout == (
        f"far: you were logged in already; tokens are in {tmp_path / 's.secrets'}\n"
    )

    kept = (tmp_path / "s.secrets").read_text()
    assert all(token in kept for token in guarded.tokens)
    everything = [
        path.read_bytes() for path in tmp_path.iterdir() if path.is_file() and path.suffix != ".secrets"
    ]
    assert not any(token.encode() in content for token in guarded.tokens for content in everything)

    assert "took its tokens back" in skillbank("logout", "far").stdout
    assert json.loads((tmp_path / "s.secrets").read_text()) == {}
    assert "nobody was logged in" in skillbank("logout", "far").stdout


def test_a_login_that_is_refused_is_told_without_a_traceback(skillbank, guarded):
    guarded.denies = True
    ran = skillbank("login", "far")
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[-1] == "skillbank: far: login failed: access_denied: not this time"
    assert "Traceback" not in ran.stderr


def test_a_server_that_needs_a_login_is_added_on_request_only(skillbank, tmp_path, guarded):
    (tmp_path / "c.json").write_text("{}")
    ran = skillbank("add", "far", "--url", guarded.url, "--json")
    assert ran.returncode == 3
    assert json.loads(ran.stdout)["error"]["kind"] == "needs_login"
    assert (tmp_path / "c.json").read_text() == "{}"
    assert skillbank("add", "far", "--url", guarded.url, "--force").returncode == 0
    assert skillbank("login", "far").returncode == 0


def test_at_a_terminal_adding_such_a_server_logs_in_first(cli, guarded, monkeypatch):
    needy = Probed("far", "unreachable", problems=("far: needs login: skillbank login far (nobody is)",))
    cli.servers["far"] = needy
    cli.interactive = True
    monkeypatch.setattr("sys.stdin", StringIO("y\n"))

    def browse(url):
        threading.Thread(target=httpx2.get, args=(url,), kwargs={"follow_redirects": True}).start()
        cli.servers["far"] = Probed("far", "ok")
        return True

    monkeypatch.setattr("webbrowser.open", browse)
    ran = cli("add", "far", "--url", guarded.url)
    assert ran.code == 0, ran.err
    assert guarded.log == ["register", "authorize", "exchange"]
    assert cli.document["mcpServers"] == {"far": {"url": guarded.url}}


def test_after_a_login_at_a_terminal_classes_are_proposed_once(cli, guarded, monkeypatch, tools):
    cli.file("config.json", {"mcpServers": {"far": {"url": guarded.url}}})
    cli.servers["far"] = Probed("far", "ok", tools=tools("far", list_items="List the items."))
    cli.interactive = True
    monkeypatch.setattr("sys.stdin", StringIO("y\n"))

    def browse(url):
        threading.Thread(target=httpx2.get, args=(url,), kwargs={"follow_redirects": True}).start()
        return True

    monkeypatch.setattr("webbrowser.open", browse)
    assert cli("login", "far").code == 0
    assert cli.document["skillbank"]["effects"] == {"far": {"list_items": "read"}}
    guarded.revoke_all()
    assert cli("login", "far").code == 0
    assert cli.started == ["far"]


def test_without_a_browser_the_address_is_shown_for_a_person_to_open(cli, guarded, monkeypatch):
    cli.file("config.json", {"mcpServers": {"far": {"url": guarded.url}}})
    monkeypatch.setattr("webbrowser.open", None)
    shown = []

    def read(_session, message):
        shown.append(message)
        url = message.split()[-1]
        threading.Thread(target=httpx2.get, args=(url,), kwargs={"follow_redirects": True}).start()

    monkeypatch.setattr("server.cli.session.Session.say", read)
    assert cli("login", "far", "--no-browser", "--json").json["status"] == "logged_in"
    assert len(shown) == 1
    assert "/authorize?response_type=code&" in shown[0]


def test_a_login_that_nobody_comes_back_from_is_given_up(cli, guarded):
    cli.file("config.json", {"mcpServers": {"far": {"url": guarded.url}}})
    ran = cli("login", "far", "--no-browser", "--wait", "0.5", "--json")
    assert ran.code == 1
    assert ran.json["error"]["kind"] == "login_failed"
    assert "nobody came back within 0.5 s" in ran.json["error"]["message"]


@pytest.mark.parametrize("command", ["login", "logout"])
def test_logging_in_to_nobody_is_misuse(cli, command):
    ran = cli(command, "far")
    assert ran.code == 2
    assert "no server 'far' is configured; there are: none" in ran.err


INPUTS = {
    "mcpServers": {"a": {"command": "x", "args": ["${input:key}"], "env": {"Z": "${input:zone}"}}},
    "inputs": [
        {"type": "promptString", "id": "key", "description": "API key", "password": True},
        {"type": "pickString", "id": "zone", "options": ["eu", "us"]},
    ],
}


def test_inputs_are_listed_answered_and_forgotten_and_never_written_to_the_configuration(cli, monkeypatch):
    cli.file("config.json", INPUTS)
    assert [
        (i["id"], i["answered"], i["servers"]) for i in cli("inputs", "list", "--json").json["inputs"]
    ] == [
        ("key", False, ["a"]),
        ("zone", False, ["a"]),
    ]
    monkeypatch.setattr("sys.stdin", StringIO("hush-hush\nmore\n"))
    ran = cli("inputs", "set", "key")
    assert ran.code == 0
    assert "hush" not in ran.out + ran.err
    assert cli.document == INPUTS
    secrets = cli.folder / "store.secrets"
    assert "hush-hush" in secrets.read_text()
    assert secrets.stat().st_mode & 0o777 == 0o600
    assert [i["answered"] for i in cli("inputs", "list", "--json").json["inputs"]] == [True, False]
    assert cli("inputs", "forget", "key").code == 0
    assert "hush" not in secrets.read_text()
    assert "was not answered" in cli("inputs", "forget", "key").err


@pytest.mark.parametrize(
    ("name", "typed", "message"),
    [
        ("zone", "mars\n", "'mars' is none of: eu, us"),
        ("zone", "", "no answer to 'zone'"),
        ("kye", "x\n", "asks for no input 'kye'; there are: key, zone"),
    ],
)
def test_an_answer_that_makes_no_sense_is_misuse_and_kept_nowhere(cli, monkeypatch, name, typed, message):
    cli.file("config.json", INPUTS)
    monkeypatch.setattr("sys.stdin", StringIO(typed))
    ran = cli("inputs", "set", name)
    assert ran.code == 2
    assert message in ran.err
    assert not (cli.folder / "store.secrets").exists()


def test_at_a_terminal_servers_wait_for_answers_and_each_is_asked_for_once(cli, monkeypatch):
    from server.reports import DoctorReport

    cli.file("config.json", INPUTS)
    cli.bank.answers["doctor"] = DoctorReport(servers=())
    cli.interactive = True
    typed = {"API key": "hush-hush", "zone": "us"}
    monkeypatch.setattr("click.termui.hidden_prompt_func", lambda _prompt: typed["API key"])
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _prompt: typed["zone"])
    cli("doctor")
    assert [i["answered"] for i in cli("inputs", "list", "--json").json["inputs"]] == [True, True]
    monkeypatch.setattr("click.termui.visible_prompt_func", None)
    assert cli("doctor").code == 0


def test_init_takes_inputs_over_shows_them_and_asks_before_anything_starts(cli, monkeypatch, tools):
    servers = {"a": {"command": "x", "env": {"K": "${input:key}"}}}
    cli.file("project/.vscode/mcp.json", {"servers": servers, "inputs": INPUTS["inputs"]})
    cli.servers["a"] = Probed("a", "ok", tools=tools("a", list_x="List."))
    cli.interactive = True
    seen = []

    def hidden(prompt):
        seen.append((prompt, list(cli.started)))
        return "hush-hush"

    monkeypatch.setattr("click.termui.hidden_prompt_func", hidden)
    monkeypatch.setattr("sys.stdin", StringIO("y\ny\n"))
    ran = cli("init")
    assert ran.code == 0, ran.err
    assert "x (asks for key)" in ran.err
    assert seen == [("API key: ", [])]
    assert cli.document["inputs"] == INPUTS["inputs"][:1]
    assert cli.document["mcpServers"] == servers
    assert "hush" not in cli.config.read_text()
    assert "hush" in (cli.folder / "store.secrets").read_text()


def test_init_says_what_is_asked_for_as_data(cli):
    servers = {"a": {"command": "x", "env": {"K": "${input:key}"}}}
    cli.file("project/.vscode/mcp.json", {"servers": servers, "inputs": INPUTS["inputs"]})
    assert cli("init", "--json").json["planned"][0]["asks"] == ["key"]
