"""Names by meaning: what repairs of misnamed arguments stand on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.similarity import name_similarity, text_similarity, words


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("from_unit", ("from", "unit"), id="snake"),
        pytest.param("fromUnit", ("from", "unit"), id="camel"),
        pytest.param("HTTPServer", ("http", "server"), id="capitals"),
        pytest.param("from-unit", ("from", "unit"), id="kebab"),
        pytest.param("matrix1", ("matrix", "1"), id="digits"),
        pytest.param("filepath", ("file", "path"), id="glued"),
        pytest.param("timezones", ("time", "zone"), id="glued plural"),
        pytest.param("queries", ("query",), id="plural in ies"),
        pytest.param("status", ("status",), id="no plural"),
        pytest.param("Município", ("município",), id="letters beyond ASCII"),
        pytest.param("", (), id="empty"),
    ],
)
def test_names_split_into_stemmed_words(name: str, expected: tuple[str, ...]):
    assert words(name) == expected


@pytest.mark.parametrize(
    ("wrong", "right", "rivals"),
    [
        ("path", "filepath", ["sheet_name", "start_cell", "end_cell"]),
        ("file_name", "filepath", ["sheet_name", "data"]),
        ("workbook", "filepath", ["sheet_name", "start_cell"]),
        ("sheet", "sheet_name", ["filepath", "start_cell"]),
        ("worksheet", "sheet_name", ["filepath", "data"]),
        ("source_unit", "from_unit", ["to_unit", "value", "unit_type"]),
        ("target_unit", "to_unit", ["from_unit", "value", "unit_type"]),
        ("amount", "value", ["from_unit", "to_unit", "unit_type"]),
        ("sql", "query", ["conn_id", "params"]),
        ("query", "sql", ["conn_id", "params"]),
        ("script", "sql_script", ["conn_id"]),
        ("connection_id", "conn_id", ["sql", "params"]),
        ("connection", "conn_id", ["sql", "params"]),
        ("parameters", "params", ["sql", "conn_id"]),
        ("text", "data", ["usedforsecurity"]),
        ("content", "data", ["algorithm"]),
        ("limit", "max_count", ["repo_path", "start_timestamp"]),
        ("n", "max_count", ["repo_path", "start_timestamp"]),
        ("repository", "repo_path", ["message", "files"]),
        ("tz", "timezone", ["time"]),
        ("from_timezone", "source_timezone", ["target_timezone", "time"]),
        ("to_tz", "target_timezone", ["source_timezone", "time"]),
        ("commit", "revision", ["repo_path"]),
        ("x", "a", ["b"]),
        ("second", "b", ["a"]),
        ("numerator", "a", ["b"]),
        ("divisor", "b", ["a"]),
        ("power", "exponent", ["base"]),
        ("expression", "expr", ["variables"]),
        ("formula", "expression", ["precision"]),
        ("calculate", "calculate_expression", ["create_session", "list_functions"]),
        ("unit_convert", "convert_units", ["calculate_expression", "convert_natural_language"]),
        ("git_history", "git_log", ["git_status", "git_diff", "git_show"]),
        ("sha256", "hash_sha256", ["hash_sha512", "hash_md5"]),
        ("run_query", "execute_query", ["create_table", "list_tables"]),
        ("current_time", "get_current_time", ["convert_time"]),
        ("celcius", "celsius", ["fahrenheit", "kelvin"]),
        ("mulitply", "multiply", ["divide", "add"]),
    ],
)
def test_a_misnamed_name_is_closest_to_what_it_means(wrong: str, right: str, rivals: list[str]):
    best = name_similarity(wrong, right)
    assert best > max(name_similarity(wrong, rival) for rival in rivals), best


@pytest.mark.parametrize(
    ("one", "other"),
    [("from_unit", "to_unit"), ("a", "b"), ("start", "end"), ("encode_text", "decode_text"), ("min", "max")],
)
def test_opposites_are_far_apart_whatever_they_share(one: str, other: str):
    assert name_similarity(one, other) < 0.3


@pytest.mark.parametrize(
    ("one", "other"),
    [("file_path", "filePath"), ("file-path", "filepath"), ("convert_units", "convert_unit")],
)
def test_the_same_words_are_the_same_name(one: str, other: str):
    assert name_similarity(one, other) == 1.0


@given(st.text(max_size=20), st.text(max_size=20))
def test_similarity_is_symmetric_and_a_share(one: str, other: str):
    score = name_similarity(one, other)
    assert 0 <= score <= 1
    assert score == name_similarity(other, one)
    assert name_similarity(one, one) == 1.0
    assert text_similarity(one, other) == text_similarity(other, one)
    assert 0 <= text_similarity(one, other) <= 1


def test_a_text_is_closest_to_the_description_it_asks_for():
    task = "hash the text with sha256"
    fitting, other = "Compute SHA-256 digest of a string", "Convert a value between units"
    assert text_similarity(task, fitting) > 0.5 > text_similarity(task, other)
