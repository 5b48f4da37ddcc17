"""The examples of the documents are read and run as they stand there."""

from __future__ import annotations

import json

import pytest
from generated import DOCUMENTS, PROJECT
from reading import PAGES, blocks, rows

from catalog.config import ConfigDocument
from catalog.config.formats import parse_config
from catalog.tools import Snapshot, Tool, ToolId
from skills_store.workflow.assertions import check_assertion
from skills_store.workflow.check import check_workflow
from skills_store.workflow.model import parse_workflow
from skills_store.workflow.references import Scope, resolve

WORKFLOWS = DOCUMENTS / "workflows.md"


@pytest.mark.parametrize("text", blocks(WORKFLOWS, "json workflow"))
def test_example_workflows_have_no_fault_on_servers_that_have_their_tools(text: str):
    workflow = parse_workflow(text)
    tools = {node.tool for node in workflow.nodes if node.tool is not None}
    snapshot = Snapshot.of(*(Tool(tool, {"type": "object"}) for tool in tools))
    assert check_workflow(workflow, snapshot) == []


@pytest.mark.parametrize(("written", "kind", "value"), rows(WORKFLOWS, "written"))
def test_references_stand_for_what_the_table_says(written: str, kind: str, value: str):
    del kind
    assert resolve(json.loads(written), Scope(inputs={"n": 3})) == json.loads(value)


@pytest.mark.parametrize(("assertion", "output", "holds"), rows(WORKFLOWS, "assertion"))
def test_assertions_hold_where_the_table_says_so(assertion: str, output: str, holds: str):
    checked = check_assertion(assertion, output=json.loads(output), inputs={}, nodes={})
    assert checked.passed == {"yes": True, "no": False}[holds]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_json_blocks_are_json(page):
    for text in blocks(page, "json"):
        json.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        text
        for page in PAGES
        for text in blocks(page, "json")
        if '"mcpServers"' in text or '"servers": {' in text
    ],
)
def test_example_configurations_are_read(text: str, tmp_path):
    document = ConfigDocument(tmp_path / "config.json", json.loads(text), lines={})
    assert parse_config(document).servers


def test_the_example_workflow_fails_on_its_server_as_the_readme_says():
    workflow = parse_workflow((PROJECT / "docs/examples/meeting.json").read_text("utf-8"))
    schema = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in ("source_timezone", "time", "target_timezone")},
    }
    snapshot = Snapshot.of(Tool(ToolId("clock", "convert_time"), schema))
    assert [fault.kind for fault in check_workflow(workflow, snapshot)] == ["unknown_tool"]
