"""No secret gets through, nothing else is touched, and long text does not slow it down."""

from __future__ import annotations

import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from skills_store.redaction import REDACTED, Redactor

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("key is hunter2-long", "key is [redacted]", id="known-value"),
        pytest.param("xhunter2-longx", "x[redacted]x", id="known-value-inside-a-word"),
        pytest.param("hunter2-longer!", "[redacted]!", id="the-longer-of-two-secrets"),
        pytest.param("pässwörd-ß", "[redacted]", id="non-ascii"),
        pytest.param("a.b*c+d", "[redacted]", id="pattern-characters"),
        pytest.param("aXb*c+d", "aXb*c+d", id="a-dot-is-a-dot"),
        pytest.param("Authorization: Bearer abc.def-123456", "Authorization: [redacted]", id="bearer"),
        pytest.param("the bearer of news", "the bearer of news", id="bearer-as-a-word"),
        pytest.param("sk-proj-abcDEF0123456789", "[redacted]", id="sk"),
        pytest.param("risk-taking-is-not-a-secret", "risk-taking-is-not-a-secret", id="sk-inside-a-word"),
        pytest.param("ghp_" + "a1B2" * 9, "[redacted]", id="ghp"),
        pytest.param("github_pat_" + "a1B2_" * 6, "[redacted]", id="github-pat"),
        pytest.param("AKIAIOSFODNN7EXAMPLE", "[redacted]", id="akia"),
        pytest.param(f"token={JWT};", "token=[redacted];", id="jwt"),
        pytest.param("plain \ud800 text", "plain \ud800 text", id="lone-surrogate"),
        pytest.param("\ud800hunter2-long", "\ud800[redacted]", id="secret-after-a-lone-surrogate"),
    ],
)
def test_text_is_shown_without_secrets(text, shown):
    redactor = Redactor(["hunter2-long", "hunter2-longer", "pässwörd-ß", "a.b*c+d"])
    assert redactor.redact(text) == shown


def test_strings_and_keys_at_any_depth_are_redacted_and_keys_stay_distinct():
    redactor = Redactor(["secret-one", "secret-two"])
    value = {
        "a": [{"secret-one": 1, "secret-two": "x secret-one", "[redacted] 2": True}],
        "b": None,
        "c": 1.5,
    }
    assert redactor.redact(value) == {
        "a": [{"[redacted]": 1, "[redacted] 3": "x [redacted]", "[redacted] 2": True}],
        "b": None,
        "c": 1.5,
    }


def test_a_short_value_is_no_secret():
    assert Redactor(["12345", ""]).redact("12345") == "12345"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def test_a_secret_that_is_learnt_later_is_hidden_from_then_on():
    redactor = Redactor(["first-secret"])
    assert redactor.redact("first-secret later-secret") == f"{REDACTED} later-secret"
    redactor.learn(["later-secret", "short"])
    assert redactor.redact("first-secret later-secret short") == f"{REDACTED} {REDACTED} short"


@given(json_values)
def test_a_value_without_secrets_is_itself(value):
    assert Redactor().redact(value) == value


@given(st.text(min_size=6), st.text(), st.text())
def test_no_secret_survives_and_redacting_again_changes_nothing(secret, before, after):
    assume(not set(secret) & set(REDACTED))
    redactor = Redactor([secret])
    shown = redactor.redact([before + secret + after, {before + secret: after}])
    assert secret not in str(shown[0])
    assert all(secret not in key for key in shown[1])
    assert redactor.redact(shown) == shown


@pytest.mark.parametrize(
    "unit",
    [
        pytest.param("eyJaaaaaaaa", id="almost-a-token"),
        pytest.param("word " * 8 + "secret-0007" + "x" * 40, id="many-secrets"),
    ],
)
def test_eight_times_the_text_takes_about_eight_times_as_long(unit):
    redactor = Redactor([f"secret-{number:04}" + "x" * 40 for number in range(100)])
    seconds: list[float] = []
    for count in (10_000, 80_000):
        start = time.perf_counter()
        redactor.redact(unit * count)
        seconds.append(time.perf_counter() - start)
    assert seconds[1] < 40 * max(seconds[0], 0.01)
