"""Wanted outputs: the names that checks read, never what they compare with."""

from __future__ import annotations

import pytest

from server.planning.wanted import wanted_outputs
from server.verification import Checks


@pytest.mark.parametrize(
    ("assertions", "names"),
    [
        pytest.param(["output.total == `5`"], ("total",), id="one"),
        pytest.param(["output.b.c == 'x' && output.a > `1`"], ("b", "a"), id="several-in-order"),
        pytest.param(["approx(output.f, `1`, `2`)", "output.f > `0`"], ("f",), id="each-once"),
        pytest.param(["length(output.rows[?size > `1`]) == `2`"], ("rows",), id="inside-functions"),
        pytest.param(["'output.secret' == output.\"a b\""], ("a b",), id="literals-are-no-names"),
        pytest.param(
            ["length(output.rows[0]) == `2`", "output.d[*].x[1] == `1`"], ("rows", "d"), id="of-items"
        ),
        pytest.param(["inputs.x == nodes.output.y"], (), id="other-roots"),
        pytest.param(["output.a ==", "output.b == `1`"], ("b",), id="unreadable-ones-say-nothing"),
        pytest.param([], (), id="none"),
    ],
)
def test_assertions_name_outputs(assertions, names):
    assert wanted_outputs(Checks(tuple(assertions))) == names


def test_a_schema_names_them_after_the_assertions():
    checks = Checks(("output.b == `1`",), {"type": "object", "properties": {"a": {}, "b": {}}})
    assert wanted_outputs(checks) == ("b", "a")
