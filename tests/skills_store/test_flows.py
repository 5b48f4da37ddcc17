"""The flow check: private data does not leave, text of strangers does not command."""

from __future__ import annotations

from typing import Any

import pytest

from catalog.effects import Effect
from catalog.labels import Label, LabelTable, labels_of
from catalog.tools import Annotations, Tool, ToolId
from skills_store.workflow.flows import check_flows
from skills_store.workflow.model import parse_workflow

READ_FILE, FETCH, POST, DELETE, ADD = (
    ToolId("files", "read_file"),
    ToolId("web", "fetch"),
    ToolId("chat", "post_message"),
    ToolId("files", "delete_file"),
    ToolId("math", "add"),
)
LABELS = {
    READ_FILE: frozenset({Label.PRIVATE}),
    FETCH: frozenset({Label.UNTRUSTED, Label.PUBLIC_SINK}),
    POST: frozenset({Label.PUBLIC_SINK, Label.DESTRUCTIVE}),
    DELETE: frozenset({Label.DESTRUCTIVE}),
    ADD: frozenset(),
}


def workflow(*nodes: tuple[str, ToolId, dict[str, Any]]):
    documents = [
        {"id": node_id, "tool": {"server": tool.server, "tool": tool.tool}, "arguments": arguments}
        for node_id, tool, arguments in nodes
    ]
    outputs = {"out": f"$nodes.{nodes[-1][0]}.output"}
    return parse_workflow({"name": "w", "inputs": {"type": "object"}, "nodes": documents, "outputs": outputs})


FILE = ("a", READ_FILE, {"path": "x"})
PAGE = ("a", FETCH, {"url": "x"})


@pytest.mark.parametrize(
    ("nodes", "rules"),
    [
        pytest.param(
            [FILE, ("b", POST, {"text": "$nodes.a.output"})], ["private_to_public"], id="a-file-is-posted"
        ),
        pytest.param(
            [FILE, ("b", ADD, {"x": "$nodes.a.output"}), ("c", FETCH, {"url": "http://x/{$nodes.b.output}"})],
            ["private_to_public"],
            id="through-another-tool-into-an-address",
        ),
        pytest.param(
            [PAGE, ("b", DELETE, {"name": "$nodes.a.output"})],
            ["untrusted_to_destructive"],
            id="a-page-decides-what-is-deleted",
        ),
        pytest.param(
            [PAGE, ("b", FETCH, {"url": "$nodes.a.output#/link"})],
            ["untrusted_directs"],
            id="a-page-says-where-next",
        ),
        pytest.param([PAGE, ("b", ADD, {"x": "$nodes.a.output"})], [], id="into-a-calculation"),
        pytest.param([FILE, ("b", DELETE, {"path": "$nodes.a.output"})], [], id="within-one-server"),
        pytest.param([FILE, ("b", POST, {"text": "hello"})], [], id="no-edge-no-flow"),
    ],
)
def test_a_forbidden_flow_is_found_and_named(nodes, rules):
    assert [flow.rule for flow in check_flows(workflow(*nodes), LABELS)] == rules


def test_a_condition_and_a_list_carry_data_too():
    planned = workflow(FILE, ("b", POST, {"text": "x"}))
    for change in ({"when": "$nodes.a.output"}, {"for_each": "$nodes.a.output"}):
        node = planned.nodes[1].model_copy(update=change)
        assert [flow.rule for flow in check_flows(planned.replacing(node), LABELS)] == ["private_to_public"]


def test_a_granted_pair_is_allowed_and_no_other():
    planned = workflow(FILE, ("b", POST, {"text": "$nodes.a.output"}))
    granted = LabelTable(granted={"files/read_*": ("chat/*",)})
    assert check_flows(planned, LABELS, granted) == ()
    assert check_flows(planned, LABELS, LabelTable(granted={"files/read_file": ("web/*",)}))


def tool(name: str, description: str = "", arguments: tuple[str, ...] = (), **hints: bool) -> Tool:
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in arguments}}
    return Tool(ToolId("s", name), schema, description=description, annotations=Annotations(**hints))


@pytest.mark.parametrize(
    ("given", "effect", "labels"),
    [
        pytest.param(tool("add", "Add two numbers"), Effect.PURE, set(), id="pure"),
        pytest.param(tool("read_file", "Read a file"), Effect.READ, {Label.PRIVATE}, id="a-file"),
        pytest.param(
            tool("fetch", "Fetch a web page", ("url",)),
            Effect.READ,
            {Label.UNTRUSTED, Label.PUBLIC_SINK},
            id="the-web",
        ),
        pytest.param(
            tool("send_email", "Send an email", ("to",)),
            Effect.WRITE,
            {Label.PRIVATE, Label.PUBLIC_SINK, Label.DESTRUCTIVE},
            id="sending",
        ),
        pytest.param(
            tool("post", "Post it", destructive=False, open_world=False),
            Effect.WRITE,
            set(),
            id="closed-and-sparing",
        ),
        pytest.param(tool("now", "The time"), Effect.READ, set(), id="a-clock"),
    ],
)
def test_labels_follow_from_class_annotations_and_words(given, effect, labels):
    found = labels_of(given, effect)
    assert found >= labels
    assert not (found - labels) & {Label.PUBLIC_SINK, Label.DESTRUCTIVE}


def test_an_operators_labels_win_and_an_exact_name_over_a_pattern():
    table = LabelTable({"s": {"*": frozenset(), "send_*": frozenset({Label.PRIVATE})}})
    assert labels_of(tool("send_email", "Send"), Effect.WRITE, table) == {Label.PRIVATE}
    assert labels_of(tool("other", "Send"), Effect.WRITE, table) == frozenset()


def test_what_a_write_gives_back_is_no_text_of_strangers():
    words = "Connect to a database; check_same_thread as in a web page"
    assert Label.UNTRUSTED not in labels_of(tool("connect", words), Effect.WRITE)
    assert Label.UNTRUSTED in labels_of(tool("connect", words), Effect.UNKNOWN)
    assert Label.UNTRUSTED in labels_of(tool("list_entries", "Entries of a news feed"), Effect.READ)
