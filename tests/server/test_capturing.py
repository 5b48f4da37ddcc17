"""Capturing: a value is read from between its neighbours in a text, in both runs alike."""

from __future__ import annotations

import pytest

from server.compilation.capturing import captures
from skills_store.workflow.references import ExpressionError, Scope, Unresolved, resolve


def read(selector: str, text: str):
    document = {"context": "$nodes.n.output", "selector": selector, "type": "jmespath"}
    try:
        return resolve(document, Scope(outputs={"n": text}))
    except (Unresolved, ExpressionError):
        return None


@pytest.mark.parametrize(
    ("value", "text", "other", "other_value"),
    [
        pytest.param(
            1925.0,
            "Gross Profit:   $1,925.00\nMarkup: 60",
            "Gross Profit:   $85.50\nMarkup: 1",
            85.5,
            id="money",
        ),
        pytest.param(
            16, "unit_price=12.75\nquantity=16\n", "unit_price=9\nquantity=1,200\n", 1200, id="assigned"
        ),
        pytest.param(
            "ada@example.org",
            "commit 1\nAuthor: Ada <ada@example.org>\n",
            "commit 2\nAuthor: Grace H <grace@example.org>\n",
            "grace@example.org",
            id="behind-a-changing-name",
        ),
        pytest.param("00:20", "2026-11-30T00:20:00+09:00", "2026-11-30T17:45:00+09:00", "17:45", id="clock"),
        pytest.param(
            "A-1234",
            '{\n "count": 1,\n "matches": [\n  "A-1234"\n ]\n}',
            '{\n "count": 1,\n "matches": [\n  "K-778"\n ]\n}',
            "K-778",
            id="label-on-the-line-above",
        ),
        pytest.param(
            "29638fb7f6a1",
            "Commit: 29638fb7f6a1\nAuthor: Ada",
            "Commit: 070ba084\nAuthor: Alan",
            "070ba084",
            id="id",
        ),
    ],
)
def test_a_capture_reads_the_value_and_what_stands_there_in_another_text(value, text, other, other_value):
    working = [c for c in captures(value, text) if read(c.selector, text) == value]
    assert any(read(capture.selector, other) == other_value for capture in working)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(True, "flag: True", id="boolean"),
        pytest.param(19, "total: 1,925.00", id="inside-a-number"),
        pytest.param("cat", "concatenate", id="inside-a-word"),
        pytest.param("whole", "whole", id="the-whole-text"),
        pytest.param("two words", "say two words", id="more-than-a-word"),
    ],
)
def test_what_does_not_stand_alone_is_not_captured(value, text):
    assert [*captures(value, text)] == []


def test_a_lead_with_a_quote_is_left_out_since_a_selector_cannot_hold_it():
    assert all(capture.selector.count("'") == 2 for capture in captures("milk", "it's: milk"))
