"""Draws a workflow as a Mermaid flowchart: nodes, and what flows between them."""

from __future__ import annotations

from catalog.plain_text import plain_text
from skills_store.workflow.graph import data_dependencies, output_nodes, reaching_inputs
from skills_store.workflow.model import Node, Workflow
from skills_store.workflow.references import Found
from skills_store.workflow.scan import node_references

__all__ = ["render_mermaid"]

_LONGEST_LABEL = 60


def render_mermaid(workflow: Workflow) -> str:
    """Return the text of a flowchart; any workflow has one, a cyclic one included."""
    reads = data_dependencies(workflow)
    lines = ["flowchart LR"]
    lines += [f"  {_id(node.id)}{_shape(node)}" for node in workflow]
    if reaching_inputs(workflow):
        lines.append("  inputs([inputs])")
    lines.append("  outputs([outputs])")
    for node in workflow:
        if names := _inputs(node):
            lines.append(f'  inputs -- "{_text(", ".join(names))}" --> {_id(node.id)}')
        lines += [f"  {_id(other)} --> {_id(node.id)}" for other in sorted(reads[node.id])]
        lines += [f"  {_id(other)} -.-> {_id(node.id)}" for other in node.after if other in reads]
    lines += [f"  {_id(node)} --> outputs" for node in sorted(output_nodes(workflow))]
    return "\n".join(lines) + "\n"


def _id(node: str) -> str:
    """Return an id that is no keyword of the language, such as `end`."""
    return f"n_{node}"


def _shape(node: Node) -> str:
    manner = " (each)" if node.for_each is not None else " (if)" if node.when is not None else ""
    label = f'"{_text(f"{node.id}: {node.target}{manner}")}"'
    return f"[[{label}]]" if node.tool is None else f"[{label}]"


def _inputs(node: Node) -> list[str]:
    found = [one.reference for one in node_references(node) if isinstance(one, Found)]  # pyright: ignore[reportUnnecessaryIsInstance]
    return sorted({reference.name for reference in found if reference.root == "inputs"})


def _text(text: str) -> str:
    plain = plain_text(" ".join(text.split()), _LONGEST_LABEL)
    return plain.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
