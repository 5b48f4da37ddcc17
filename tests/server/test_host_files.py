"""Where other hosts keep their servers, and which of them would be taken over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from catalog.config.document import parse_document
from catalog.errors import ConfigError
from server.host_files import HostFile, host_files, plan_import, read_host_file


def documented(path: str, servers: dict[str, object], key: str = "mcpServers"):
    file = HostFile("test", Path(path))
    return file, parse_document(json.dumps({key: servers}), file.path)


def test_the_files_are_those_of_project_and_user():
    found = host_files(Path("/home/me"), Path("/project"), {})
    assert [str(file.path) for file in found] == [
        "/home/me/.claude.json",
        "/project/.mcp.json",
        "/project/.cursor/mcp.json",
        "/project/.vscode/mcp.json",
        "/home/me/.claude.json",
        "/home/me/Library/Application Support/Claude/claude_desktop_config.json",
        "/home/me/AppData/Roaming/Claude/claude_desktop_config.json",
        "/home/me/.config/Claude/claude_desktop_config.json",
        "/home/me/.cursor/mcp.json",
        "/home/me/Library/Application Support/Code/User/mcp.json",
        "/home/me/AppData/Roaming/Code/User/mcp.json",
        "/home/me/.config/Code/User/mcp.json",
        "/home/me/.codex/config.toml",
    ]


def test_variables_move_some_of_them():
    moved = {"XDG_CONFIG_HOME": "/x", "APPDATA": "/a", "CODEX_HOME": "/c", "CLAUDE_CONFIG_DIR": "/d"}
    found = {str(file.path) for file in host_files(Path("/home/me"), Path("/project"), moved)}
    assert {
        "/x/Claude/claude_desktop_config.json",
        "/a/Claude/claude_desktop_config.json",
        "/a/Code/User/mcp.json",
        "/c/config.toml",
        "/d/.claude.json",
    } <= found


def test_the_first_to_use_a_name_keeps_it():
    plan = plan_import(
        [
            documented("/p/.mcp.json", {"a": {"command": "one"}, "kept": {"command": "x"}}),
            documented("/h/.claude.json", {"a": {"command": "two"}}),
        ],
        taken=["kept"],
    )
    assert [(s.spec.name, s.spec.command) for s in plan.servers] == [("a", "one")]
    assert [(s.name, s.reason) for s in plan.skipped] == [
        ("kept", "already configured"),
        ("a", "the name is taken by the one of /p/.mcp.json"),
    ]


@pytest.mark.parametrize("name", ["me", "kept"])
def test_our_own_server_is_never_taken_over(name):
    ours = {name: {"command": "uvx", "args": ["skillbank", "serve"]}}
    plan = plan_import([documented("/p/.mcp.json", ours)], taken=["kept"])
    assert plan.servers == ()
    assert plan.skipped[0].reason == "starts skillbank itself"


def test_an_entry_keeps_unknown_keys_and_is_tied_to_its_workspace():
    servers = {"a": {"command": "${workspaceFolder}/run", "args": ["${TOKEN}"], "gallery": {"x": 1}}}
    plan = plan_import([documented('/my "p"/.vscode/mcp.json', servers, "servers")], taken=[])
    assert plan.servers[0].entry == {
        "command": '/my "p"/run',
        "args": ["${TOKEN}"],
        "gallery": {"x": 1},
    }


def test_reading_a_file_checks_every_entry(tmp_path):
    path = tmp_path / ".mcp.json"
    path.write_text('{"mcpServers": {\n"a": {"command": 1}}}')
    with pytest.raises(ConfigError, match=r"\.mcp\.json:2, key 'mcpServers\.a\.command'"):
        read_host_file(HostFile("project", path))


def test_servers_of_this_project_alone_are_read_from_where_claude_code_keeps_them(tmp_path):
    path = tmp_path / ".claude.json"
    projects = {
        "/project": {"mcpServers": {"mine": {"command": "run"}}, "history": []},
        "/other": {"mcpServers": {"theirs": {"command": 1}}},
    }
    path.write_text(json.dumps({"mcpServers": {"all": {"command": "x"}}, "projects": projects}, indent=1))
    files = [file for file in host_files(tmp_path, Path("/project"), {}) if file.path == path]
    plan = plan_import([(file, read_host_file(file)) for file in files], taken=[])
    assert [(s.spec.name, s.file.host) for s in plan.servers] == [
        ("mine", "Claude Code, this project"),
        ("all", "Claude Code"),
    ]
    elsewhere = host_files(tmp_path, Path("/nowhere"), {})[0]
    assert plan_import([(elsewhere, read_host_file(elsewhere))], taken=[]).servers == ()
    wrong = host_files(tmp_path, Path("/other"), {})[0]
    with pytest.raises(ConfigError, match=rf"{path}:\d+, key 'mcpServers.theirs.command'"):
        read_host_file(wrong)


KEY = {"type": "promptString", "id": "key", "description": "Key", "password": True}


def asking(path: str, key: dict[str, object], name: str = "a"):
    file = HostFile("VS Code", Path(path))
    servers = {name: {"command": "x", "env": {"K": "${input:key}"}, "envFile": "${workspaceFolder}/.env"}}
    return file, parse_document(
        json.dumps({"servers": servers, "inputs": [key, {**KEY, "id": "un"}]}), file.path
    )


def test_what_a_server_asks_for_comes_with_it_and_nothing_else_does():
    plan = plan_import([asking("/p/.vscode/mcp.json", KEY)], taken=[])
    assert plan.servers[0].inputs == (KEY,)
    assert plan.servers[0].entry == {"command": "x", "env": {"K": "${input:key}"}, "envFile": "/p/.env"}


def test_two_files_that_ask_for_different_things_under_one_name_stay_apart():
    other = {**KEY, "description": "Another key"}
    plan = plan_import(
        [
            asking("/p/.vscode/mcp.json", KEY),
            asking("/q/.vscode/mcp.json", KEY, "same"),
            asking("/r/.vscode/mcp.json", other, "b"),
        ],
        taken=[],
        asked=[{**KEY, "description": "Ours"}],
    )
    assert [(s.entry["env"], [i["id"] for i in s.inputs]) for s in plan.servers] == [
        ({"K": "${input:a-key}"}, ["a-key"]),
        ({"K": "${input:same-key}"}, ["same-key"]),
        ({"K": "${input:b-key}"}, ["b-key"]),
    ]
    alone = plan_import([asking("/p/.vscode/mcp.json", KEY)], taken=[], asked=[KEY])
    assert alone.servers[0].entry["env"] == {"K": "${input:key}"}
