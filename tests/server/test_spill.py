"""Large values leave the trace by digest and come back whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.canonical import digest
from server.execution.spill import Spill, bounded

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=10,
)


@given(JSON)
def test_a_small_value_stays_as_it_is_under_its_digest(value):
    kept = bounded(value, limit_bytes=10**6)
    assert (kept.value, kept.digest) == (value, digest(value))


def test_a_large_value_becomes_digest_size_and_preview(tmp_path):
    value = {"text": "ü" * 5_000}
    kept = bounded(value, Spill(tmp_path / "spill"), limit_bytes=100)
    assert isinstance(kept.value, dict)
    assert kept.value["$digest"] == kept.digest == digest(value)
    assert kept.value["size"] == len('{"text":""}') + 10_000
    assert str(kept.value["preview"]).startswith('{"text":"üü')
    assert len(str(kept.value["preview"])) == 1_000
    assert Spill(tmp_path / "spill").read(kept.digest).decode() == '{"text":"' + "ü" * 5_000 + '"}'


def test_equal_values_are_written_once_and_nothing_else_is_left(tmp_path):
    spill = Spill(tmp_path)
    first = bounded("x" * 200, spill, limit_bytes=100)
    written = spill.path(first.digest).stat().st_mtime_ns
    bounded("x" * 200, spill, limit_bytes=100)
    assert spill.path(first.digest).stat().st_mtime_ns == written
    assert list(tmp_path.iterdir()) == [spill.path(first.digest)]


def test_a_file_that_was_changed_is_not_read(tmp_path):
    spill = Spill(tmp_path)
    kept = bounded("x" * 200, spill, limit_bytes=100)
    spill.path(kept.digest).write_text('"y"')
    with pytest.raises(ValueError, match="does not hold the value"):
        spill.read(kept.digest)


def test_what_was_never_spilled_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        Spill(tmp_path).read(digest("x"))
