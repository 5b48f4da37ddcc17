"""The router: a task goes to a skill only where it says the same with other values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.planning.router import Trust, choose_route
from skills_store.skill import Provenance, ReplayTest, Signature, Skill
from skills_store.workflow.hashing import content_hash, shape_hash
from skills_store.workflow.model import parse_workflow

NUMBER, TEXT = {"type": "number"}, {"type": "string"}


def skill(
    task: str | None, inputs: dict[str, Any], *, name="s", state: Any = "active", required=None
) -> Skill:
    kinds = {key: NUMBER if isinstance(value, int | float) else TEXT for key, value in inputs.items()}
    workflow = parse_workflow({"name": name, "inputs": {}, "nodes": [], "outputs": {}})
    schema = {
        "type": "object",
        "properties": kinds,
        "required": list(inputs) if required is None else required,
        "additionalProperties": False,
    }
    return Skill(
        name=name,
        version=1,
        state=state,
        workflow=workflow,
        content_hash=content_hash(workflow),
        shape_hash=shape_hash(workflow),
        signature=Signature(input_schema=schema, output_schema={"type": "object"}),
        tests=(ReplayTest(name="original", inputs=inputs, outputs={}),),
        provenance=Provenance(task=task),
    )


CONVERTS = skill("Convert 5 miles to kilometers", {"value": 5, "from": "miles", "to": "kilometers"})


def bound(task, *skills, inputs=None):
    route = choose_route(task, inputs or {}, skills).direct
    return None if route is None or route.missing else route.inputs


@pytest.mark.parametrize(
    ("task", "inputs"),
    [
        pytest.param(
            "Convert 7 feet to meters", {"value": 7, "from": "feet", "to": "meters"}, id="other-values"
        ),
        pytest.param(
            "please convert 7.5 feet to meters.",
            {"value": 7.5, "from": "feet", "to": "meters"},
            id="small-talk",
        ),
        pytest.param(
            "Convert 5 miles to kilometers", {"value": 5, "from": "miles", "to": "kilometers"}, id="the-same"
        ),
    ],
)
def test_a_like_task_binds_its_values_by_place(task, inputs):
    assert bound(task, CONVERTS) == inputs


@pytest.mark.parametrize(
    "task",
    [
        pytest.param("Convert 7 feet from meters", id="another-preposition"),
        pytest.param("Convert 7 feet to meters and add 2", id="more-to-do"),
        pytest.param("Convert 7 to feet meters", id="another-order"),
        pytest.param("Convert seven feet to meters", id="a-number-in-words"),
        pytest.param("Compare 7 feet to meters", id="another-verb"),
        pytest.param("", id="nothing"),
    ],
)
def test_a_near_miss_is_planned(task):
    assert bound(task, CONVERTS) is None


def test_a_value_that_no_input_takes_must_be_the_same():
    rows = skill("Count rows over 100 in sales.csv", {"path": "sales.csv"})
    assert bound("Count rows over 100 in other.csv", rows) == {"path": "other.csv"}
    assert bound("Count rows over 200 in other.csv", rows) is None


def test_quoted_text_and_phrases_are_bound_whole():
    says = skill("Say 'hello' to the old man", {"text": "hello", "who": "old man"})
    assert bound("Say 'good day, all' to the very tall boy", says) == {
        "text": "good day, all",
        "who": "very tall boy",
    }


def test_an_input_that_stands_twice_must_be_said_alike():
    twice = skill("Multiply 5 by 5", {"n": 5})
    assert bound("Multiply 7 by 7", twice) == {"n": 7}
    assert bound("Multiply 7 by 8", twice) is None


def test_a_place_that_could_be_two_inputs_is_no_place():
    assert bound("Add 3 and 4", skill("Add 5 and 5", {"a": 5, "b": 5})) is None


class TestGivenInputs:
    ADDS = skill("Add the numbers", {"a": 1, "b": 2})

    def test_are_taken(self):
        assert bound("Add the numbers", self.ADDS, inputs={"a": 3, "b": 4}) == {"a": 3, "b": 4}

    def test_must_be_complete(self):
        assert bound("Add the numbers", self.ADDS, inputs={"a": 3}) is None

    def test_that_the_skill_does_not_take_make_it_another_task(self):
        assert bound("Add the numbers", self.ADDS, inputs={"a": 3, "b": 4, "c": 5}) is None

    def test_that_contradict_the_task_leave_it_to_the_planner(self):
        assert bound("Convert 7 feet to meters", CONVERTS, inputs={"value": 7}) is not None
        assert bound("Convert 7 feet to meters", CONVERTS, inputs={"value": 8}) is None

    def test_of_the_wrong_type_are_not_bound(self):
        assert bound("Add the numbers", self.ADDS, inputs={"a": "x", "b": 4}) is None

    def test_that_are_optional_may_be_left_out(self):
        optional = skill("Add the numbers", {"a": 1, "b": 2}, required=["a"])
        assert bound("Add the numbers", optional, inputs={"a": 3}) == {"a": 3}


@pytest.mark.parametrize("state", ["proposed", "stale", "context_only", "retired"])
def test_only_an_active_skill_is_run(state):
    assert bound("Convert 7 feet to meters", CONVERTS.model_copy(update={"state": state})) is None


def test_a_skill_without_a_task_is_nobodys():
    assert bound("Add", skill(None, {})) is None


def test_two_skills_for_one_task_leave_the_choice_to_the_planner():
    twin = CONVERTS.model_copy(update={"name": "twin"})
    assert bound("Convert 7 feet to meters", CONVERTS, twin) is None


def test_the_reasons_name_the_skill():
    route = choose_route("Convert 7 feet to meters", {}, [CONVERTS])
    assert route.reasons == (
        "skill s@1 is active",
        "its task is this one with other values",
        "every input is bound",
    )


def test_of_two_skills_for_one_task_the_one_trusted_clearly_more_is_run():
    twin = CONVERTS.model_copy(update={"name": "twin"})
    shares = {"s": 0.4, "twin": 0.8}
    route = choose_route(
        "Convert 7 feet to meters", {}, [CONVERTS, twin], lambda skill: Trust(shares[skill.name])
    )
    assert route.direct is not None
    assert route.direct.skill is twin
    assert "trusted more than s" in route.reasons


def test_a_tie_says_between_which():
    twin = CONVERTS.model_copy(update={"name": "twin"})
    route = choose_route("Convert 7 feet to meters", {}, [CONVERTS, twin])
    assert route.reasons == ("several skills are this task's and none is clearly better: s, twin",)


def test_a_vetoed_skill_is_run_only_where_it_is_asked_for():
    def trust(_):
        return Trust(0.5, "its last 2 uses failed (tool_error)")

    task = "Convert 7 feet to meters"
    assert choose_route(task, {}, [CONVERTS], trust).reasons == ("s: its last 2 uses failed (tool_error)",)
    asked = choose_route(task, {}, [CONVERTS], trust, is_asked_for=True)
    assert asked.direct is not None
    assert asked.reasons[-1] == "asked for, although its last 2 uses failed (tool_error)"


@pytest.mark.parametrize(
    ("task", "missing"),
    [
        pytest.param("Show the orders of user Grace", {"user_id": "Grace"}, id="a-name-where-an-id-stood"),
        pytest.param("Show the orders of user 'Grace H'", {"user_id": "Grace H"}, id="quoted"),
        pytest.param("Show the orders of user 18", {}, id="an-id"),
    ],
)
def test_a_value_of_another_kind_leaves_the_input_open(task, missing):
    orders = skill("Show the orders of user 17", {"user_id": 17})
    route = choose_route(task, {}, [orders]).direct
    assert route is not None
    assert route.missing == missing


def test_a_skill_with_all_its_inputs_goes_before_one_that_lacks_some():
    whole = skill("Show the orders of user Ada", {"name": "Ada"}, name="whole")
    orders = skill("Show the orders of user 17", {"user_id": 17}, name="orders")
    route = choose_route("Show the orders of user Grace", {}, [orders, whole]).direct
    assert route is not None
    assert (route.skill.name, route.inputs) == ("whole", {"name": "Grace"})


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_numbers_come_back_as_they_were_written(one, two):
    adds = skill("Add 3 to 4", {"a": 3, "b": 4})
    assert bound(f"Add {one} to {two}", adds) == {"a": one, "b": two}


@given(st.text(max_size=60))
def test_any_task_is_read_without_an_error(task):
    choose_route(task, {}, [CONVERTS])
