"""Restoring an order without data: what must be finished on a server before what.

Paper: EvoFlux (step reordering). Differs: data dependencies are kept by construction; only
`after` moves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from catalog.similarity import words
from server.evolution.proposal import Proposal, propose_one
from server.planning.view import View
from skills_store.workflow.edits import Edit, Reorder
from skills_store.workflow.graph import ancestors
from skills_store.workflow.model import Node

__all__ = ["propose_order", "propose_waits"]

_PHASES: tuple[frozenset[str], ...] = (
    frozenset({"connect", "open", "begin", "start", "init", "login"}),
    frozenset({"create", "define", "register", "make", "new", "alter"}),
    frozenset(
        {"insert", "write", "load", "add", "update", "set", "import", "append", "put", "execute_many", "many"}
    ),
    frozenset(
        {"select", "read", "query", "get", "list", "count", "fetch", "find", "describe", "export", "show"}
    ),
    frozenset({"delete", "drop", "clear", "remove"}),
    frozenset({"commit", "close", "disconnect", "end", "stop", "logout"}),
)
_SQL = re.compile(r"^\s*(create|alter|insert|update|select|with|delete|drop)\b", re.IGNORECASE)
_SQL_PHASE = {
    "create": 1,
    "alter": 1,
    "insert": 2,
    "update": 2,
    "select": 3,
    "with": 3,
    "delete": 4,
    "drop": 4,
}


def propose_order(view: View, *, cost: float) -> Iterator[Proposal]:
    """Yield, per server that keeps state, its nodes put in the order their verbs say."""
    servers = dict.fromkeys(node.tool.server for node in view.workflow.nodes if node.tool)
    for server in servers:
        nodes = [n for n in view.workflow.nodes if n.tool and n.tool.server == server]
        stateful = [n for n in nodes if n.tool and not view.world.effect(n.tool).is_free]
        if not stateful or len(nodes) < 2:
            continue
        edits = _chain(view, sorted(nodes, key=lambda n: (phase(n), view.workflow.index(n.id))))
        if edits:
            yield Proposal(edits, cost)


def _chain(view: View, ordered: list[Node]) -> tuple[Edit, ...]:
    inside = {node.id for node in ordered}
    edits: list[Edit] = []
    for before, node in zip([None, *ordered], ordered, strict=False):
        outside = tuple(i for i in node.after if i not in inside)
        wanted = (*outside, before.id) if before and before.id not in _data(view, node) else outside
        if set(wanted) != set(node.after):
            because = f"{node.id!r} comes after {before.id!r} by what they do" if before else "comes first"
            edits.append(Reorder(node=node.id, after=wanted, because=because))
    return _loosened_first(edits, view)


def _loosened_first(edits: list[Edit], view: View) -> tuple[Edit, ...]:
    """Return the edits with, before them, a loosening of each node whose old waits could close a cycle."""
    loosened: list[Edit] = [
        Reorder(node=edit.node, after=())
        for edit in edits
        if isinstance(edit, Reorder) and (node := view.workflow.node(edit.node)) and node.after
    ]
    return (*loosened, *edits)


def _data(view: View, node: Node) -> frozenset[str]:
    return view.edges.get(node.id, frozenset()) - frozenset(node.after)


def phase(node: Node) -> int:
    """Return when in the life of a stateful server a node's call belongs, 0 first."""
    texts = [value for value in node.arguments.values() if isinstance(value, str)]
    for text in texts:
        if match := _SQL.match(text):
            return _SQL_PHASE[match[1].lower()]
    verbs = words(node.tool.tool) if node.tool else ()
    for verb in verbs:
        for number, names in enumerate(_PHASES):
            if verb in names:
                return number
    return 3


def propose_waits(view: View, node: Node, message: str) -> Iterator[Proposal]:
    """Yield waits of a failing node for others on its server, those its error speaks of first."""
    if node.tool is None:
        return
    before = ancestors(view.workflow, node.id)
    for other in view.workflow.nodes:
        same_server = other.tool is not None and other.tool.server == node.tool.server
        if not same_server or other.id == node.id or other.id in before:
            continue
        cost = (
            1.2 - (0.8 if _speaks_of(message, other) else 0.0) + (0.3 if phase(other) > phase(node) else 0.0)
        )
        because = f"{node.id!r} fails until {other.id!r} is done"
        edits: list[Edit] = []
        if node.id in ancestors(view.workflow, other.id) and node.id in other.after:
            kept = tuple(i for i in other.after if i != node.id)
            edits.append(Reorder(node=other.id, after=kept, because=because))
        edits.append(Reorder(node=node.id, after=(*node.after, other.id), because=because))
        yield Proposal(tuple(edits), cost) if len(edits) > 1 else propose_one(edits[0], cost)


def _speaks_of(message: str, other: Node) -> bool:
    named = set(re.findall(r"\w{4,}", message.lower()))
    written = set(re.findall(r"\w{4,}", json.dumps([*other.arguments.values()]).lower()))
    return bool(named & written)
