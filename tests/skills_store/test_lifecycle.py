"""Every cell of the matrix of from, to, by and origin, against the contract written out in full."""

from __future__ import annotations

from itertools import product

import pytest

from skills_store.errors import IllegalTransition
from skills_store.lifecycle import STATES, TRANSITIONS, check_entry, check_transition

# Rows: from. Columns: to, in the order of STATES. b: anybody, p: a person, s: the system.
MATRIX = {
    #               prop  act  ctx  shad supp stale rej  ret
    "proposed": "    .    b    b    s    .    .    p    b",
    "active": "      .    .    b    .    b    s    .    b",
    "context_only": ".    p    .    .    b    s    .    b",
    "shadow": "      b    .    .    .    .    .    .    b",
    "suppressed": "  b    .    p    .    .    .    .    b",
    "stale": "       .    b    b    .    .    .    .    b",
    "rejected": "    .    .    .    .    .    .    .    b",
    "retired": "     p    .    .    .    .    .    .    .",
}
WHO = {".": set(), "b": {"person", "system"}, "p": {"person"}, "s": {"system"}}
LEGAL = {
    (before, to): WHO[cell]
    for before, row in MATRIX.items()
    for to, cell in zip(STATES, row.split(), strict=True)
}
CELLS = [
    pytest.param(before, to, by, id=f"{before}-{to}-{by}")
    for before, to, by in product(STATES, STATES, ("person", "system"))
]


@pytest.mark.parametrize(("before", "to", "by"), CELLS)
def test_a_system_skill_moves_exactly_as_the_table_says(a_skill, before, to, by):
    skill = a_skill(state=before)
    if by in LEGAL[before, to]:
        check_transition(skill, to, by)
    else:
        with pytest.raises(IllegalTransition, match=f"temperature@1: .*{before}"):
            check_transition(skill, to, by)


@pytest.mark.parametrize(("before", "to", "by"), CELLS)
def test_a_users_skill_moves_by_a_person_or_with_its_pins(a_skill, before, to, by):
    skill = a_skill(state=before, origin="user")
    follows_pins = to == "stale" or (before == "stale" and to in ("active", "context_only"))
    if by in LEGAL[before, to] and (by == "person" or follows_pins):
        check_transition(skill, to, by)
    else:
        with pytest.raises(IllegalTransition):
            check_transition(skill, to, by)


def test_the_table_has_the_moves_of_the_matrix_and_no_others():
    assert {(before, to, by) for (before, to), actors in LEGAL.items() for by in actors} == TRANSITIONS


@pytest.mark.parametrize(
    ("before", "to", "by", "message"),
    [
        pytest.param(
            "proposed",
            "rejected",
            "system",
            "a system cannot move a skill from proposed to rejected",
            id="actor",
        ),
        pytest.param(
            "rejected",
            "active",
            "person",
            "no move from rejected to active; from rejected there is retired",
            id="moves-there-are",
        ),
        pytest.param(
            "retired",
            "active",
            "person",
            "no move from retired to active; from retired there is proposed",
            id="end",
        ),
    ],
)
def test_a_refusal_says_why(a_skill, before, to, by, message):
    with pytest.raises(IllegalTransition) as caught:
        check_transition(a_skill(state=before), to, by)
    assert str(caught.value) == f"temperature@1: {message}"


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(("origin", "by"), [("system", "system"), ("user", "person")])
def test_a_version_begins_proposed_or_one_legal_move_on(a_skill, state, origin, by):
    skill = a_skill(state=state, origin=origin)
    if state == "proposed" or by in LEGAL["proposed", state]:
        assert check_entry(skill) == by
    else:
        with pytest.raises(IllegalTransition):
            check_entry(skill)
