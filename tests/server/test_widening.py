"""Widening: two runs of the same calls are one skill with more inputs, or stay two."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.tools import Snapshot, Tool, ToolId
from server.compilation.errors import NotCompilable
from server.compilation.widening import instantiated, widen
from skills_store.skill import RecordedCall, ReplayTest, Signature, Skill
from skills_store.workflow.hashing import content_hash, shape_hash
from skills_store.workflow.model import parse_workflow

GET = Tool(
    ToolId("s", "get"),
    {
        "type": "object",
        "properties": {
            "city": {"type": "string", "maxLength": 40},
            "days": {"type": "integer", "default": 1},
        },
    },
)
KNOWN = Snapshot.of(GET)


def skill(
    arguments: dict[str, Any], *more: dict[str, Any], inputs: dict[str, Any] | None = None, seen: Any = ()
):
    given = [arguments, *more]
    nodes = [
        {"id": f"n{i}", "tool": {"server": "s", "tool": "get"}, "arguments": each}
        for i, each in enumerate(given)
    ]
    properties = {name: {"type": "string"} for name in inputs or {}}
    workflow = parse_workflow(
        {
            "name": "w",
            "inputs": {"type": "object", "properties": properties, "required": [*properties]},
            "nodes": nodes,
            "outputs": {"out": f"$nodes.n{len(given) - 1}.output"},
        }
    )
    recorded = tuple(
        RecordedCall(node=f"n{i}", tool=GET.id, arguments={}, output=output) for i, output in enumerate(seen)
    )
    test = ReplayTest(name="original", inputs=inputs or {}, outputs={"out": 1}, recorded=recorded)
    return Skill(
        name="w",
        version=1,
        state="proposed",
        workflow=workflow,
        content_hash=content_hash(workflow),
        shape_hash=shape_hash(workflow),
        signature=Signature(input_schema={}, output_schema={}),
        tests=(test,),
    )


def widened(one: Skill, two: Skill):
    return widen(one, two, KNOWN, optional=False)


def test_constants_that_differ_become_inputs_typed_by_what_they_feed():
    wide = widened(skill({"city": "Oslo", "days": 2}), skill({"city": "Rome", "days": 2}))
    assert wide.workflow.nodes[0].arguments == {"city": "$inputs.city", "days": 2}
    assert wide.workflow.inputs["properties"] == {"city": {"type": "string", "maxLength": 40}}
    assert wide.workflow.inputs["required"] == ["city"]
    assert (wide.one, wide.two, wide.added) == ({"city": "Oslo"}, {"city": "Rome"}, ("city",))
    assert (wide.second.inputs, wide.second.kind) == ({"city": "Rome"}, "held_out")


def test_an_input_added_to_a_trusted_skill_is_optional_so_that_its_callers_go_on():
    wide = widen(skill({"city": "Oslo"}), skill({"city": "Rome"}), KNOWN, optional=True)
    assert wide.workflow.inputs["required"] == []
    assert wide.workflow.inputs["properties"]["city"]["default"] == "Oslo"


def test_values_that_differ_alike_are_one_input_and_others_two():
    same = widen(
        skill({"city": "Oslo"}, {"city": "Oslo"}),
        skill({"city": "Rome"}, {"city": "Rome"}),
        KNOWN,
        optional=False,
    )
    assert same.added == ("city",)
    two = widen(
        skill({"city": "Oslo"}, {"city": "Oslo"}),
        skill({"city": "Rome"}, {"city": "Bonn"}),
        KNOWN,
        optional=False,
    )
    assert two.two == {"city": "Rome", "n1_city": "Bonn"}


def test_an_input_the_skill_has_takes_the_other_runs_value_also_inside_a_text():
    one = skill({"city": "$inputs.c", "q": "age > {$inputs.n} now"}, inputs={"c": "Oslo", "n": "17"})
    wide = widened(one, skill({"city": "Rome", "q": "age > 30 now"}))
    assert (wide.added, wide.two) == ((), {"c": "Rome", "n": "30"})
    assert wide.workflow == one.workflow


@pytest.mark.parametrize(
    ("one", "two", "words"),
    [
        pytest.param(
            skill({"city": "$inputs.c"}, {"city": "$inputs.c"}, inputs={"c": "Oslo"}),
            skill({"city": "Rome"}, {"city": "Bonn"}),
            "two values",
            id="one-input-two-values",
        ),
        pytest.param(
            skill({"q": "age > {$inputs.n}"}, inputs={"n": "17"}),
            skill({"q": "size > 17"}),
            "not made like",
            id="another-text",
        ),
        pytest.param(
            skill({"city": "Oslo"}), skill({"city": ["Oslo"]}), "different kinds", id="another-kind"
        ),
    ],
)
def test_what_takes_a_guess_is_refused(one, two, words):
    with pytest.raises(NotCompilable, match=words):
        widened(one, two)


def test_what_an_item_is_found_by_may_differ():
    def found(name: str, *, as_input: bool):
        selector = {
            "context": "$nodes.n0.output#/all",
            "selector": "find_item(context, 'name', sought).id",
            "type": "jmespath",
            "with": {"sought": "$inputs.who" if as_input else name},
        }
        seen = ({"all": [{"name": "Ada", "id": "a-1"}, {"name": "Alan", "id": "a-2"}]}, 1)
        return skill({}, {"id": selector}, inputs={"who": name} if as_input else None, seen=seen)

    wide = widened(found("Ada", as_input=True), found("Alan", as_input=False))
    assert (wide.added, wide.two) == ((), {"who": "Alan"})
    added = widened(found("Ada", as_input=False), found("Alan", as_input=False))
    assert [*added.two.values()] == ["Alan"]


def test_instantiating_puts_values_in_their_places_and_leaves_the_rest():
    one = skill({"city": "$inputs.c", "x": "$inputs.other", "q": "in {$inputs.c}!"}, inputs={"c": "Os$lo"})
    made = instantiated(one.workflow, {"c": "$Oslo"})
    assert made.nodes[0].arguments == {"city": "$$Oslo", "x": "$inputs.other", "q": "in $Oslo!"}


def test_a_text_with_several_placeholders_takes_the_values_of_another_text():
    template = skill({"city": "{$inputs.a}:{$inputs.b} of {$inputs.a}"}, inputs={"a": "B3", "b": "C4"})
    wide = widened(template, skill({"city": "D5:E61 of D5"}))
    assert (wide.added, wide.two) == ((), {"a": "D5", "b": "E61"})
    with pytest.raises(NotCompilable, match="is not made like"):
        widened(template, skill({"city": "D5:E61 of F7"}))


def test_an_input_that_is_a_record_takes_what_differs_inside_of_it():
    one = skill({"city": "$inputs.where"}, inputs={"where": {"name": "Oslo", "tags": ["a", "b"]}})
    two = skill({"city": {"name": "Rome", "tags": ["a", "c"]}})
    wide = widened(one, two)
    assert wide.workflow == one.workflow
    assert wide.two == {"where": {"name": "Rome", "tags": ["a", "c"]}}
    assert wide.one == {"where": {"name": "Oslo", "tags": ["a", "b"]}}


def test_a_record_that_two_calls_share_cannot_have_two_values():
    shared = {"where": {"name": "Oslo"}}
    one = skill({"city": "$inputs.where"}, {"city": "$inputs.where"}, inputs=shared)
    alike = skill({"city": {"name": "Rome"}}, {"city": {"name": "Rome"}})
    assert widened(one, alike).two == {"where": {"name": "Rome"}}
    with pytest.raises(NotCompilable, match="where would have two values"):
        widened(one, skill({"city": {"name": "Rome"}}, {"city": {"name": "Bonn"}}))


def test_a_list_that_a_mapped_call_runs_over_takes_the_other_list():
    def mapped(items: list[str]) -> Skill:
        made = skill({"city": "$item"}, inputs={"cities": "x"})
        node = made.workflow.nodes[0].model_copy(update={"for_each": "$inputs.cities"})
        test = made.tests[0].model_copy(update={"inputs": {"cities": items}})
        return made.model_copy(
            update={"workflow": made.workflow.model_copy(update={"nodes": (node,)}), "tests": (test,)}
        )

    wide = widened(mapped(["Oslo", "Rome"]), mapped(["Lima", "Bonn", "Graz"]))
    assert (wide.added, wide.two) == ((), {"cities": ["Lima", "Bonn", "Graz"]})


def test_an_input_keeps_its_place_where_flow_would_explain_both_runs():
    one = skill({}, {"city": "$inputs.who"}, inputs={"who": "Ada"}, seen=({"name": "Ada"}, 1))
    wide = widened(one, skill({}, {"city": "Alan"}, seen=({"name": "Alan"}, 1)))
    assert wide.workflow.nodes[1].arguments == {"city": "$inputs.who"}
    assert wide.two == {"who": "Alan"}
