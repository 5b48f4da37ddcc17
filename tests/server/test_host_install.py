"""Clients' files are written with everything else in them kept, and read back as the hosts' formats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.config import load_config
from catalog.config.document import parse_document
from catalog.config.splice import with_server_text
from catalog.errors import ConfigError
from server.cli.app import main
from server.host_files import host_files, read_host_file
from server.host_install import CLIENTS, plan_installation, write_installation

VSCODE = """{
  // servers of my own
  "inputs": [{"type": "promptString", "id": "key", "description": "a key", "password": true}],
  "servers": {
    "mine": {"type": "stdio", "command": "mine", "args": ["${input:key}"]}, // the last, with a comma
  },
}
"""


def installed(client: str, home: Path, **options) -> Path:
    planned = plan_installation(client, home, {}, **options)
    write_installation(planned)
    return planned.path


@pytest.mark.parametrize("in_project", [False, True], ids=["user", "project"])
@pytest.mark.parametrize("client", CLIENTS)
def test_what_is_written_is_what_the_host_reads(client: str, in_project: bool, tmp_path: Path):
    home, folder = tmp_path / "home", tmp_path / "project"
    path = installed(client, home, folder=folder if in_project and client != "claude-desktop" else None)
    spec = load_config(path).servers["skillbank"]
    assert spec.is_ourselves
    assert (spec.transport, spec.args) == ("stdio", ("serve",))
    known = {file.path for file in host_files(home, folder, {})}
    assert path in known
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("client", ["claude", "cursor", "vscode"])
def test_the_other_servers_keys_and_comments_stay(client: str, tmp_path: Path):
    path = plan_installation(client, tmp_path, {}).path
    path.parent.mkdir(parents=True, exist_ok=True)
    text = VSCODE if client == "vscode" else VSCODE.replace('"servers": {', '"mcpServers": {')
    path.write_text(text)
    planned = plan_installation(client, tmp_path, {})
    kept = write_installation(planned)
    assert kept is not None
    assert kept.read_text() == text
    after = path.read_text()
    for line in text.splitlines():
        assert line in after
    assert "// servers of my own" in after
    assert "}, // the last, with a comma\n" in after
    document = parse_document(after, path)
    servers = document.data["servers" if client == "vscode" else "mcpServers"]
    assert list(servers) == ["mine", "skillbank"]
    assert servers["mine"]["args"] == ["${input:key}"]
    assert not plan_installation(client, tmp_path, {}).is_change
    file = next(file for file in host_files(tmp_path, tmp_path, {}) if file.path == path and not file.within)
    assert "skillbank" in json.dumps(read_host_file(file).data)


def test_an_older_entry_is_replaced_and_the_copy_before_it_is_not(tmp_path: Path):
    path = installed("cursor", tmp_path)
    first = path.with_name("mcp.json.before-skillbank")
    first.write_text("mine")
    path.write_text('{"mcpServers": {"skillbank": {"command": "old"}, "z": {"command": "z"}}}')
    installed("cursor", tmp_path)
    assert first.read_text() == "mine"
    assert '"old"' in path.with_name("mcp.json.before-skillbank1").read_text()
    assert list(load_config(path).servers) == ["skillbank", "z"]
    assert load_config(path).servers["skillbank"].args == ("serve",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param('{\n "mcpServers": {\n', "mcp.json:3: not JSON", id="cut-off"),
        pytest.param("[1]", "must hold a JSON object", id="a-list"),
        pytest.param(
            '{\n"mcpServers": []}', "mcp.json:2, key 'mcpServers': must be an object", id="servers-are-a-list"
        ),
        pytest.param('{"mcpServers": {}, "mcpServers": {}}', "stands twice", id="a-key-twice"),
        pytest.param('{"mcpServers": {"skillbank": 1, "skillbank": 2}}', "stands twice", id="we-twice"),
    ],
)
def test_a_malformed_file_is_refused_with_the_place_and_left_alone(text: str, said: str, tmp_path: Path):
    path = plan_installation("cursor", tmp_path, {}).path
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(ConfigError) as error:
        plan_installation("cursor", tmp_path, {})
    assert str(path) in str(error.value)
    assert said in str(error.value)
    assert path.read_text() == text


def test_a_file_that_changed_meanwhile_is_not_overwritten(tmp_path: Path):
    planned = plan_installation("cursor", tmp_path, {})
    planned.path.parent.mkdir(parents=True)
    planned.path.write_text("{}")
    with pytest.raises(ConfigError, match="changed meanwhile"):
        write_installation(planned)
    assert planned.path.read_text() == "{}"


def test_the_command_shows_first_writes_when_told_and_says_what_it_kept(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    path = tmp_path / ".cursor" / "mcp.json"
    assert main(["install", "cursor", "--dry-run"]) == 0
    assert '+    "skillbank": {' in capsys.readouterr().err
    assert main(["install", "cursor"]) == 3
    assert not path.exists()
    assert main(["install", "cursor", "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["written"] is True
    assert load_config(path).servers["skillbank"].is_ourselves
    assert main(["install", "cursor"]) == 0


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
entries = st.dictionaries(st.text(min_size=1, max_size=5), json_values, max_size=3)


@given(
    document=st.dictionaries(st.text(max_size=6), json_values, max_size=4),
    servers=st.none() | entries,
    indent=st.sampled_from([None, 2, 4]),
    entry=entries,
)
def test_whatever_else_is_in_the_document_stays_equal(document, servers, indent, entry):
    document.pop("servers", None)
    if servers is not None:
        document = {**document, "servers": servers}
    text = json.dumps(document, indent=indent)
    after = json.loads(with_server_text(text, Path("x.json"), ("servers", "ours"), entry))
    expected = {**document, "servers": {**(servers or {}), "ours": entry}}
    assert after == expected
