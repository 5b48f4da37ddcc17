"""Text from strangers."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.plain_text import plain_text


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("a\u200bb\u202ec\ufeff", "abc"),
        ("  two\n\tlines\r\n", "two\n\tlines"),
        ("lone \ud800 half", "lone  half"),
        ("Füße 漢字 🙂", "Füße 漢字 🙂"),
    ],
    ids=["colour", "title", "invisible", "layout", "surrogate", "letters"],
)
def test_only_what_a_reader_would_see_is_left(text: str, plain: str) -> None:
    assert plain_text(text) == plain


@given(st.text(), st.integers(1, 50))
def test_the_result_is_bounded_visible_and_stable(text: str, limit: int) -> None:
    plain = plain_text(text, limit)
    assert len(plain) <= limit
    assert not any(unicodedata.category(c) in ("Cc", "Cf", "Cs") and c not in "\n\t" for c in plain)
    assert plain_text(plain, limit) == plain


def test_a_cut_is_marked() -> None:
    assert plain_text("abcdef", 4) == "abc…"
