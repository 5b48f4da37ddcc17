"""Servers' own words, verbatim, and the faults they come to."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.result import CallFailure, FailureKind, RanUpstream
from catalog.tools import ToolId
from server.execution.failures import Place, PlannedCall, faults_of
from skills_store.workflow.faults import FaultBase

TOOL = ToolId("mathematics", "convert_units")
PLACE = Place("fuel", 2, item=1)


def call(arguments: dict[str, Any], *parameters: str) -> PlannedCall:
    return PlannedCall(TOOL, {"type": "object", "properties": {name: {} for name in parameters}}, arguments)


def faults(message: str, planned: PlannedCall, kind: FailureKind = FailureKind.INVALID_ARGUMENT) -> list[Any]:
    return list(faults_of(CallFailure(kind, message, 0.0, RanUpstream.NO), planned, PLACE))


CONVERT = ("value", "from_unit", "to_unit", "unit_type")
TAIL = "input_value={'value': 300, 'from': 'm..., 'unit_type': 'length'}, input_type=dict]"

NAMED = [
    pytest.param(
        "4 validation errors for call[convert_units]\n"
        f"from_unit\n  Missing required argument [type=missing_argument, {TAIL}\n"
        f"to_unit\n  Missing required argument [type=missing_argument, {TAIL}\n"
        "from\n  Unexpected keyword argument [type=unexpected_keyword_argument, input_value='mi', x=str]\n"
        "    For further information visit https://errors.pydantic.dev/2/v/unexpected_keyword_argument\n"
        "to\n  Unexpected keyword argument [type=unexpected_keyword_argument, input_value='km', x=str]",
        call({"value": 300, "from": "mi", "to": "km", "unit_type": "length"}, *CONVERT),
        [
            ("missing_argument", "from_unit"),
            ("missing_argument", "to_unit"),
            ("unexpected_argument", "from"),
            ("unexpected_argument", "to"),
        ],
        id="fastmcp: misnamed arguments",
    ),
    pytest.param(
        "1 validation error for call[convert_units]\nprecision\n  Unexpected keyword argument "
        "[type=unexpected_keyword_argument, input_value=2, input_type=int]",
        call({"value": 1, "precision": 2}, *CONVERT),
        [("unexpected_argument", "precision")],
        id="fastmcp: extra argument",
    ),
    pytest.param(
        "1 validation error for call[convert_units]\nvalue\n  Input should be a valid number, unable "
        "to parse string as a number [type=float_parsing, input_value='300 miles', input_type=str]",
        call({"value": "300 miles"}, *CONVERT),
        [("invalid_argument", "value")],
        id="fastmcp: wrong type",
    ),
    pytest.param(
        "Error executing tool git_log: 1 validation error for logArguments\nrepo_path\n  Field required "
        "[type=missing, input_value={'path': 'a scratch folder', 'max_count': 1}, input_type=dict]",
        call({"path": "x", "max_count": 1}, "repo_path", "max_count"),
        [("missing_argument", "repo_path")],
        id="sdk: misnamed path",
    ),
    pytest.param(
        "1 validation error for call[convert_batch]\nrequests.0.value\n  Field required [type=missing, x=1]",
        call({"requests": [{}]}, "requests", "value"),
        [("invalid_argument", "requests")],
        id="fastmcp: missing deep inside an argument",
    ),
    pytest.param(
        "Error executing tool read_range: Invalid arguments for read_range: file_path: unknown field; "
        "did you mean 'path'?",
        call({"file_path": "x", "sheet": "S"}, "path", "sheet", "range"),
        [("unexpected_argument", "file_path")],
        id="excel: one problem",
    ),
    pytest.param(
        "Error executing tool read_range: Invalid arguments for read_range:\n- path: required\n"
        "- range: expected text; got number\n- cell: unknown field; valid fields: 'path', 'range'",
        call({"range": 3, "cell": "A1"}, "path", "range"),
        [("missing_argument", "path"), ("invalid_argument", "range"), ("unexpected_argument", "cell")],
        id="excel: several problems",
    ),
    pytest.param(
        "Input validation error: 'timezone' is a required property",
        call({}, "timezone"),
        [("missing_argument", "timezone")],
        id="jsonschema: required",
    ),
    pytest.param(
        "Input validation error: Additional properties are not allowed ('a', 'b' were unexpected)",
        call({"a": 1, "b": 2}, "c"),
        [("unexpected_argument", "a"), ("unexpected_argument", "b")],
        id="jsonschema: unexpected",
    ),
    pytest.param(
        'MCP error -32602: Invalid arguments for tool add: [ { "code": "invalid_type", "expected": "number", '
        '"received": "undefined", "path": [ "firstNumber" ], "message": "Required" }, { "code": '
        '"invalid_type", "expected": "number", "received": "string", "path": ["second"], "message": "no" } ]',
        call({"second": "x"}, "firstNumber", "second"),
        [("missing_argument", "firstNumber"), ("invalid_argument", "second")],
        id="zod: issues",
    ),
]


@pytest.mark.parametrize(("message", "planned", "expected"), NAMED)
def test_arguments_that_a_server_names_become_faults_of_their_own(message, planned, expected):
    found = faults(message, planned)
    assert [(fault.kind, fault.argument) for fault in found] == expected
    assert {(fault.node, fault.item) for fault in found} == {("fuel", 1)}


UNNAMED = [
    pytest.param(
        "1 validation error for Order\namount\n  Field required [type=missing, input_value={}, x=dict]",
        call({"id": 3}, "id"),
        id="a model inside the tool",
    ),
    pytest.param("amount\n  Field required", call({}, "amount"), id="no header"),
    pytest.param("'amount' is a required property", call({"amount": 1}, "amount"), id="it was given"),
    pytest.param("Invalid arguments for tool add: [ { cut", call({"a": 1}, "a"), id="cut short"),
]


@pytest.mark.parametrize(("message", "planned"), UNNAMED)
def test_a_name_the_call_cannot_have_meant_is_not_believed(message, planned):
    (fault,) = faults(message, planned)
    assert (fault.kind, fault.argument, fault.message) == ("invalid_argument", None, message)


def test_what_a_server_suggests_is_kept_as_what_is_allowed():
    message = "Invalid arguments for read_range: file_path: unknown field; did you mean 'path'?"
    (fault,) = faults(message, call({"file_path": "x"}, "path", "sheet"))
    assert (fault.pointer, fault.allowed) == ("/nodes/2/arguments/file_path", ("path",))


def test_an_invalid_argument_carries_its_schema_and_what_was_sent():
    planned = PlannedCall(TOOL, {"properties": {"value": {"type": "number"}}}, {"value": {"a": 1}})
    message = "1 validation error for call[x]\nvalue\n  Input should be a valid number [type=float_type, x=1]"
    (fault,) = faults(message, planned)
    assert (fault.expected, fault.found) == ({"type": "number"}, {"a": 1})


@pytest.mark.parametrize("kind", FailureKind, ids=str)
def test_every_kind_of_failure_is_the_fault_of_its_name(kind):
    (fault,) = faults("words", call({"a": 1}), kind)
    assert isinstance(fault, FaultBase)
    assert (fault.kind, fault.message, fault.node, fault.item) == (kind.value, "words", "fuel", 1)
    assert fault.pointer.startswith("/nodes/2")


def test_a_denial_shows_the_call_and_whether_consent_would_help():
    failure = CallFailure(FailureKind.DENIED, "ask", 0.0, RanUpstream.NO)
    (fault,) = faults_of(failure, call({"a": 1}), PLACE, needs_approval=True)
    assert (fault.kind, fault.arguments, fault.needs_approval) == ("denied", {"a": 1}, True)  # type: ignore[union-attr]
