"""Progress of long work on a model: every part of it is told once, on a terminal or to a file."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from server.cli.model_progress import StepLine, render_step
from server.models.step import Step

MEGABYTE = 10**6


def shown(*steps: Step, terminal: bool) -> str:
    out = io.StringIO()
    with StepLine(Console(file=out, force_terminal=terminal, width=100)) as line:
        for step in steps:
            line(step)
    return out.getvalue()


@pytest.mark.parametrize(
    ("step", "line"),
    [
        (Step("preparing the build"), "preparing the build"),
        (Step("joining tiny", 2 * MEGABYTE, 4 * MEGABYTE, "B"), "joining tiny  2/4 MB"),
        (Step("building", 52, 206, "files"), "building  52/206 files"),
        (Step("\x1b[31mred"), "red"),
    ],
)
def test_a_step_is_one_line(step, line):
    assert render_step(step) == line


def test_where_there_is_no_terminal_a_piece_of_work_takes_a_few_lines():
    downloading = [Step("downloading", done, 1_000, "files") for done in range(1_001)]
    lines = shown(*downloading, Step("checking"), terminal=False).splitlines()
    assert lines == [f"downloading  {done}/1000 files" for done in (0, 250, 500, 750, 1_000)] + ["checking"]


def test_on_a_terminal_each_piece_of_work_is_named_once():
    text = shown(Step("first", 1, 2, "files"), Step("first", 2, 2, "files"), Step("then this"), terminal=True)
    assert (text.count("first"), text.count("then this")) == (1, 1)
