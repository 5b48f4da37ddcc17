"""Published names: accepted everywhere, distinct, stable."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.names import NAME_PATTERN, portable_name


@pytest.mark.parametrize(
    ("server", "tool", "expected"),
    [
        pytest.param("git", "git_log", "git__git_log", id="plain"),
        pytest.param("", "weather", "weather", id="no prefix"),
        pytest.param("git", "a__b", "git__a__b", id="the separator in the tool's own name"),
        pytest.param("git", "_log", "git___log", id="an underscore after the separator"),
    ],
)
def test_a_name_that_fits_is_server_and_tool(server: str, tool: str, expected: str):
    assert portable_name(server, tool, {}) == expected


@pytest.mark.parametrize(
    ("server", "tool", "likeness"),
    [
        pytest.param("my__git", "log", "my_git__log", id="the separator is kept out of labels"),
        pytest.param("git_", "log", "git__log", id="an underscore before the separator"),
        pytest.param("a.b", "x.y", "a_b__x_y", id="dots"),
        pytest.param("3d", "draw", "_3d__draw", id="leading digit"),
        pytest.param("wetter", "größe", "wetter__gr_e", id="letters beyond ASCII"),
        pytest.param("s", "with space", "s__with_space", id="space"),
        pytest.param("s", "", "s", id="empty tool"),
    ],
)
def test_a_name_that_does_not_fit_is_a_likeness_with_a_mark(server: str, tool: str, likeness: str):
    name, _, mark = portable_name(server, tool, {}).rpartition("_")
    assert name == likeness
    assert len(mark) == 8
    assert int(mark, 16) >= 0


def test_a_long_name_is_cut_and_marked_with_eight_hex_digits():
    name = portable_name("server", "t" * 60, {})
    assert len(name) == 40
    assert name[:31] == "server__" + "t" * 23
    assert int(name[-8:], 16) >= 0


def test_a_taken_name_gets_a_mark_and_the_owner_keeps_its_own():
    taken = {"s__a_b": ("", "s__a_b")}
    assert portable_name("", "s__a_b", taken) == "s__a_b"
    other = portable_name("s", "a_b", taken)
    assert other.startswith("s__a_b_")
    assert other != "s__a_b"


@pytest.mark.parametrize("limit", [0, 11, 65])
def test_a_limit_that_no_name_can_keep_is_misuse(limit: int):
    with pytest.raises(ValueError, match="limit"):
        portable_name("s", "t", {}, limit)


@given(st.lists(st.tuples(st.text(max_size=20), st.text(max_size=80)), max_size=12), st.integers(12, 64))
def test_names_are_portable_distinct_and_stable(tools: list[tuple[str, str]], limit: int):
    taken: dict[str, tuple[str, str]] = {}
    for server, tool in tools:
        name = portable_name(server, tool, taken, limit)
        assert NAME_PATTERN.fullmatch(name)
        assert len(name) <= limit
        assert taken.get(name, (server, tool)) == (server, tool)
        taken[name] = (server, tool)
    for name, (server, tool) in taken.items():
        assert portable_name(server, tool, taken, limit) in taken
        assert taken[portable_name(server, tool, taken, limit)] == (server, tool), name


HOSTILE = st.sampled_from(
    [
        "",
        "a",
        "a_",
        "_a",
        "a__",
        "__",
        "a.b",
        "a b",
        "a/b",
        "größe",
        "工具",
        "solve",
        "a" * 60,
        "a" * 60 + "b",
        "A",
    ]
)


@given(
    st.lists(st.tuples(HOSTILE | st.text(max_size=50), HOSTILE | st.text(max_size=50)), max_size=12),
    st.randoms(),
)
def test_the_order_and_company_of_tools_changes_no_name(tools: list[tuple[str, str]], random: Random):
    tools = [(server or "s", tool) for server, tool in tools]
    alone = {pair: portable_name(*pair, {}) for pair in tools}
    random.shuffle(tools)
    taken: dict[str, tuple[str, str]] = {}
    for pair in tools:
        taken[portable_name(*pair, taken)] = pair
    assert {pair: name for name, pair in taken.items()} == alone
    assert len(set(alone.values())) == len(alone)
    assert all(NAME_PATTERN.fullmatch(name) and len(name) <= 40 for name in taken)
