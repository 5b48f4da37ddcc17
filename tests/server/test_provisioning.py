"""The demo's servers as a configuration, and the files they read."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from catalog.config import load_config
from catalog.effects import Effect, Reset
from catalog.tools import ToolId
from server.provisioning.demo_files import REPOSITORY, WORKBOOK, build_fixtures
from server.provisioning.demo_servers import DEMO_SERVERS, DemoServer, demo_document
from server.provisioning.errors import DemoServersMissing

_ALL_THERE = all(server.version() is not None for server in DEMO_SERVERS)
needs_demo = pytest.mark.skipif(not _ALL_THERE, reason="needs skillbank[demo]")


def test_a_server_that_is_not_installed_is_named_with_how_to_install_it(monkeypatch):
    absent = DemoServer("absent", "skillbank-has-no-such-distribution", script="absent")
    monkeypatch.setattr("server.provisioning.demo_servers.DEMO_SERVERS", (absent,))

    assert absent.version() is None
    with pytest.raises(DemoServersMissing, match=r"absent\. They come with: pip install 'skillbank\[demo\]'"):
        demo_document()


def test_a_name_that_is_no_demo_server_is_refused():
    with pytest.raises(ValueError, match="not among the demo servers: weather"):
        demo_document(["weather"])


@needs_demo
def test_the_configuration_can_be_loaded_and_says_what_the_tools_do(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(demo_document()), encoding="utf-8")

    config = load_config(path)

    assert set(config.servers) == {server.name for server in DEMO_SERVERS}
    assert all(shutil.which(str(spec.command)) for spec in config.servers.values())
    assert config.effects.effect(ToolId("git", "git_log")) is Effect.READ
    assert config.effects.effect(ToolId("git", "git_commit")) is Effect.WRITE
    assert config.effects.effect(ToolId("excel", "write_range")) is Effect.WRITE
    assert config.effects.effect(ToolId("mathematics", "create_session")) is Effect.WRITE
    assert config.effects.effect(ToolId("mathematics", "convert_units")) is Effect.PURE
    assert config.effects.reset_mode("sqlite") is Reset.PROCESS_DIRS


@pytest.mark.skipif(shutil.which("git") is None or not _ALL_THERE, reason="needs git and skillbank[demo]")
def test_the_repository_has_the_same_commits_whatever_the_users_git_says(tmp_path, monkeypatch):
    config = tmp_path / "gitconfig"
    config.write_text("[user]\n\tname = Somebody\n[core]\n\tautocrlf = true\n", encoding="utf-8")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Somebody")
    folder = tmp_path / "fixtures"
    folder.mkdir()

    build_fixtures(folder)

    log = subprocess.run(
        ["git", "log", "--format=%h %an %aI", "--abbrev=12"],
        cwd=folder / REPOSITORY,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    assert (folder / WORKBOOK).stat().st_size > 0
    assert [line.split(" ", 1)[1] for line in log] == [
        "Alan 2026-04-07T06:20:00+00:00",
        "Ada 2026-03-03T18:45:00+00:00",
        "Grace 2026-02-10T14:30:00+00:00",
        "Ada 2026-01-05T09:15:00+00:00",
    ]
    assert log[-1].startswith("3e92f8f43e4e")
