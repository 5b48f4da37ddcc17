"""Which faults a model's plans have, counted against reference workflows, and a simulator that draws them.

Kinds are those of `server.bench.damage`, so that what was counted can be done to a workflow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import Random

from pydantic import JsonValue

from catalog.tools import Snapshot, ToolId
from server.bench.damage import Damaged, DamageKind, damage
from server.provisioning.task_file import BenchTask
from skills_store.workflow.check import check_workflow
from skills_store.workflow.graph import data_dependencies
from skills_store.workflow.model import Node, Workflow
from skills_store.workflow.references import pointer_parts
from skills_store.workflow.scan import Unreadable, node_values, scan

__all__ = ["STRENGTHS", "faults_against", "measured_mix", "simulate"]

STRENGTHS: dict[str, int] = {"mild": 1, "middle": 2, "strong": 4}
"""Names of the simulator's strengths, and how many faults each puts into a plan."""
_TRIES = 12
_STATIC: dict[str, DamageKind] = {
    "dangling_reference": DamageKind.DANGLING_REFERENCE,
    "missing_argument": DamageKind.MISSING_ARGUMENT,
    "unexpected_argument": DamageKind.MISNAMED_ARGUMENT,
    "cycle": DamageKind.WRONG_ORDER,
}


def faults_against(plan: Workflow, reference: Workflow, snapshot: Snapshot) -> Counter[DamageKind]:
    """Return how often each kind of fault is in a plan.

    Tools planned and needed are compared as multisets: a surplus and a lacking one pair up as one wrong
    tool, what is left over is an extra or a missing step. Steps of the same tool are compared in order:
    other literals are wrong values (types, where the schema refuses them), and a step that reads steps of
    other tools than the reference does is in the wrong order. What the static check says comes on top, and
    a key read of an answer dangles that neither the tool declares nor the reference reads of that tool.
    """
    found = _tools(plan, reference)
    for fault in check_workflow(plan, snapshot):
        if fault.kind in _STATIC:
            found[_STATIC[fault.kind]] += 1
        elif fault.kind == "invalid_argument":
            found[DamageKind.WRONG_TYPE] += 1
    found[DamageKind.DANGLING_REFERENCE] += _unknown_keys(plan, reference, snapshot)
    for mine, meant in _pairs(plan, reference):
        found[DamageKind.WRONG_VALUE] += _wrong_values(mine, meant)
        found[DamageKind.WRONG_ORDER] += _read_tools(mine, plan) != _read_tools(meant, reference)
    return +found


def _tools(plan: Workflow, reference: Workflow) -> Counter[DamageKind]:
    planned = Counter(node.tool for node in plan.nodes)
    needed = Counter(node.tool for node in reference.nodes)
    surplus, lacking = (planned - needed).total(), (needed - planned).total()
    wrong = min(surplus, lacking)
    return Counter(
        {
            DamageKind.WRONG_TOOL: wrong,
            DamageKind.EXTRA_STEP: surplus - wrong,
            DamageKind.MISSING_STEP: lacking - wrong,
        }
    )


def _pairs(plan: Workflow, reference: Workflow) -> Iterator[tuple[Node, Node]]:
    """Yield the steps of the same tool, in order."""
    tools = dict.fromkeys(node.tool for node in reference.nodes)
    for tool in tools:
        mine = [node for node in plan.nodes if node.tool == tool]
        meant = [node for node in reference.nodes if node.tool == tool]
        yield from zip(mine, meant, strict=False)


def _wrong_values(mine: Node, meant: Node) -> int:
    """Return how many arguments that both say have a literal that differs, or one for a reference."""
    shared = mine.arguments.keys() & meant.arguments.keys()
    return sum(_differ(mine.arguments[name], meant.arguments[name]) for name in shared)


def _differ(mine: JsonValue, meant: JsonValue) -> bool:
    if _is_read(mine) and _is_read(meant):
        return False  # what it reads is compared by tools
    if _is_input(mine) or _is_input(meant):
        return False  # a literal in place of an input is a narrower plan, not a wrong one
    return mine != meant


def _is_read(value: JsonValue) -> bool:
    return isinstance(value, dict | list) or (isinstance(value, str) and "$" in value)


def _is_input(value: JsonValue) -> bool:
    return isinstance(value, str) and value.startswith("$inputs.")


def _unknown_keys(plan: Workflow, reference: Workflow, snapshot: Snapshot) -> int:
    meant: dict[ToolId, set[str]] = {}
    for tool, key in _keys_read(reference):
        meant.setdefault(tool, set()).add(key)
    return sum(
        tool in meant and key not in meant[tool] | _declared(tool, snapshot) for tool, key in _keys_read(plan)
    )


def _keys_read(workflow: Workflow) -> Iterator[tuple[ToolId, str]]:
    """Yield the first key of each read of one answer, with the tool that gave it."""
    answering = {node.id: node.tool for node in workflow.nodes if node.for_each is None}
    values = [value for node in workflow.nodes for _, value in node_values(node)]
    for found in (one for value in [*values, dict(workflow.outputs)] for one in scan(value)):
        if isinstance(found, Unreadable) or found.reference.root != "nodes" or not found.reference.pointer:
            continue
        if (tool := answering.get(found.reference.name)) is not None:
            yield tool, pointer_parts(found.reference.pointer)[0]


def _declared(tool: ToolId, snapshot: Snapshot) -> set[str]:
    known = snapshot.get(tool)
    properties = (known.output_schema or {}).get("properties") if known is not None else None
    return set(properties) if isinstance(properties, dict) else set()


def _read_tools(node: Node, workflow: Workflow) -> Counter[ToolId | None]:
    by_id = {other.id: other.tool for other in workflow.nodes}
    return Counter(by_id.get(name) for name in data_dependencies(workflow)[node.id])


def measured_mix(
    plans: Iterable[tuple[Workflow, Workflow, Snapshot]],
) -> tuple[dict[DamageKind, int], float]:
    """Return how often each kind is in these plans, and the mean number of faults of a plan that has any.

    Args:
        plans: each with its reference and the tools there were.
    """
    counted = [faults_against(*plan) for plan in plans]
    total = sum(counted, Counter[DamageKind]())
    wrong = [one for one in counted if one.total()]
    mean = sum(one.total() for one in wrong) / len(wrong) if wrong else 0.0
    return {kind: total[kind] for kind in DamageKind}, mean


def simulate(
    task: BenchTask, snapshot: Snapshot, strength: str, mix: Mapping[DamageKind, int], seed: int
) -> Damaged | None:
    """Return the reference of a task with as many faults as a strength has, drawn from a mix.

    None where no draw finds places for all of them.
    """
    for attempt in range(_TRIES):
        dice = Random(f"{strength}:{task.id}:{seed}:{attempt}")
        kinds = _drawn(mix, min(STRENGTHS[strength], len(DamageKind)), dice)
        if found := damage(task, snapshot, kinds, seed * _TRIES + attempt):
            return found
    return None


def _drawn(mix: Mapping[DamageKind, int], count: int, dice: Random) -> Sequence[DamageKind]:
    """Draw different kinds, each by how often it was counted; those never counted only when none is left."""
    left = [kind for kind in DamageKind if mix.get(kind, 0)]
    drawn: list[DamageKind] = []
    while left and len(drawn) < count:
        kind = dice.choices(left, weights=[mix[k] for k in left])[0]
        left.remove(kind)
        drawn.append(kind)
    return drawn
