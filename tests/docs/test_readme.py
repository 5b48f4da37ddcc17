"""Every command line that the documents show is one that the program takes."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path

import click
import pytest
from generated import ANSWERS, PROJECT, commands
from reading import PAGES, blocks, command_lines

from server.cli.app import app
from server.cli.ports import product_wiring

README = PROJECT / "README.md"
LINES = [(page.name, words) for page in PAGES for words in command_lines(page)]


def parsed(words: list[str]) -> None:
    """Read a command line as the program does, without carrying it out; a command alone is only looked up.

    Raises:
        ClickException: the program would refuse it.
    """
    group: click.Group = app
    context = app.make_context("skillbank", [], obj=product_wiring(), resilient_parsing=True)
    rest = list(words)
    while rest:
        if (two := " ".join(rest[:2])) in group.list_commands(context):  # a name of two words
            rest = [two, *rest[2:]]
        command = group.get_command(context, rest[0])
        if command is None:
            raise click.UsageError(f"no command {rest[0]!r}")
        if not isinstance(command, click.Group):
            is_mentioned = len(rest) == 1
            command.make_context(rest[0], rest[1:], parent=context, resilient_parsing=is_mentioned)
            return
        group, rest = command, rest[1:]


@pytest.mark.parametrize(
    ("page", "words"), LINES, ids=[f"{page}: {' '.join(words)}"[:100] for page, words in LINES]
)
def test_shown_command_lines_are_taken(page: str, words: list[str], tmp_path: Path, monkeypatch):
    del page
    for word in words:
        if word.endswith((".json", ".jsonl", ".py")):
            (tmp_path / word).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / word).write_text("{}")
    (tmp_path / "training").mkdir()
    for option, word in itertools.pairwise(words):
        if words[0] == "train" and option in ("--model", "--data"):
            (tmp_path / word).mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(tmp_path)
    if words[:1] != ["--help"]:
        parsed(words)


def test_a_wrong_command_line_is_noticed():
    with pytest.raises(click.ClickException):
        parsed(["skills", "paint"])
    with pytest.raises(click.ClickException):
        parsed(["run", "--inputs", "{", os.devnull])


def test_every_command_is_shown_somewhere():
    shown = [" ".join(words) for _, words in LINES]
    missing = [name for name, _ in commands() if not any(line.startswith(name) for line in shown)]
    assert missing == []


def test_the_keys_of_every_json_answer_are_documented():
    answered = {"bench" if name.startswith("bench ") else name for name in ANSWERS}
    assert {name for name, _ in commands()} - answered == {"serve", "envs serve"}


def test_the_readme_has_the_two_commands_that_ci_takes_from_it():
    lines = [line for line in README.read_text("utf-8").splitlines() if line.startswith("python3 -m venv ")]
    assert [line.rsplit("/", 1)[1] for line in lines] == ["skillbank demo", "pytest -n auto"]


def test_the_readme_is_short():
    assert len(README.read_text("utf-8").splitlines()) <= 150


def test_the_snippets_for_clients_start_this_program():
    for text in blocks(README, "json"):
        table = json.loads(text)
        (entry,) = table.get("mcpServers", table.get("servers")).values()
        assert entry["command"] == "skillbank"
        parsed(entry["args"])
