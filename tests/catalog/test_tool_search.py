"""Tool search: what a person's words find."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.search import ToolIndex
from catalog.tools import Tool, ToolId

UNITS = {"unit": {"type": "string", "enum": ["fahrenheit", "celsius"]}, "value": {"type": "number"}}


def tool(server: str, name: str, description: str, properties: dict[str, object] | None = None) -> Tool:
    schema = {"type": "object", "properties": properties or {}}
    return Tool(ToolId(server, name), schema, description=description)  # pyright: ignore[reportArgumentType]


TOOLS = [
    tool(
        "excel", "writeRange", "Write values into the cells of a worksheet", {"filepath": {"type": "string"}}
    ),
    tool("git", "git_log", "Shows the commit logs"),
    tool("git", "git_status", "Shows the working tree status. See git_log."),
    tool("hash", "hash_sha256", "Compute a digest"),
    tool("time", "convert_time", "Convert time between timezones", {"timezone": {"type": "string"}}),
    tool("units", "convert_units", "Unit conversion", UNITS),
    tool("other", "git_log", "Shows the commit logs"),
]
INDEX = ToolIndex(TOOLS)


def found(query: str, limit: int = 10) -> list[str]:
    return [str(hit.tool.id) for hit in INDEX.search(query, limit)]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        pytest.param("write a range in excel", "excel/writeRange", id="camel case name"),
        pytest.param("hash with sha256", "hash/hash_sha256", id="digits"),
        pytest.param("fahrenheit", "units/convert_units", id="enum value"),
        pytest.param("filepath", "excel/writeRange", id="parameter"),
        pytest.param("what is the time in Tokyo", "time/convert_time", id="question"),
        pytest.param("converting units", "units/convert_units", id="stemmed"),
        pytest.param("git/git_status", "git/git_status", id="full id"),
        pytest.param("GIT_STATUS", "git/git_status", id="exact name, other case"),
    ],
)
def test_words_find_the_tool_they_describe(query: str, first: str):
    assert found(query)[0] == first


def test_an_exact_name_ranks_first_and_equal_ones_by_id():
    hits = INDEX.search("git_log")
    assert [(str(h.tool.id), h.score) for h in hits[:2]] == [("git/git_log", 1.0), ("other/git_log", 1.0)]
    assert all(hit.score < 1.0 for hit in hits[2:])


def test_a_hit_says_where_which_words_were_found():
    assert INDEX.search("shows status")[0].reasons == ("name: status", "description: shows, status")


@pytest.mark.parametrize("query", ["", "   ", "?!", "zzzz"])
def test_a_query_without_known_words_finds_nothing(query: str):
    assert found(query) == []


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ('"status', "status"),
        ("status OR", "status or"),
        ("NEAR(git log)", "near git log"),
        ("name:git*", "name git"),
        ("-git ^log", "git log"),
        ("'; DROP TABLE tools; --", "drop table tools"),
        ("\0git", "git"),
    ],
)
def test_query_syntax_is_only_text(query: str, words: str):
    assert found(query) == found(words)


@given(st.text(max_size=60), st.integers(1, 5))
def test_any_text_gives_ordered_scores_within_bounds(query: str, limit: int):
    hits = INDEX.search(query, limit)
    assert len(hits) <= limit
    assert all(0 < hit.score <= 1 for hit in hits)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert len({hit.tool.id for hit in hits}) == len(hits)


def test_the_order_of_tools_does_not_matter():
    assert ToolIndex(reversed(TOOLS)).search("convert") == INDEX.search("convert")


def test_an_empty_index_finds_nothing():
    assert ToolIndex([]).search("anything") == []
