"""Names and descriptions: legal, said from graph and schemas, and honest about constants."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.compilation.prose import (
    guidance_lines,
    name_of_task,
    render_description,
    render_guidance,
    skill_name,
)
from skills_store.doubts import NO_DOUBTS, Doubts
from skills_store.skill import Guidance, Signature, Skill
from skills_store.workflow.model import parse_workflow

LEGAL = re.compile(r"[a-z][a-z0-9_]{0,39}")
WORKFLOW = parse_workflow(
    {
        "name": "to_fahrenheit",
        "inputs": {"type": "object"},
        "nodes": [
            {
                "id": "n",
                "tool": {"server": "units", "tool": "convert"},
                "arguments": {"value": "$inputs.c", "unit": "F", "note": "x" * 200, "flag": None},
            },
            {"id": "m", "tool": {"server": "calc", "tool": "round"}, "arguments": {"x": "$nodes.n.output"}},
        ],
        "outputs": {"f": "$nodes.m.output"},
    }
)


@pytest.mark.parametrize(
    ("wished", "name"),
    [
        ("adds", "adds"),
        ("Adds Two-Numbers!", "adds_two_numbers"),
        ("2 numbers", "numbers"),
        ("Größe", "gr_e"),
        ("x" * 60, "x" * 40),
        (f"{'x' * 39} y", "x" * 39),
    ],
)
def test_a_wished_name_is_made_legal(wished, name):
    assert skill_name(wished) == name


@pytest.mark.parametrize("wished", ["", "123", "!", "ß"])
def test_a_name_without_a_letter_is_none(wished):
    with pytest.raises(ValueError, match="letter"):
        skill_name(wished)


@pytest.mark.parametrize(
    ("task", "name"),
    [
        ("Convert 5 miles to kilometers", "convert_miles_kilometers"),
        ("What is the sha256 of 'hello there'?", "sha256"),
        ("", "skill"),
        ("17 + 4", "skill"),
        (
            "summarise every quarterly revenue table of each regional subsidiary",
            "summarise_every_quarterly_revenue_table",
        ),
    ],
)
def test_a_task_names_its_skill_by_its_words_and_not_by_its_values(task, name):
    assert name_of_task(task) == name


@given(st.text(max_size=200))
def test_every_task_gives_a_legal_name(task):
    assert LEGAL.fullmatch(name_of_task(task))


def test_a_description_says_what_it_takes_gives_and_runs():
    signature = Signature(
        input_schema={"type": "object", "properties": {"c": {"type": "number"}}},
        output_schema={"type": "object", "properties": {"f": {"type": "number"}}},
    )
    told = "Takes c (number); returns f (number). Runs units/convert, then calc/round as one verified call."
    assert render_description(WORKFLOW, signature) == told
    described = WORKFLOW.model_copy(update={"description": "From Celsius. "})
    assert render_description(described, signature) == f"From Celsius. {told}"


def test_guidance_names_occasion_servers_and_constants():
    guidance = render_guidance("Convert 21 degrees", WORKFLOW)
    assert guidance.when_to_use == "Tasks like: Convert 21 degrees"
    assert guidance.pitfalls == ("Needs the tool servers calc, units.", "Always uses unit = 'F'.")
    assert guidance.when_not == ("Not where units/convert or calc/round is missing or takes something else.",)
    assert render_guidance(None, WORKFLOW).when_to_use == "Where to fahrenheit is asked for."


def test_what_uses_showed_is_told_beside_the_guidance():
    skill = Skill(
        name="s",
        version=1,
        state="active",
        workflow=WORKFLOW,
        content_hash="h",
        shape_hash="h",
        signature=Signature(input_schema={}, output_schema={}),
        guidance=render_guidance("Convert 21 degrees", WORKFLOW),
    )
    doubts = Doubts((("tool_error", 2), ("cycle", 1)), 1, 0.5, ({"c": 400},))
    assert guidance_lines(skill, doubts) == (
        "Tasks like: Convert 21 degrees",
        "Not where units/convert or calc/round is missing or takes something else.",
        "Did not work with c = 400.",
        "Mind tool error, seen in 2 of its latest uses: look at the values before the call.",
        "Mind cycle, seen in 1 of its latest uses.",
        "Needs the tool servers calc, units.",
        "Always uses unit = 'F'.",
    )
    assert guidance_lines(skill.model_copy(update={"guidance": Guidance()}), NO_DOUBTS) == ()
