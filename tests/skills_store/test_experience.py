"""Experience units: what their attempts say of them, which of them are one, and how they leave a prompt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.tools import ToolId
from skills_store.experience.merging import merged, near_unit
from skills_store.experience.shelf import ExperienceStore, MemoryExperiences
from skills_store.experience.spans import ExperienceSpan, stripped
from skills_store.experience.unit import ExperienceUnit, unit_id
from skills_store.sqlite import open_sqlite_store

_TEXT = st.text("a <>\n", max_size=6)
_LESSON = st.text("a <>\n", min_size=1, max_size=6)
_NOW = ToolId(server="clock", tool="now")


def _unit(
    when: str = "tell the time in a city", content: str = "Call clock/now.", **more: object
) -> ExperienceUnit:
    base: dict[str, object] = {
        "id": unit_id("success", when, (_NOW,), None),
        "kind": "success",
        "when_to_use": when,
        "content": content,
        "tools": (_NOW,),
        "evidence": ("t1",),
        "created_at": 0.0,
        "expires_at": 100.0,
    }
    return ExperienceUnit.model_validate(base | more)


def _after(unit: ExperienceUnit, *attempts: str) -> ExperienceUnit:
    """Return the unit after attempts: `+` of help, `-` guided and wrong, `o` and `x` without it."""
    for each in "".join(attempts):
        guided = each in "+-"
        unit = unit.seen(guided=guided, right=each in "+o", helped=each == "+")
    return unit


@pytest.mark.parametrize(
    ("attempts", "alive"),
    [
        pytest.param("----", True, id="four failures are too few to tell"),
        pytest.param("-----", False, id="retrieved five times and never of help"),
        pytest.param("+++--", True, id="of help more often than not"),
        pytest.param("+----xxx", True, id="a hard family, and better with it than without"),
        pytest.param("++---ooo", False, id="better without it"),
        pytest.param("-----xxx", False, id="no difference and of no help"),
        pytest.param("+++++ooo", True, id="no difference, of help"),
    ],
)
def test_a_unit_lives_while_it_helps(attempts: str, alive: bool) -> None:
    assert _after(_unit(), attempts).is_alive(now=1.0) is alive


def test_a_unit_without_new_evidence_expires() -> None:
    assert _unit().is_alive(99.9)
    assert not _unit().is_alive(100.0)


def test_lessons_that_say_the_same_are_one_with_both_evidences() -> None:
    old = _after(_unit(), "+o")
    new = _unit("please tell the time in a city", evidence=("t2",), expires_at=200.0)
    near = near_unit(new, [old])
    assert near == old
    one = merged(old, new)
    assert one.evidence == ("t1", "t2")
    assert one.expires_at == 200.0
    assert one.tally == old.tally
    assert one.confidence > old.confidence


def test_equal_words_about_other_tools_or_faults_are_another_lesson() -> None:
    other = _unit(tools=(ToolId(server="clock", tool="zones"),))
    assert near_unit(other, [_unit()]) is None
    assert near_unit(_unit(fault="timeout"), [_unit()]) is None


def test_the_same_evidence_twice_makes_nothing_more_certain() -> None:
    assert merged(_unit(), _unit()).confidence == _unit().confidence


@given(
    parts=st.lists(st.tuples(_TEXT, _LESSON), min_size=1, max_size=5),
    tail=_TEXT,
)
def test_stripping_gives_back_the_text_as_it_was_without_experience(
    parts: list[tuple[str, str]], tail: str
) -> None:
    text, spans = "", list[ExperienceSpan]()
    for own, lesson in parts:
        text += own
        spans.append(ExperienceSpan(0, len(text), len(text) + len(lesson), "u"))
        text += lesson
    plain = "".join(own for own, _ in parts) + tail
    assert stripped([text + tail, "kept"], spans) == (plain, "kept")


@pytest.mark.parametrize(
    "spans",
    [
        pytest.param([ExperienceSpan(1, 0, 1, "u")], id="no such message"),
        pytest.param([ExperienceSpan(0, 0, 9, "u")], id="past its end"),
        pytest.param([ExperienceSpan(0, 0, 2, "u"), ExperienceSpan(0, 1, 3, "v")], id="overlapping"),
    ],
)
def test_spans_that_do_not_fit_are_refused(spans: list[ExperienceSpan]) -> None:
    with pytest.raises(ValueError, match="not in the messages"):
        stripped(["abcd"], spans)


@pytest.fixture(params=["memory", "sqlite"])
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ExperienceStore]:
    if request.param == "memory":
        yield MemoryExperiences()
        return
    store = open_sqlite_store(tmp_path / "store.db")
    yield store.experiences("ann")
    store.close()


def test_a_shelf_keeps_counts_and_forgets(shelf: ExperienceStore) -> None:
    unit = _unit()
    shelf.put(unit)
    counted = shelf.count(unit.id, guided=True, right=True, helped=True)
    assert counted is not None
    assert counted.tally.helped == 1
    assert shelf.units() == [counted]
    assert shelf.drop(unit.id)
    assert not shelf.drop(unit.id)
    assert shelf.count(unit.id, guided=True, right=True, helped=True) is None
    assert shelf.units() == []


def test_a_full_shelf_lets_go_of_what_expires_first(
    shelf: ExperienceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skills_store.experience.shelf.UNITS_KEPT", 2)
    monkeypatch.setattr("skills_store.sqlite_experiences.UNITS_KEPT", 2)
    for number, expires in enumerate((30.0, 10.0, 20.0)):
        shelf.put(_unit(id=f"u{number}", expires_at=expires))
    assert {unit.id for unit in shelf.units()} == {"u0", "u2"}


def test_a_principals_experience_is_its_own(tmp_path: Path) -> None:
    store = open_sqlite_store(tmp_path / "store.db")
    try:
        store.experiences("ann").put(_unit())
        assert store.experiences("bob").units() == []
        assert len(store.experiences("ann").units()) == 1
    finally:
        store.close()
