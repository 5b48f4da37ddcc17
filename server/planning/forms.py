"""Written forms that a schema or a task names, such as HH:MM, and how one is taken out of a longer text."""

from __future__ import annotations

import re

__all__ = ["form_named", "is_written", "parts_written"]

_FORMS: dict[str, tuple[str, str]] = {
    "HH:MM": (r"\d\d:\d\d", r"[T ](\d\d:\d\d)"),
    "YYYY-MM-DD": (r"\d{4}-\d\d-\d\d", r"(\d{4}-\d\d-\d\d)"),
}
"""By the name people give it: all of a value in that form, and where it stands in a text."""


def form_named(said: str) -> str | None:
    """Return the one written form that a text names, None where it names none or several."""
    named = [form for form in _FORMS if re.search(rf"(?<![\w:-]){form}(?![\w:-])", said)]
    return named[0] if len(named) == 1 else None


def is_written(value: str, form: str) -> bool:
    """Return whether all of a value is in a form."""
    return re.fullmatch(_FORMS[form][0], value) is not None


def parts_written(text: str, form: str) -> str | None:
    """Return the pattern that takes what is in a form out of a text, None where nothing there is."""
    pattern = _FORMS[form][1]
    return pattern if re.search(pattern, text) else None
