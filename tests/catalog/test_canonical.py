"""Canonical JSON: the standard's bytes, however large and odd the value."""

from __future__ import annotations

import json
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from catalog.canonical import canonical_json

EXACT = 2**53 - 1
TEXT = st.text(st.characters(codec="utf-8"))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-EXACT, EXACT)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=30,
)


@given(JSON)
def test_the_bytes_are_those_of_the_standard(value: Any) -> None:
    assert canonical_json(value) == rfc8785.dumps(value)


def test_a_large_value_is_written_as_a_small_one() -> None:
    value = {"rows": [{"b": n, "a": f"row {n}", "é": [n / 7, 1.0, None]} for n in range(20_000)]}
    written = canonical_json(value)
    assert json.loads(written) == value
    assert written.startswith('{"rows":[{"a":"row 0","b":0,"é":[0,1,null]},'.encode())
    assert written == rfc8785.dumps(value)


@pytest.mark.parametrize(
    "value",
    [float("nan"), [float("-inf")], {"a": {1: 2}}, "\ud800", {"\udfff": 1}, [object()]],
    ids=lambda value: repr(value)[:12],
)
def test_what_is_no_json_has_no_canonical_bytes(value: Any) -> None:
    with pytest.raises(ValueError, match="JSON"):
        canonical_json(value)


def test_integers_that_doubles_would_confuse_are_told_apart() -> None:
    assert canonical_json(2**53) != canonical_json(2**53 + 1)
    assert canonical_json(2**53) == b'{"\\u0000int":"9007199254740992"}'
