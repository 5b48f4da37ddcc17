"""The canonical shape of a workflow: what is left when ids, order, input names and literals are gone.

Nodes and inputs are coloured by what they are, what they read and who reads them, until no colour
splits further; numbers then follow the data, the smallest colour first. Nodes that still tie are
alike in every way the colours see, and are told apart by the numbers of what they read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b

from pydantic import JsonValue

from catalog.canonical import canonical_json, digest
from skills_store.workflow.bounds import json_type
from skills_store.workflow.model import Node, Workflow
from skills_store.workflow.references import Found, Reference, is_selector
from skills_store.workflow.scan import scan

__all__ = ["canonical_shape"]

Vertex = tuple[str, str]
"""`("nodes", id)` or `("inputs", name)`."""
Naming = Callable[[Reference], JsonValue]


def canonical_shape(workflow: Workflow) -> dict[str, JsonValue]:
    """Return the shape as JSON; equal for workflows of one family."""
    numbers = _Numbering(workflow).numbers()

    def numbered(reference: Reference) -> JsonValue:
        return numbers.get((reference.root, reference.name), "unknown")

    nodes: list[JsonValue] = []
    for node in sorted(workflow.nodes, key=lambda node: numbers["nodes", node.id]):
        after: list[JsonValue] = [*sorted(numbers["nodes", other] for other in _known_after(node, workflow))]
        nodes.append({**_node_shape(node, numbered), "after": after})
    outputs = {name: shape(value, numbered) for name, value in workflow.outputs.items()}
    return {"nodes": nodes, "outputs": outputs}


def shape(value: JsonValue, name: Naming) -> JsonValue:
    """Return a value with its references named by `name` and everything else by its JSON type."""
    found = list(scan(value))
    if not any(isinstance(part, Found) for part in found):
        literal = value["$literal"] if isinstance(value, dict) and set(value) == {"$literal"} else value
        return json_type(literal)
    match value:
        case str():
            references = [part.reference for part in found if isinstance(part, Found)]
            named: list[JsonValue] = [_named(reference, name) for reference in references]
            return {"$reference": named} if value.startswith("$") else {"$template": named}
        case dict() if is_selector(value):
            parts = {key: shape(value[key], name) for key in ("context", "with") if key in value}
            return {"$selector": value["selector"], **parts}
        case dict():
            return {key: shape(value[key], name) for key in sorted(value)}
        case list():
            return [shape(item, name) for item in value]
        case _:
            return json_type(value)


def _named(reference: Reference, name: Naming) -> JsonValue:
    return [reference.root, name(reference), reference.pointer]


def _node_shape(node: Node, name: Naming) -> dict[str, JsonValue]:
    return {
        "calls": node.target if node.code is None else digest(node.code.model_dump(mode="json")),
        "arguments": {key: shape(node.arguments[key], name) for key in sorted(node.arguments)},
        "for_each": shape(node.for_each, name),
        "when": shape(node.when, name),
    }


def _known_after(node: Node, workflow: Workflow) -> set[str]:
    return {other for other in node.after if workflow.node(other) is not None}


@dataclass(frozen=True, slots=True)
class _Use:
    """One vertex read at one place of another, or of the outputs."""

    source: Vertex
    reader: Vertex
    place: str


class _Numbering:
    """Colours the vertices of one workflow and numbers them."""

    def __init__(self, workflow: Workflow) -> None:
        self._nodes: list[Vertex] = [("nodes", node.id) for node in workflow.nodes]
        known = set(self._nodes)
        self._uses = [u for u in _uses(workflow) if u.source[0] == "inputs" or u.source in known]
        local = {("nodes", n.id): _digest(_node_shape(n, _anonymous)) for n in workflow.nodes}
        inputs = {use.source: _digest("input") for use in self._uses if use.source[0] == "inputs"}
        self._reads: dict[Vertex, list[_Use]] = {vertex: [] for vertex in (*local, *inputs)}
        self._read_by: dict[Vertex, list[_Use]] = {vertex: [] for vertex in (*local, *inputs)}
        for use in self._uses:
            self._read_by[use.source].append(use)
            if use.reader in self._reads:
                self._reads[use.reader].append(use)
        self._colours = self._refined(local | inputs)

    def numbers(self) -> dict[Vertex, int]:
        """Return the number of every node and of every input that is read, each counted from 0."""
        numbers: dict[Vertex, int] = {}
        waiting = list(self._nodes)
        while waiting:
            ready = [vertex for vertex in waiting if self._is_ready(vertex, numbers)] or waiting
            chosen = min(ready, key=lambda vertex: self._rank(vertex, numbers))
            self._number_inputs(chosen, numbers)
            numbers[chosen] = len(self._nodes) - len(waiting)
            waiting.remove(chosen)
        self._number_inputs(("outputs", ""), numbers)
        return numbers

    def _is_ready(self, vertex: Vertex, numbers: dict[Vertex, int]) -> bool:
        return all(use.source[0] == "inputs" or use.source in numbers for use in self._reads[vertex])

    def _rank(self, vertex: Vertex, numbers: dict[Vertex, int]) -> tuple[str, list[int]]:
        read = sorted((use.place, numbers.get(use.source, len(numbers))) for use in self._reads[vertex])
        return self._colours[vertex], [number for _, number in read]

    def _number_inputs(self, reader: Vertex, numbers: dict[Vertex, int]) -> None:
        read = [use for use in self._uses if use.reader == reader and use.source[0] == "inputs"]
        for use in sorted(read, key=lambda use: (use.place, self._colours[use.source])):
            numbers.setdefault(use.source, sum(1 for root, _ in numbers if root == "inputs"))

    def _refined(self, colours: dict[Vertex, str]) -> dict[Vertex, str]:
        kinds = len(set(colours.values()))
        while kinds < len(colours):
            finer = {vertex: self._seen_from(vertex, colours) for vertex in colours}
            if len(set(finer.values())) == kinds:
                return finer
            colours, kinds = finer, len(set(finer.values()))
        return colours

    def _seen_from(self, vertex: Vertex, colours: dict[Vertex, str]) -> str:
        reads = sorted([use.place, colours[use.source]] for use in self._reads[vertex])
        read_by = sorted([use.place, colours.get(use.reader, "outputs")] for use in self._read_by[vertex])
        return _digest([colours[vertex], [*reads], [*read_by]])


def _uses(workflow: Workflow) -> Iterator[_Use]:
    for node in workflow.nodes:
        reader = ("nodes", node.id)
        value: JsonValue = {"arguments": node.arguments, "for_each": node.for_each, "when": node.when}
        for use in _reads(value, reader):
            if use.source != reader:
                yield use
        for other in node.after:
            if other != node.id:
                yield _Use(("nodes", other), reader, "after")
    yield from _reads(workflow.outputs, ("outputs", ""))


def _reads(value: JsonValue, reader: Vertex) -> Iterator[_Use]:
    seen: Counter[str] = Counter()
    for found in scan(value):
        if isinstance(found, Found) and found.reference.root != "item":
            place = f"{found.pointer} {seen[found.pointer]} {found.reference.pointer}"
            seen[found.pointer] += 1
            yield _Use((found.reference.root, found.reference.name), reader, place)


def _anonymous(_reference: Reference) -> JsonValue:
    return None


def _digest(value: object) -> str:
    return blake2b(canonical_json(value), digest_size=12).hexdigest()
