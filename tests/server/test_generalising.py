"""Anti-unification: what two runs share stays, what differs is named, and nothing is guessed."""

from __future__ import annotations

from typing import Any

import pytest

from server.compilation.errors import NotCompilable
from server.compilation.generalising import Ran, generalise
from skills_store.workflow.model import parse_workflow


def ran(*arguments: dict[str, Any], outputs: dict[str, Any] | None = None, prefix: str = "n") -> Ran:
    nodes = [
        {"id": f"{prefix}{i}", "tool": {"server": "s", "tool": f"t{i}"}, "arguments": given}
        for i, given in enumerate(arguments)
    ]
    document = {
        "name": "w",
        "inputs": {"type": "object"},
        "nodes": nodes,
        "outputs": {"out": f"$nodes.{prefix}{len(arguments) - 1}.output"},
    }
    return Ran(parse_workflow(document), outputs or {})


def test_equal_places_stay_and_differing_ones_are_named():
    general = generalise(
        ran({"city": "Oslo", "unit": "c", "n": 1}), ran({"city": "Rome", "unit": "c", "n": 2.5}, prefix="m")
    )
    assert general.workflow == ran({"city": "Oslo", "unit": "c", "n": 1}).workflow
    assert [(d.node, d.argument, d.pointer, d.one, d.two) for d in general.differences] == [
        ("n0", "city", "/city", "Oslo", "Rome"),
        ("n0", "n", "/n", 1, 2.5),
    ]


def test_lists_of_different_length_differ_as_a_whole():
    (difference,) = generalise(ran({"xs": [1, 2]}), ran({"xs": [3, 4, 5]})).differences
    assert (difference.pointer, difference.one, difference.two) == ("/xs", [1, 2], [3, 4, 5])


def test_data_flow_of_one_run_holds_where_it_gives_the_literal_of_the_other():
    one = ran({}, {"id": "$nodes.n0.output#/id"}, outputs={"n0": {"id": "a-1"}})
    two = ran({}, {"id": "b-2"}, outputs={"m0": {"id": "b-2"}}, prefix="m")
    for general in (generalise(one, two), generalise(two, one)):
        assert general.differences == ()
        assert str(general.workflow.nodes[1].arguments["id"]).endswith(".output#/id")


def test_of_two_flows_one_that_gives_both_runs_their_value_is_taken():
    seen = {"n0": {"a": "v-1", "b": "v-1"}}
    one = ran({}, {"id": "$nodes.n0.output#/a"}, outputs=seen)
    two = ran({}, {"id": "$nodes.n0.output#/b"}, outputs={"n0": {"a": "w-2", "b": "w-2"}})
    assert generalise(one, two).workflow.nodes[1].arguments == {"id": "$nodes.n0.output#/a"}


@pytest.mark.parametrize(
    ("one", "two", "words"),
    [
        pytest.param(ran({}), ran({}, {}), "different calls", id="other-calls"),
        pytest.param(ran({"a": 1}), ran({"a": 1, "b": 2}), "b in one of the two", id="other-arguments"),
        pytest.param(ran({"a": 1}), ran({"a": "1"}), "different kinds", id="other-types"),
        pytest.param(ran({"a": True}), ran({"a": 1}), "different kinds", id="a-truth-is-no-number"),
        pytest.param(
            ran({}, {"id": "$nodes.n0.output#/id"}, outputs={"n0": {"id": "a-1"}}),
            ran({}, {"id": "elsewhere"}, outputs={"n0": {"id": "b-2"}}),
            "comes from different places",
            id="flow-against-another-literal",
        ),
        pytest.param(
            ran({f"a{i}": i for i in range(13)}),
            ran({f"a{i}": -i - 1 for i in range(13)}),
            "12 places",
            id="too-much",
        ),
    ],
)
def test_what_is_not_of_one_shape_is_refused(one, two, words):
    with pytest.raises(NotCompilable, match=words):
        generalise(one, two)


def test_flow_is_sought_that_gives_two_different_literals():
    one = ran({}, {"n": 12, "unit": "c"}, outputs={"n0": {"count": 12, "more": 7}})
    two = ran({}, {"n": 30, "unit": "c"}, outputs={"m0": {"count": 30, "more": 7}}, prefix="m")
    general = generalise(one, two)
    assert general.workflow.nodes[1].arguments == {"n": "$nodes.n0.output#/count", "unit": "c"}
    assert [(d.pointer, d.one, d.two, d.explained) for d in general.differences] == [("/n", 12, 30, True)]


def test_two_flows_that_hold_once_give_way_to_one_that_holds_twice():
    one = ran({}, {"to": "$nodes.n0.output#/rows/0"}, outputs={"n0": {"rows": ["ada", "bob"], "best": "ada"}})
    two = ran({}, {"to": "$nodes.n0.output#/rows/1"}, outputs={"n0": {"rows": ["cid", "dan"], "best": "dan"}})
    assert generalise(one, two).workflow.nodes[1].arguments == {"to": "$nodes.n0.output#/best"}
