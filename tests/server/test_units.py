"""Units: spellings of one unit, kinds of units, and their neighbours."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.planning.units import listed_spelling, sibling_units, unit_kind, unit_spellings

UNITS = st.sampled_from(["m", "miles", "kg", "litres", "celsius", "km/h", "seconds", "MB", "degrees"])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("l", "liters"),
        ("L", "litre"),
        ("mi", "miles"),
        ("Celsius", "C"),
        ("nautical miles", "nmi"),
        ("kg", "kilos"),
    ],
)
def test_spellings_of_a_unit_know_each_other(one, other):
    assert other in unit_spellings(one)


@pytest.mark.parametrize("name", ["", "word", "5"])
def test_what_is_no_unit_has_neither_spellings_nor_kind_nor_siblings(name):
    assert (unit_spellings(name), unit_kind(name), sibling_units(name)) == ((), None, ())


@given(UNITS)
def test_siblings_are_other_units_of_the_same_kind(name):
    assert sibling_units(name)
    for other in sibling_units(name):
        assert unit_kind(other) == unit_kind(name)
        assert not set(unit_spellings(other)) & set(unit_spellings(name))


def test_siblings_are_spelt_like_the_unit_itself():
    assert {"kilometers", "feet"} <= set(sibling_units("miles"))
    assert {"km", "ft"} <= set(sibling_units("mi"))


@pytest.mark.parametrize(
    ("said", "listed", "found"),
    [
        ("ft", ["inch", "foot", "foot (US survey)"], "foot"),
        ("min", ["minutes", "min"], "minutes"),
        ("L", ["kiloliter", "liter"], "liter"),
        ("nmi", ["mile", "nautical mile"], "nautical mile"),
        ("ft", ["meter"], None),
        ("word", ["word", "foot"], "word"),
        ("word", ["wordy"], None),
    ],
)
def test_a_unit_is_found_among_what_a_schema_lists_by_any_of_its_spellings(said, listed, found):
    assert listed_spelling(said, listed) == found
