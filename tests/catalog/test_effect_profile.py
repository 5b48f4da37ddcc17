"""Proposed effect classes: a write is never proposed as free."""

from __future__ import annotations

from dataclasses import replace

import pytest

from catalog.effect_profile import propose_effect, propose_reset
from catalog.effects import Effect, Reset
from catalog.tools import Annotations, Tool, ToolId

READ_ONLY = Annotations(read_only=True, destructive=False, idempotent=True, open_world=False)
WRITING = Annotations(read_only=False, destructive=False)
DESTRUCTIVE = Annotations(destructive=True)
SILENT = Annotations()


def tool(
    name: str,
    parameters: str = "",
    description: str = "",
    annotations: Annotations = SILENT,
    kind: str = "string",
) -> Tool:
    properties = {parameter: {"type": kind} for parameter in parameters.split()}
    return Tool(
        ToolId("s", name),
        {"type": "object", "properties": dict(properties)},
        description=description,
        annotations=annotations,
    )


CASES = [
    # Computation
    (tool("calculate_expression", "expr", "Evaluate math expression"), Effect.PURE),
    (tool("convert_units", "value from_unit to_unit unit_type", "Unit conversion"), Effect.PURE),
    (tool("hash_sha256", "data usedforsecurity", "Compute SHA256 hash"), Effect.PURE),
    (
        tool("hash_update", "algorithm data_parts", "Compute hash incrementally with multiple updates"),
        Effect.PURE,
    ),
    (tool("add", "a b", "Adds two numbers", kind="number"), Effect.PURE),
    (tool("power", "base exponent", "Raises a number to a power.", kind="number"), Effect.PURE),
    (tool("percent_change", "old new", "Percentage change between values", kind="number"), Effect.PURE),
    (tool("unit_converter", "value from_unit to_unit", "A tool for units"), Effect.PURE),
    (tool("is_email", "text", "Check whether a text is an email address."), Effect.PURE),
    (tool("regex_extract", "text pattern", "All matches of a pattern"), Effect.PURE),
    (tool("std_dev", "numbers", "Calculate standard deviation"), Effect.PURE),
    (tool("hash_file", "path", "Compute the hash of a file"), Effect.READ),
    (tool("convert_time", "source_timezone time target_timezone", "Convert time", READ_ONLY), Effect.READ),
    (tool("check_guideline", "drug", "Get what must be monitored"), Effect.READ),
    (tool("extract_facts", "title", "Extract facts from an article"), Effect.READ),
    (tool("search_flights", "origin destination date", "Search flights"), Effect.READ),
    (tool("simulate_paths", "seed n", "Estimate by Monte Carlo", READ_ONLY), Effect.READ),
    (tool("solve", "", "Solve the current problem"), Effect.UNKNOWN),
    (tool("extract_files", "archive folder", "Extract an archive"), Effect.UNKNOWN),
    (tool("add_missing", "text", "Check whether a text is there and otherwise add it"), Effect.WRITE),
    (tool("reason_on", "thought next_thought_needed", "Think", READ_ONLY), Effect.UNKNOWN),
    (tool("convert_file", "input_path", "Convert a document"), Effect.UNKNOWN),
    (tool("sort_data", "session_id columns", "Sort data by columns."), Effect.UNKNOWN),
    (tool("session_calculate", "session_id expr var_name", "Session calculation"), Effect.UNKNOWN),
    (tool("transpose", "name", "Transposes a stored tensor."), Effect.UNKNOWN),
    (tool("generate_uuid", "version", "Generate a UUID"), Effect.UNKNOWN),
    # Reading
    (tool("get_current_time", "timezone", "Get current time", READ_ONLY), Effect.READ),
    (tool("git_log", "repo_path max_count", "Shows the commit logs", READ_ONLY), Effect.READ),
    (tool("git_branch", "repo_path branch_type", "List Git branches", READ_ONLY), Effect.READ),
    (tool("list_tables", "conn_id", "List all tables in the database."), Effect.READ),
    (tool("read_query", "query", "Execute a SELECT query on the SQLite database"), Effect.READ),
    (tool("search_issues", "query", "Search issues"), Effect.READ),
    (tool("fetch", "url", "Fetches a URL from the internet"), Effect.READ),
    (tool("get_commit_status", "sha", "Get the status of a commit"), Effect.READ),
    (tool("execute_query", "sql", "Run a statement", READ_ONLY), Effect.READ),
    # Writing
    (tool("git_commit", "repo_path message", "Records changes to the repository"), Effect.WRITE),
    (tool("git_add", "repo_path files", "Adds file contents to the staging area"), Effect.WRITE),
    (tool("git_checkout", "repo_path branch_name", "Switches branches"), Effect.WRITE),
    (tool("git_reset", "repo_path", "Unstages all staged changes"), Effect.WRITE),
    (tool("git_create_branch", "repo_path", "Creates a new branch"), Effect.WRITE),
    (tool("connect_database", "database", "Open a database connection."), Effect.WRITE),
    (tool("delete_rows", "conn_id table_name where", "Delete rows from a table."), Effect.WRITE),
    (tool("add", "text", "Adds a note"), Effect.WRITE),
    (tool("clear_history", "", "Clear history"), Effect.WRITE),
    (tool("find_and_replace", "text pattern", "Find text"), Effect.WRITE),
    (tool("get_or_create_user", "name", "Get a user"), Effect.WRITE),
    (tool("read_data", "path", "Read data", DESTRUCTIVE), Effect.WRITE),
    (tool("calculate", "expression", "Calculate", WRITING), Effect.WRITE),
    # Doubt
    (tool("execute_query", "conn_id sql params", "Execute a SQL query and return results."), Effect.UNKNOWN),
    (tool("execute_script", "conn_id sql_script", "Execute a SQL script"), Effect.UNKNOWN),
    (tool("query", "sql", "Run SQL"), Effect.UNKNOWN),
    (tool("get_report", "query output_path", "Get a report"), Effect.UNKNOWN),
    (tool("get_page", "url", "Get a page and saves it to disk"), Effect.UNKNOWN),
    (tool("get_status", "item", "Move item to the next status"), Effect.UNKNOWN),
    (tool("fetch_results", "conn_id cursor_id fetch_size", "Fetch results from a cursor."), Effect.UNKNOWN),
    (tool("delete_page", "id", "Delete a page", READ_ONLY), Effect.UNKNOWN),
    (tool("frobnicate", "x", "Frobnicates."), Effect.UNKNOWN),
]


@pytest.mark.parametrize(
    ("subject", "expected"), [pytest.param(t, e, id=f"{t.id.tool}-{e}-{i}") for i, (t, e) in enumerate(CASES)]
)
def test_the_class_follows_from_the_evidence(subject: Tool, expected: Effect):
    proposal = propose_effect(subject)
    assert proposal.effect is expected, proposal.reason
    assert proposal.tool == subject.id
    assert proposal.reason


@pytest.mark.parametrize("subject", [t for t, _ in CASES], ids=lambda t: t.id.tool)
def test_an_annotation_never_makes_a_tool_pure(subject: Tool):
    bare = propose_effect(replace(subject, annotations=SILENT))
    claimed = propose_effect(replace(subject, annotations=READ_ONLY))
    assert claimed.effect is not Effect.PURE or bare.effect is Effect.PURE
    if bare.effect is Effect.WRITE:
        assert not claimed.effect.is_free


@pytest.mark.parametrize("subject", [t for t, e in CASES if e is Effect.WRITE], ids=lambda t: t.id.tool)
def test_an_idempotent_write_is_a_write(subject: Tool):
    hinted = replace(subject.annotations, idempotent=True)
    assert propose_effect(replace(subject, annotations=hinted)).effect is Effect.WRITE


def test_sessions_of_a_process_are_reset_by_a_fresh_one():
    tools = [tool("create_session", "session_id", "Create session"), tool("calculate", "expr")]
    assert propose_reset(tools)[0] is Reset.PROCESS


@pytest.mark.parametrize(
    "tools",
    [
        pytest.param([tool("calculate", "expr")], id="nothing to restore"),
        pytest.param([tool("create_session", "session_id"), tool("save", "session_id path")], id="a path"),
        pytest.param([tool("create_session", "session_id"), tool("send", "url")], id="an address"),
        pytest.param(
            [tool("connect", "database"), tool("execute", "conn_id sql")], id="a database of its own"
        ),
        pytest.param([tool("create_note", "text")], id="no session in sight"),
    ],
)
def test_no_reset_is_proposed_where_something_may_outlive_the_process(tools: list[Tool]):
    mode, reason = propose_reset(tools)
    assert mode is Reset.NONE
    assert reason
