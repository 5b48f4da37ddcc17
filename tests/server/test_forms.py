"""Written forms: which one is named, what is in it, and how it is taken out of a text."""

from __future__ import annotations

import re

import pytest

from server.planning.forms import form_named, is_written, parts_written


@pytest.mark.parametrize(
    ("said", "form"),
    [
        ("Time in 24-hour format (HH:MM)", "HH:MM"),
        ("What is the local time HH:MM in both?", "HH:MM"),
        ("a date as YYYY-MM-DD", "YYYY-MM-DD"),
        ("HH:MM:SS", None),
        ("YYYY-MM-DD HH:MM", None),
        ("a time", None),
    ],
)
def test_a_form_is_named_alone_and_as_a_whole(said: str, form: str | None) -> None:
    assert form_named(said) == form


@pytest.mark.parametrize(
    ("form", "text", "part"),
    [
        ("HH:MM", "2026-12-01T23:30:00+09:00", "23:30"),
        ("HH:MM", "Date: 2026-04-07 06:20:00+00:00", "06:20"),
        ("HH:MM", "Asia/Tokyo", None),
        ("YYYY-MM-DD", "on 2026-04-07T06:20", "2026-04-07"),
    ],
)
def test_what_is_in_a_form_is_taken_out_and_is_in_that_form(form: str, text: str, part: str | None) -> None:
    pattern = parts_written(text, form)
    found = re.search(pattern, text) if pattern else None
    assert (found[1] if found else None) == part
    assert not is_written(text, form)
    assert part is None or is_written(part, form)
