"""`doctor` on a configuration of sick servers: each illness is named in words, the healthy one is well."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from catalog.testing.defects import defect_command


def entry(defect: str, log: Path | None = None, **more: Any) -> dict[str, Any]:
    command, args = defect_command(defect, log)
    return {"command": command, "args": list(args), **more}


def sick_servers(folder: Path) -> dict[str, Any]:
    return {
        "absent": {"command": "/nowhere/mcp-server"},
        "unset": {"command": sys.executable, "args": ["-c", "0", "${TOKEN_THAT_IS_NOT_SET}"]},
        "leaves": entry("dies_at_start"),
        "silent": entry("silent", timeout_seconds=2),
        "stranger": entry("wrong_protocol"),
        "refuses": entry("refuses_listing"),
        "noisy": entry("noise"),
        "malformed": entry("malformed_tools"),
        "endless": entry("endless_pages"),
        "twice": entry("duplicate_names"),
        "bomb": entry("hostile_schemas"),
        "broken-text": entry("unreadable_tools"),
        "crashes": entry("dies_at_call", folder / "crashes.log"),
        "far": {"url": "http://127.0.0.1:9/mcp"},
    }


ILLNESSES = {
    "absent": ["unreachable", "cannot start '/nowhere/mcp-server': No such file or directory"],
    "unset": ["unreachable", "TOKEN_THAT_IS_NOT_SET"],
    "leaves": ["unreachable", "the process exited with code 3; its last words: no database at /nowhere"],
    "silent": ["unreachable", "not ready within 2 s"],
    "stranger": ["unreachable", "1999-01-01"],
    "refuses": ["unreachable", "fetch failed"],
    "noisy": ["problems", "lines on its standard output were no messages, the first: 'Starting up...'"],
    "malformed": [
        "problems",
        "tool 'array_input' is quarantined: its input schema describes no object",
        "tool 'odd_hints': annotations of the wrong type were dropped: readOnlyHint",
        "a tool without a name was left out",
    ],
    "endless": ["problems", "its tool list does not end: cut after 200 tools"],
    "twice": ["problems", "tool 'good' is listed twice; the first definition counts"],
    "bomb": [
        "problems",
        "tool 'exponential' is quarantined: output schema: schema expands to more than 20000 subschemas",
        "tool 'in_remote' is quarantined: input schema: $ref leaves the document, it is not fetched",
    ],
    "broken-text": [
        "problems",
        "the text of its tool list was mended: it is not UTF-8",
        "tool 'endless' is quarantined: input schema: schema is nested deeper than 64",
    ],
    "crashes": [
        "problems",
        "the last call of it failed: good: the connection was lost during the call:"
        " the process exited with code 7",
    ],
    "far": ["unreachable", "connect"],
}


@dataclass(frozen=True)
class Machine:
    """A configuration and store of their own, and the command line as a process."""

    folder: Path

    def configure(self, servers: dict[str, Any], **more: Any) -> None:
        (self.folder / "config.json").write_text(json.dumps({"mcpServers": servers, "skillbank": more}))

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        where = ("--config", str(self.folder / "config.json"), "--store", str(self.folder / "store.db"))
        command = [sys.executable, "-m", "server.cli", *arguments, *where]
        return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_each_illness_is_named_and_the_healthy_server_beside_them_is_well(machine):
    servers = sick_servers(machine.folder)
    machine.configure({**servers, "healthy": entry("none")})
    crash = machine.folder / "crash.json"
    call = {"id": "c", "tool": {"server": "crashes", "tool": "good"}, "arguments": {}}
    crash.write_text(
        json.dumps(
            {
                "name": "crash",
                "inputs": {"type": "object"},
                "nodes": [call],
                "outputs": {"a": "$nodes.c.output"},
            }
        )
    )
    assert machine("run", str(crash), "--allow", "crashes/*").returncode == 4

    ran = machine("doctor", "--json")
    assert ran.returncode == 1, ran.stderr
    found = {server["name"]: server for server in json.loads(ran.stdout)["servers"]}
    assert set(found) == {*servers, "healthy"}
    for name, (status, *words) in ILLNESSES.items():
        server = found[name]
        quarantined = [f"tool {t!r} is quarantined: {why}" for t, why in server["quarantined"].items()]
        told = "\n".join([*server["problems"], *quarantined])
        assert server["status"] == status, (name, told)
        for said in words:
            assert said.lower() in told.lower(), (name, told)
    assert [error["kind"] for error in found["crashes"]["last_errors"]] == ["server_unavailable"]
    healthy = found["healthy"]
    assert (healthy["status"], healthy["tools"], healthy["problems"], healthy["quarantined"]) == (
        "ok",
        1,
        [],
        {},
    )

    drawn = machine("doctor")
    assert drawn.returncode == 1
    for name, (_, *words) in ILLNESSES.items():
        lines = "\n".join(line for line in drawn.stdout.splitlines() if line.startswith(f"{name}: "))
        for said in words:
            assert said.lower() in lines.lower(), (name, drawn.stdout)
    assert not any(line.startswith("healthy: ") for line in drawn.stdout.splitlines())


def test_what_strict_hosts_refuse_and_what_tools_say_of_themselves_is_told_and_is_no_illness(machine):
    tools = [
        {"name": "plain", "annotations": {"readOnlyHint": True}},
        {"name": "dotted.name"},
        {
            "name": "either",
            "input_schema": {"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        },
    ]
    scenario = machine.folder / "scenario.json"
    scenario.write_text(json.dumps({"tools": tools}))
    machine.configure({"odd": {"command": sys.executable, "args": ["-m", "catalog.testing", str(scenario)]}})
    ran = machine("doctor", "--json")
    assert ran.returncode == 0, ran.stdout
    (server,) = json.loads(ran.stdout)["servers"]
    assert (server["status"], server["era"], server["tools"], server["annotated"]) == ("ok", "modern", 3, 1)
    assert server["strict_hosts"] == {
        "dotted.name": ["name 'dotted.name'"],
        "either": ["input #: anyOf at the top"],
    }
    assert "a strict host would refuse 2 of 3 tools: dotted.name (name 'dotted.name'); either" in machine(
        "doctor"
    ).stdout.replace("\n", " ")
