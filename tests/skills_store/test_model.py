"""Workflow documents at the border, and their published schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from catalog.schema import is_valid
from skills_store.errors import MalformedWorkflow
from skills_store.schemas import published_schemas, write_schemas
from skills_store.workflow.model import Workflow, json_pointer, parse_workflow
from tests.strategies import workflows

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "workflows"
NODE: dict[str, Any] = {"id": "a", "tool": {"server": "s", "tool": "t"}, "arguments": {}}
WHOLE: dict[str, Any] = {"name": "w", "inputs": {}, "nodes": [NODE], "outputs": {"o": "$nodes.a.output"}}


@pytest.mark.parametrize(
    ("document", "pointer", "words"),
    [
        pytest.param("{", "", "not JSON", id="text that is no JSON"),
        pytest.param("[" * 100_000, "", "not JSON", id="text that is too deep"),
        pytest.param('{"name": NaN}', "", "NaN is not allowed", id="NaN"),
        pytest.param([], "", "", id="a list"),
        pytest.param({**WHOLE, "extra": 1}, "/extra", "unknown field 'extra'", id="unknown field"),
        pytest.param({"name": "w", "inputs": {}, "outputs": {}}, "/nodes", "required", id="missing field"),
        pytest.param({**WHOLE, "name": ""}, "/name", "", id="empty name"),
        pytest.param({**WHOLE, "nodes": [{**NODE, "id": "A"}]}, "/nodes/0/id", "", id="malformed id"),
        pytest.param({**WHOLE, "nodes": [NODE, NODE]}, "/nodes/1/id", "'a' is not unique", id="an id twice"),
        pytest.param({**WHOLE, "nodes": [{"id": "a"}]}, "/nodes/0", "exactly one of", id="no target"),
        pytest.param(
            {**WHOLE, "nodes": [{**NODE, "skill": {"name": "x", "version": 1}}]},
            "/nodes/0",
            "exactly one of",
            id="two targets",
        ),
        pytest.param(
            {**WHOLE, "nodes": [{**NODE, "tool": {"server": "s"}}]},
            "/nodes/0/tool/tool",
            "required",
            id="half a tool",
        ),
        pytest.param(
            {**WHOLE, "nodes": [{**NODE, "timeout_seconds": 0}]}, "/nodes/0/timeout_seconds", "", id="no time"
        ),
        pytest.param({**WHOLE, "nodes": [5]}, "/nodes/0", "", id="a node that is a number"),
    ],
)
def test_what_is_no_workflow_is_a_fault_with_its_place(document: Any, pointer: str, words: str) -> None:
    with pytest.raises(MalformedWorkflow) as caught:
        parse_workflow(document)
    assert (caught.value.faults[0].kind, caught.value.faults[0].pointer) == ("malformed", pointer)
    assert words in caught.value.faults[0].message


def test_every_problem_is_told_with_its_node() -> None:
    nodes = [{**NODE, "x": 1}, {**NODE, "id": "b", "after": 5}]
    with pytest.raises(MalformedWorkflow) as caught:
        parse_workflow({**WHOLE, "nodes": nodes, "y": 2})
    assert {(fault.pointer, fault.node) for fault in caught.value.faults} == {
        ("/nodes/0/x", "a"),
        ("/nodes/1/after", "b"),
        ("/y", None),
    }


def test_a_single_check_may_be_written_as_text() -> None:
    assert parse_workflow({**WHOLE, "expect": "output.o"}).expect == ("output.o",)


@given(workflows())
def test_a_workflow_survives_its_document(workflow: Workflow) -> None:
    assert parse_workflow(json.dumps(workflow.to_json())) == workflow


def test_pointers_escape_their_parts() -> None:
    assert json_pointer("a/b", 0, "~") == "/a~1b/0/~0"


@pytest.mark.parametrize("name", sorted(published_schemas()))
def test_a_published_schema_is_up_to_date(name: str) -> None:
    published = (ROOT / "docs" / "schemas" / name).read_text(encoding="utf-8")
    assert published == published_schemas()[name], "run: python -m skills_store.schemas"


def test_schemas_are_written_where_asked(tmp_path: Path) -> None:
    write_schemas(tmp_path / "new")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(published_schemas())


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.json")), ids=lambda path: path.stem)
def test_documents_fit_the_published_schema(path: Path) -> None:
    schema = json.loads(published_schemas()["workflow.schema.json"])
    document = json.loads(path.read_text(encoding="utf-8"))
    assert is_valid(schema, document)
    assert not is_valid(schema, {**document, "extra": 1})


def test_what_is_left_without_unknown_fields_can_still_be_checked():
    document = {
        "name": "w",
        "inputs": {"type": "object"},
        "nodes": [{"id": "a", "tool": {"server": "s", "tool": "t"}, "arguments": {}, "bar": 1}],
        "outputs": {"o": "$nodes.a.output"},
        "colour": "red",
    }
    with pytest.raises(MalformedWorkflow) as caught:
        parse_workflow(document)
    assert [fault.pointer for fault in caught.value.faults] == ["/nodes/0/bar", "/colour"]
    assert caught.value.rest is not None
    assert caught.value.rest.node("a") is not None
    assert caught.value.document == document
