"""What a task orders, as verbs and operands."""

from __future__ import annotations

import pytest

from server.planning.spoken_steps import spoken_steps


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        pytest.param(
            "Divide the width by 4, add 1 to it and multiply by the height: how much is it?",
            [("divide", ("the width", "4")), ("add", ("1", "it")), ("multiply", ("", "the height"))],
            id="a row of sums",
        ),
        pytest.param(
            "Multiply the rows by the seats and subtract 3 from that.",
            [("multiply", ("the rows", "the seats")), ("subtract", ("that", "3"))],
            id="what is subtracted from goes first",
        ),
        pytest.param(
            "Raise the side to the power of 3.",
            [("raise", ("the side", "3"))],
            id="a power with its exponent",
        ),
        pytest.param(
            "Add the first and the second.", [("add", ("the first", "the second"))], id="two with and"
        ),
        pytest.param("Add up the prices of B2:B9.", [("sum", ("B2:B9",))], id="adding up is a sum"),
        pytest.param("How warm is it in Oslo? It rains.", [], id="a question orders nothing"),
    ],
)
def test_clauses_are_read_with_their_operands(task: str, expected: list[tuple[str, tuple[str, ...]]]) -> None:
    assert [(step.verb, step.operands) for step in spoken_steps(task)] == expected


def test_a_verb_is_carried_on_where_only_the_object_and_its_units_change() -> None:
    steps = spoken_steps("Convert the length from ft to m and the weight from lb to kg.")
    assert [(s.verb, s.operands, s.units) for s in steps] == [
        ("convert", ("the length",), ("ft", "m")),
        ("convert", ("the weight",), ("lb", "kg")),
    ]


def test_doing_it_to_each_is_told_apart() -> None:
    assert [s.of_each for s in spoken_steps("Read both files, then count the lines.")] == [True, False]
