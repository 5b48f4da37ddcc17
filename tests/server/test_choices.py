"""Identifiers that somebody chose among several become inputs; where a record was found stays data flow."""

from __future__ import annotations

import pytest

from catalog.tools import ToolId
from server.compilation.choices import open_choices, record_places
from skills_store.workflow.model import Node, Workflow

ORDERS = {
    "orders": ["#W1001", "#W1002", "#W1003"],
    "cards": {"card_9513926": {"id": "card_9513926"}},
    "only": ["#W9001"],
    "names": ["Ada", "Alan"],
    "main": {"id": "#W5005"},
}


def buying(**arguments):
    return Workflow(
        name="buying",
        inputs={"type": "object"},
        nodes=(
            Node(id="look", tool=ToolId("shop", "look"), arguments={}),
            Node(id="buy", tool=ToolId("shop", "buy"), arguments=arguments),
        ),
        outputs={"done": "$nodes.buy.output"},
    )


def opened(**arguments):
    return open_choices(buying(**arguments), {"look": ORDERS}).nodes[1].arguments


@pytest.mark.parametrize(
    ("argument", "value", "literal"),
    [
        pytest.param("order_id", "$nodes.look.output#/orders/1", "#W1002", id="later-in-a-list"),
        pytest.param("item_ids", ["$nodes.look.output#/orders/0"], ["#W1001"], id="some-of-a-list"),
        pytest.param(
            "payment_id", "$nodes.look.output#/cards/card_9513926/id", "card_9513926", id="by-its-own-key"
        ),
    ],
)
def test_an_identifier_taken_from_among_several_is_the_literal_it_was(argument, value, literal):
    assert opened(**{argument: value}) == {argument: literal}


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        pytest.param("order_id", "$nodes.look.output#/orders/0", id="the-first-found"),
        pytest.param("order_id", "$nodes.look.output#/only/0", id="the-only-one"),
        pytest.param("order_id", "$nodes.look.output#/main/id", id="a-place-of-its-own"),
        pytest.param("order_ids", "$nodes.look.output#/orders", id="all-of-a-list"),
        pytest.param("text", "$nodes.look.output#/orders/1", id="names-no-record"),
        pytest.param("person_id", "$nodes.look.output#/names/1", id="no-identifier"),
    ],
)
def test_what_an_answer_tells_by_itself_stays_data_flow(argument, value):
    assert opened(**{argument: value}) == {argument: value}


def test_only_arguments_that_name_records_and_hold_nothing_else_are_opened():
    workflow = buying(
        order_id="#W1002",
        item_ids=["1151293680", "4983901480"],
        colour="red-1234",
        version_id="v2",
        shelf_id="$nodes.look.output#/main/id",
    )
    places = [(place.argument, place.value) for place in record_places(workflow)]
    assert places == [("order_id", "#W1002"), ("item_ids", ["1151293680", "4983901480"])]
