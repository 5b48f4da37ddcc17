"""What a listed skill costs whoever reads the list is bounded, whatever was written of it."""

from __future__ import annotations

import json
import re
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from fake_bank import skill
from hypothesis import given
from hypothesis import strategies as st
from mcp.types import Icon

from server.listed_skill import description_of, listed_characters
from server.surface.icons import SERVER_ICONS, SKILL_ICONS, TOOL_ICONS
from server.surface.skill_tools import skill_tool
from skills_store.skill import Guidance

WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=900)


@given(description=WORDS, when=WORDS, pitfalls=st.lists(WORDS, max_size=6))
def test_a_description_is_bounded_and_keeps_its_example(description: str, when: str, pitfalls: list[str]):
    guidance = Guidance(when_to_use=when, pitfalls=tuple(pitfalls))
    told = description_of(
        skill("double").model_copy(update={"description": description, "guidance": guidance})
    )
    assert len(told) <= 500
    assert told.endswith('Example: {"value": 3} returns {"doubled": 6}')
    assert description[:100].rstrip() in told


@pytest.mark.parametrize("icons", [SERVER_ICONS, TOOL_ICONS, SKILL_ICONS], ids=["server", "tool", "skill"])
def test_an_icon_is_an_address_that_holds_its_drawing(icons: list[Icon]):
    (icon,) = icons
    assert re.fullmatch(r"data:image/svg\+xml,[A-Za-z0-9%:/=,._-]+", icon.src)
    drawing = ElementTree.fromstring(unquote(icon.src.partition(",")[2]))
    assert drawing.tag == "{http://www.w3.org/2000/svg}svg"


def test_what_is_counted_is_what_is_listed():
    shown = {"name", "title", "description", "input_schema", "output_schema"}
    tool = skill_tool("double", skill("double")).model_dump(by_alias=True, exclude_none=True, include=shown)
    assert listed_characters(skill("double")) == len(json.dumps(tool, separators=(",", ":")))


def test_a_long_line_says_that_it_goes_on_and_a_long_example_is_left_out():
    one = skill("double")
    (test, *_) = one.tests
    long = one.model_copy(
        update={
            "description": "word " * 100,
            "tests": (test.model_copy(update={"inputs": {"value": "x" * 300}}),),
        }
    )
    first, *others = description_of(long).splitlines()
    assert first.endswith("…")
    assert not any(line.startswith("Example") for line in others)
