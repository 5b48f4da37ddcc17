"""Where data goes in a workflow that it should not: a static check over its edges, before any run.

A workflow is executed without a model, so that data never changes what is called; what is left to
check is which tool's answers reach which tool's arguments (DESIGN §8). What tools do with data is
`catalog.labels`; what follows from a finding belongs to admission and to the search.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from catalog.labels import Label, LabelTable, is_directing
from catalog.tools import ToolId
from skills_store.workflow.graph import data_dependencies
from skills_store.workflow.model import Node, Workflow
from skills_store.workflow.references import Found
from skills_store.workflow.scan import scan

__all__ = ["Flow", "FlowRule", "check_flows"]

FlowRule = Literal["private_to_public", "untrusted_to_destructive", "untrusted_directs"]
Labels = Mapping[ToolId, frozenset[Label]]

_SAYS: Mapping[FlowRule, str] = {
    "private_to_public": "private data of {source} reaches {sink}, which may send it away",
    "untrusted_to_destructive": "text of strangers from {source} reaches {sink}, which may destroy",
    "untrusted_directs": "text of strangers from {source} tells {sink} where to send or what to run",
}


@dataclass(frozen=True, slots=True)
class Flow:
    """Data that goes where it should not."""

    rule: FlowRule
    source: ToolId
    sink: ToolId
    node: str
    """The node whose arguments it reaches."""

    @property
    def message(self) -> str:
        """One sentence a person can decide by."""
        return _SAYS[self.rule].format(source=self.source, sink=self.sink)


def check_flows(workflow: Workflow, labels: Labels, granted: LabelTable | None = None) -> tuple[Flow, ...]:
    """Return every flow that a rule forbids and nobody granted, each pair of tools once per rule.

    Args:
        workflow: a graph without cycles.
        labels: of the tools it calls; one that is missing has none.
        granted: pairs of source and sink that an operator allows.
    """
    found: dict[tuple[FlowRule, ToolId, ToolId], Flow] = {}
    for node in workflow.nodes:
        flows = (flow for tool in node.tools for flow in _into(node, tool, workflow, labels))
        for flow in flows:
            if granted is None or not granted.grants(flow.source, flow.sink):
                found.setdefault((flow.rule, flow.source, flow.sink), flow)
    return tuple(found.values())


def _into(node: Node, sink: ToolId, workflow: Workflow, labels: Labels) -> Iterator[Flow]:
    mine = labels.get(sink, frozenset())
    for source in _sources(_reads(node) | _own(node), workflow):
        theirs = labels.get(source, frozenset())
        if Label.PRIVATE in theirs and Label.PUBLIC_SINK in mine and source.server != sink.server:
            yield Flow("private_to_public", source, sink, node.id)
        if Label.UNTRUSTED in theirs and Label.DESTRUCTIVE in mine:
            yield Flow("untrusted_to_destructive", source, sink, node.id)
    if mine & {Label.PUBLIC_SINK, Label.DESTRUCTIVE}:
        for source in _sources(_directing_reads(node) | _own(node), workflow):
            if Label.UNTRUSTED in labels.get(source, frozenset()):
                yield Flow("untrusted_directs", source, sink, node.id)


def _sources(nodes: frozenset[str], workflow: Workflow) -> list[ToolId]:
    """Return the tools whose answers reach nodes or stand in them, through whatever lies between."""
    edges = data_dependencies(workflow)
    reached, waiting = set[str](), [*nodes]
    while waiting:
        node_id = waiting.pop()
        if node_id not in reached:
            reached.add(node_id)
            waiting.extend(edges.get(node_id, ()))
    tools = (tool for node in workflow.nodes if node.id in reached for tool in node.tools)
    return list(dict.fromkeys(tools))


def _own(node: Node) -> frozenset[str]:
    """Return the node itself where it is code: what one of its tools gives may reach any other."""
    return frozenset({node.id}) if node.code is not None else frozenset()


def _reads(node: Node) -> frozenset[str]:
    return _named([node.arguments, node.for_each, node.when])


def _directing_reads(node: Node) -> frozenset[str]:
    """Return the nodes that are read by arguments that say where to or what to do."""
    return _named([value for name, value in node.arguments.items() if is_directing(name)])


def _named(values: Sequence[JsonValue]) -> frozenset[str]:
    found = [one for value in values for one in scan(value)]
    references = [one.reference for one in found if isinstance(one, Found)]
    return frozenset(reference.name for reference in references if reference.root == "nodes")
