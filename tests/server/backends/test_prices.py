"""Prices: known models cost what the list says, unknown ones nothing that is invented."""

from __future__ import annotations

import datetime

import pytest

from server.backends.backend import Usage
from server.backends.prices import cost_usd, price_list


@pytest.mark.parametrize(
    ("kind", "model", "usage", "written", "expected"),
    [
        ("anthropic", "claude-opus-5", Usage(1_000_000, 0, 0), 0, 5.0),
        ("anthropic", "claude-opus-5", Usage(1_000_000, 600_000, 100_000), 200_000, 1.0 + 0.3 + 1.25 + 2.5),
        ("openai", "gpt-6-sol-2026-09-22", Usage(100_000, 50_000, 10_000, 9_000), 0, 0.1 + 0.01 + 0.1),
        ("openai", "gpt-6.1-sol", Usage(100_000), 10_000, 0.2),
        ("openai", "gpt-6-sol", Usage(300_000), 0, None),
        ("openai", "gpt-6-sol", Usage(1_000, is_estimated=True), 0, None),
        ("openai", "some-new-model", Usage(1_000), 0, None),
        ("openai-compatible", "gpt-6-sol", Usage(1_000), 0, None),
    ],
)
def test_a_cost_is_that_of_the_list_or_unknown(
    kind: str, model: str, usage: Usage, written: int, expected: float | None
):
    cost = cost_usd(kind, model, usage, written)
    assert cost is None if expected is None else cost == pytest.approx(expected)


def test_the_list_says_where_and_when_it_was_read():
    prices = price_list()
    assert datetime.date.fromisoformat(prices.read_on) >= datetime.date(2026, 11, 1)
    assert prices.sources.keys() == prices.prices.keys()
    assert all(source.startswith("https://") for source in prices.sources.values())
