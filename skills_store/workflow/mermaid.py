"""Draws a workflow as Mermaid text: inputs, nodes and outputs, with the edges that carry data or order."""

from __future__ import annotations

from skills_store.workflow.graph import data_dependencies, dependencies, output_nodes
from skills_store.workflow.model import Node, Workflow
from skills_store.workflow.scan import node_references

__all__ = ["render_mermaid"]

_LONGEST_LABEL = 80
_QUOTED = str.maketrans({'"': "#quot;", "<": "#lt;", ">": "#gt;", "\n": " ", "\r": " ", "`": "'"})


def render_mermaid(workflow: Workflow) -> str:
    """Return a flowchart: solid edges carry data, dotted ones only order."""
    data, every = data_dependencies(workflow), dependencies(workflow)
    lines = ["flowchart TD"]
    read = {f.reference.name for n in workflow for f in node_references(n) if f.reference.root == "inputs"}
    if read:
        lines.append(f"  in_([{_label(', '.join(sorted(read)))}])")
    lines += [f"  n_{node.id}[{_label(_text(node))}]" for node in workflow.nodes]
    if workflow.outputs:
        lines.append(f"  out_([{_label(', '.join(workflow.outputs))}])")
    for node in workflow.nodes:
        lines += [f"  n_{before} --> n_{node.id}" for before in sorted(data[node.id])]
        lines += [f"  n_{before} -.-> n_{node.id}" for before in sorted(every[node.id] - data[node.id])]
        if any(found.reference.root == "inputs" for found in node_references(node)):
            lines.append(f"  in_ --> n_{node.id}")
    lines += [f"  n_{node} --> out_" for node in sorted(output_nodes(workflow)) if workflow.outputs]
    return "\n".join(lines) + "\n"


def _text(node: Node) -> str:
    notes = [node.id, node.target]
    if node.for_each is not None:
        notes.append("for each")
    if node.when is not None:
        notes.append("when")
    return " · ".join(notes)


def _label(text: str) -> str:
    shown = text if len(text) <= _LONGEST_LABEL else f"{text[: _LONGEST_LABEL - 1]}…"
    return f'"{shown.translate(_QUOTED)}"'
