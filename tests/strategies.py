"""Hypothesis strategies for workflows and the edits of one, for every test that needs many of them."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

from catalog.tools import ToolId
from skills_store.workflow.edits import Edit, EditParameter, InsertNode, RemoveNode, Reorder, SwapTool
from skills_store.workflow.model import Node, Workflow
from skills_store.workflow.references import Found, Reference, escape_literal, map_references
from skills_store.workflow.scan import node_references, scan

NAMES = ("alpha", "beta", "gamma", "delta", "eps_1", "zeta")
ARGUMENTS = ("value", "from_unit", "to_unit", "a/b", "til~de")
INPUTS = ("city", "amount", "items")
TOOLS = tuple(ToolId(server, tool) for server in ("units", "tables") for tool in ("convert", "query", "sum"))

scalars = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=12)
scalars |= st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
pointers = st.sampled_from(["", "/total", "/rows/0", "/a~1b"])


@cache
def literals() -> st.SearchStrategy[Any]:
    """Values that stand for themselves, whatever they look like."""
    return json_values.map(escape_literal)


@cache
def references(earlier: tuple[str, ...], *, item: bool = False) -> st.SearchStrategy[str]:
    """Whole-string references to inputs, to some nodes and, in a mapped node, to the item."""
    roots = [f"$inputs.{name}" for name in INPUTS] + [f"$nodes.{name}.output" for name in earlier]
    roots += ["$item"] if item else []
    return st.tuples(st.sampled_from(roots), pointers).map(lambda parts: "#".join(p for p in parts if p))


@cache
def values(earlier: tuple[str, ...], *, item: bool = False) -> st.SearchStrategy[Any]:
    """Literals, references, templates, selectors, and lists and objects of them."""
    reference = references(earlier, item=item)
    template = st.tuples(st.sampled_from(["x", "a {b}", "{{$"]), reference).map(
        lambda parts: f"{parts[0]}{{{parts[1]}}}"
    )
    selector = reference.map(lambda text: {"context": text, "selector": "@", "type": "jmespath"})
    leaf = literals() | reference | template | selector
    return leaf | st.lists(leaf, max_size=2) | st.dictionaries(st.sampled_from(["k", "l"]), leaf, max_size=2)


@st.composite
def nodes(draw: st.DrawFn, node_id: str, earlier: tuple[str, ...]) -> Node:
    """One node that reads and comes after earlier ones only."""
    mapped = draw(st.booleans())
    names = draw(st.lists(st.sampled_from(ARGUMENTS), unique=True, max_size=3))
    return Node(
        id=node_id,
        tool=draw(st.sampled_from(TOOLS)),
        arguments={name: draw(values(earlier, item=mapped)) for name in names},
        for_each=draw(references(earlier)) if mapped else None,
        when=draw(st.none() | st.just("$inputs.city")),
        after=tuple(draw(st.lists(st.sampled_from(earlier), unique=True, max_size=2))) if earlier else (),
        timeout_seconds=draw(st.none() | st.just(5.0)),
    )


@st.composite
def workflows(draw: st.DrawFn, *, max_nodes: int = 5) -> Workflow:
    """A well-formed workflow without cycles; its nodes stand in any order in the document."""
    ids = NAMES[: draw(st.integers(1, max_nodes))]
    planned = [draw(nodes(node_id, ids[:index])) for index, node_id in enumerate(ids)]
    fed = {
        name: draw(st.sampled_from([f"$nodes.{node_id}.output" for node_id in ids]))
        for name in draw(st.lists(st.sampled_from(["total", "rows"]), unique=True, min_size=1))
    }
    return Workflow(
        name=draw(st.sampled_from(["one", "other"])),
        inputs={"type": "object", "properties": {name: {} for name in INPUTS}},
        nodes=tuple(draw(st.permutations(planned))),
        outputs=fed,
        description=draw(st.none() | st.just("words")),
    )


@st.composite
def edits(draw: st.DrawFn, workflow: Workflow) -> Edit:
    """An edit of any kind that names what is there, though it may be refused."""
    node = draw(st.sampled_from(workflow.nodes))
    others = tuple(other.id for other in workflow.nodes if other.id != node.id)
    kind = draw(
        st.sampled_from(["swap", "set", "rename", "remove_argument", "output", "insert", "remove", "order"])
    )
    names = sorted(node.arguments)
    if kind == "swap":
        arguments = {"query": draw(values(others))}
        return SwapTool(node=node.id, tool=draw(st.sampled_from(TOOLS)), arguments=arguments)
    if kind == "output":
        name = draw(st.sampled_from(sorted(workflow.outputs)))
        return EditParameter(node=None, pointer=f"/{name}", value=f"$nodes.{node.id}.output#/x")
    if kind == "insert":
        ids = tuple(other.id for other in workflow.nodes)
        planned = draw(nodes("inserted", ids))
        return InsertNode(planned=planned, position=draw(st.integers(0, len(ids))))
    if kind == "remove":
        return draw(removals(workflow, node))
    if kind == "order":
        after = draw(st.lists(st.sampled_from(others), unique=True)) if others else []
        return Reorder(node=node.id, after=tuple(after))
    if kind == "set" or not names:
        return EditParameter(
            node=node.id, pointer=f"/{draw(st.sampled_from(['value', 'new']))}", value=draw(values(()))
        )
    pointer = "/" + draw(st.sampled_from(names)).replace("~", "~0").replace("/", "~1")
    if kind == "rename":
        return EditParameter(node=node.id, pointer="/renamed", value=1, renamed_from=pointer)
    return EditParameter(node=node.id, pointer=pointer, remove=True)


@st.composite
def removals(draw: st.DrawFn, workflow: Workflow, node: Node) -> RemoveNode:
    """A removal in which everything that read the node reads another node, or an input."""
    found = [f for other in workflow.nodes if other.id != node.id for f in node_references(other)]
    found += [part for part in scan(workflow.outputs) if isinstance(part, Found)]
    read = {str(f.reference) for f in found if f.reference.root == "nodes" and f.reference.name == node.id}
    standing = [f"$nodes.{other.id}.output" for other in workflow.nodes if other.id != node.id]
    targets = st.sampled_from([*standing, "$inputs.city"])
    return RemoveNode(node=node.id, rewired={text: draw(targets) for text in sorted(read)})


def renamed(workflow: Workflow, names: dict[str, str], inputs: dict[str, str]) -> Workflow:
    """Return the workflow with nodes and inputs under other names."""

    def change(reference: Reference) -> Reference:
        known = names if reference.root == "nodes" else inputs
        return Reference(reference.root, known.get(reference.name, reference.name), reference.pointer)

    changed = tuple(
        node.model_copy(
            update={
                "id": names[node.id],
                "arguments": {key: map_references(value, change) for key, value in node.arguments.items()},
                "for_each": map_references(node.for_each, change),
                "when": map_references(node.when, change),
                "after": tuple(names[other] for other in node.after),
            }
        )
        for node in workflow.nodes
    )
    outputs = {key: map_references(value, change) for key, value in workflow.outputs.items()}
    return workflow.model_copy(update={"nodes": changed, "outputs": outputs})
