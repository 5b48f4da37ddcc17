"""Trying reset modes on real processes: one that forgets, ones that keep something behind."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from catalog.config import Config, ServerSpec
from catalog.connections import open_connections
from catalog.effects import Effect, EffectTable, Reset
from catalog.tools import Tool, ToolId
from server.reset_trial import ResetTrial, TrialCall, observers, propose_write, try_reset
from server.watched_files import changed_files, is_only_home, look_at, watched_places

SERVER = """
import json, sys, time
from pathlib import Path

where, given, home = sys.argv[1], Path(sys.argv[2]), Path.home() / "notes.json"
path = {"memory": None, "cwd": Path("notes.json"), "home": home, "given": given}[where]
notes = json.loads(path.read_text()) if path and path.exists() else []

def call(tool, arguments):
    if tool == "add_note":
        notes.append(arguments["text"])
        if path:
            path.write_text(json.dumps(notes))
        return "added"
    answers = {"list_notes": lambda: json.dumps(notes), "list_nothing": str, "get_time": time.time_ns}
    return str(answers[tool]())

TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in (
    "add_note", "list_notes", "list_nothing", "get_time", "add_broken")]

def answer(method, params):
    if method == "initialize":
        said = {"capabilities": {"tools": {}}, "serverInfo": {"name": "notes", "version": "1"}}
        return {"protocolVersion": params["protocolVersion"], **said}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        try:
            text, failed = call(params["name"], params["arguments"]), False
        except KeyError as error:
            text, failed = f"broken: {error}", True
        return {"content": [{"type": "text", "text": text}], "isError": failed}

for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = answer(message["method"], message.get("params", {}))
        reply = {"result": result} if result else {"error": {"code": -32601, "message": "no such method"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)
"""
WRITE = TrialCall("add_note", {"text": "x"})
LIST = TrialCall("list_notes", {})


@pytest.fixture
def notes(tmp_path):
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    (tmp_path / "work").mkdir()
    (tmp_path / "home").mkdir()
    (tmp_path / "data").mkdir()

    def make(where):
        return ServerSpec(
            "notes",
            command=sys.executable,
            args=(str(script), where, str(tmp_path / "data" / "notes.json")),
            cwd=str(tmp_path / "work"),
            env={"HOME": str(tmp_path / "home")},
        )

    return make


async def tried(spec, mode, *reads, writes=(WRITE,)):
    async with open_connections(Config(servers={spec.name: spec}), spares=False) as connections:
        return await try_reset(connections, ResetTrial(spec, mode, writes, reads or (LIST,)), {})


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("where", "mode", "verdict", "why"),
    [
        ("memory", Reset.PROCESS, "holds", "list_notes showed the write in its own process, not in the next"),
        ("cwd", Reset.PROCESS, "refuted", "the write left files changed behind"),
        ("cwd", Reset.PROCESS_DIRS, "holds", "list_notes showed the write"),
        ("home", Reset.PROCESS, "refuted", "list_notes of the next process still shows the write"),
        ("home", Reset.PROCESS_DIRS, "holds", "list_notes showed the write"),
        ("given", Reset.PROCESS_DIRS, "refuted", "the write left files changed behind"),
    ],
)
async def test_a_claim_is_tried_in_fresh_processes(notes, where, mode, verdict, why):
    found = await tried(notes(where), mode)
    assert (found.verdict, why in found.why) == (verdict, True), found.why


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("reads", "writes", "why"),
    [
        ([TrialCall("list_nothing", {})], [WRITE], "no tool that only reads showed the write"),
        ([TrialCall("get_time", {})], [WRITE], "no tool that only reads showed the write"),
        ([LIST], [TrialCall("add_broken", {"text": "x"})], "the write failed: add_broken: "),
        ([LIST], [TrialCall("nowhere", {})], "the write failed: nowhere: "),
    ],
    ids=["blind", "volatile", "failing", "unknown"],
)
async def test_what_cannot_be_told_is_undecided_and_says_why(notes, reads, writes, why):
    found = await tried(notes("memory"), Reset.PROCESS, *reads, writes=tuple(writes))
    assert found.verdict == "undecided"
    assert why in found.why


@pytest.mark.anyio
async def test_a_server_that_cannot_be_started_is_undecided(notes):
    found = await tried(replace(notes("memory"), command="/nowhere"), Reset.PROCESS)
    assert found.verdict == "undecided"
    assert "a fresh process could not be started" in found.why


def tool(name, effect, required=(), **properties):
    schema = {"type": "object", "properties": dict(properties), "required": list(required)}
    return Tool(ToolId("s", name), schema), effect


def listed(*pairs):
    return [t for t, _ in pairs], EffectTable(effects={"s": {t.id.tool: effect for t, effect in pairs}})


def test_only_tools_known_to_read_that_need_no_arguments_observe():
    tools, table = listed(
        tool("list_a", Effect.READ),
        tool("get_b", Effect.READ, ["id"], id={"type": "string"}),
        tool("pure_c", Effect.PURE),
        tool("drop_d", Effect.WRITE),
        tool("who_e", Effect.UNKNOWN),
    )
    assert observers(tools, table) == (TrialCall("list_a", {}),)


def test_the_write_proposed_is_known_to_write_and_reaches_nobody_outside():
    text = {"type": "string"}
    tools, table = listed(
        tool("send", Effect.WRITE, ["to"], to=text),
        tool("run", Effect.WRITE, ["command"], command=text),
        tool("odd", Effect.UNKNOWN, ["text"], text=text),
        tool("add_note", Effect.WRITE, ["text"], text=text),
    )
    found = propose_write(tools, table)
    assert found.tool == "add_note"
    assert isinstance(found.arguments["text"], str)
    assert propose_write(tools[:3], table) is None


def test_places_are_the_working_folder_home_and_the_paths_it_is_given(tmp_path):
    for name in ("work", "home/.a/b/c/d", "data"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("work/x", "home/.a/y", "home/.a/b/c/d/deep", "data/z"):
        (tmp_path / name).write_text("1")
    spec = ServerSpec(
        "s",
        command="x",
        args=("--file", f"--db={tmp_path}/data/z", "/not/there"),
        cwd=str(tmp_path / "work"),
        env={"HOME": str(tmp_path / "home")},
    )
    places = watched_places(spec, {"HOME": "/elsewhere"})
    before = look_at(places)
    assert {path.removeprefix(str(tmp_path)) for path in before} == {"/work/x", "/home/.a/y", "/data/z"}
    (tmp_path / "work" / "x").write_text("22")
    (tmp_path / "home" / "new").write_text("")
    (tmp_path / "data" / "z").unlink()
    changed = changed_files(before, look_at(places))
    assert {path.removeprefix(str(tmp_path)) for path in changed} == {"/work/x", "/home/new", "/data/z"}
    assert {path for path in changed if is_only_home(path, places)} == {str(tmp_path / "home" / "new")}
