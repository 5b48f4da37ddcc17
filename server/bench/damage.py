"""Seeded damage: a reference workflow in, a broken one out, with what was done to it.

Whether a damaged workflow really fails is found by running it (`server.bench.repair_bench`); what
still passes is not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from pydantic import JsonValue

from catalog.tools import Snapshot
from server.bench.argument_injuries import misnamed, missing, wrong_types, wrong_values
from server.bench.flow_injuries import dangling_references, wrong_orders
from server.bench.injury import Injury, Scene
from server.bench.lost import lost_values
from server.bench.tool_injuries import extra_steps, missing_steps, wrong_tools
from server.provisioning.task_file import BenchTask
from skills_store.workflow.model import Workflow, parse_workflow

__all__ = ["FLOOR", "MEASURED", "DamageKind", "Damaged", "damage", "draw_kinds", "share_out"]


class DamageKind(StrEnum):
    """What is done to a workflow. In the order in which several are applied to one."""

    MISSING_STEP = "missing_step"
    WRONG_ORDER = "wrong_order"
    WRONG_TOOL = "wrong_tool"
    DANGLING_REFERENCE = "dangling_reference"
    WRONG_TYPE = "wrong_type"
    WRONG_VALUE = "wrong_value"
    MISNAMED_ARGUMENT = "misnamed_argument"
    MISSING_ARGUMENT = "missing_argument"
    EXTRA_STEP = "extra_step"


MEASURED: dict[DamageKind, int] = {
    DamageKind.EXTRA_STEP: 97,
    DamageKind.WRONG_TOOL: 48,
    DamageKind.WRONG_VALUE: 48,
    DamageKind.DANGLING_REFERENCE: 38,
    DamageKind.WRONG_ORDER: 29,
    DamageKind.WRONG_TYPE: 7,
    DamageKind.MISSING_STEP: 5,
    DamageKind.MISNAMED_ARGUMENT: 0,
    DamageKind.MISSING_ARGUMENT: 0,
}
"""Faults counted in 190 recorded plans of models of 0.1 to 1.5 billion parameters; 131 plans were wrong.

Per wrong plan, tools planned and tools needed were compared as multisets: a surplus and a lacking
tool pair up as one wrong tool, what is left over is an extra or a missing step. Values: a wrong
value, or one outside of an enum or pattern. Dangling: a reference to a field, node or dependency
that is not there. Order: a dependency on a later node, on itself, or unsaid. Types: a schema's
`type` refused. Most of the plans were decoded under a grammar with the tools' schemas, which
cannot misname or leave out an argument: hence the two zeros, and `FLOOR`.
"""

FLOOR = 20
"""Least weight of a kind, so that the rare ones are measured as well."""

_INJURIES: dict[DamageKind, Callable[[Scene], Iterator[Injury]]] = {
    DamageKind.MISSING_STEP: missing_steps,
    DamageKind.WRONG_ORDER: wrong_orders,
    DamageKind.WRONG_TOOL: wrong_tools,
    DamageKind.DANGLING_REFERENCE: dangling_references,
    DamageKind.WRONG_TYPE: wrong_types,
    DamageKind.WRONG_VALUE: wrong_values,
    DamageKind.MISNAMED_ARGUMENT: misnamed,
    DamageKind.MISSING_ARGUMENT: missing,
    DamageKind.EXTRA_STEP: extra_steps,
}


@dataclass(frozen=True, slots=True)
class Damaged:
    """A broken workflow and how it came to be broken."""

    task: str
    """Id of the task."""
    kinds: tuple[DamageKind, ...]
    variants: tuple[str, ...]
    details: tuple[str, ...]
    """What was done, in order."""
    workflow: dict[str, JsonValue]
    alone: tuple[dict[str, JsonValue], ...]
    """The reference with each of the faults by itself, in order."""
    seed: int
    lost: tuple[str, ...] = ()
    """Values that were taken out and that neither task, inputs, workflow nor schemas say any more.

    A repair without a model has nowhere to take them from; such cases are counted all the same.
    """


def damage(
    task: BenchTask, snapshot: Snapshot, what: Sequence[DamageKind] | int, seed: int
) -> Damaged | None:
    """Return the task's reference workflow with faults put in, or None where one finds no place.

    Deterministic given its arguments. No two faults are put at the same node, so that each is
    there to be found.

    Args:
        task: must have a reference workflow.
        snapshot: the tools there are.
        what: the kinds to put in, or how many to draw.
        seed: of the dice.
    """
    dice = Random(f"{task.id}:{seed}")
    drawn = draw_kinds(what, dice) if isinstance(what, int) else tuple(what)
    kinds = tuple(sorted(drawn, key=list(DamageKind).index))
    scene = Scene(task.reference, snapshot)
    chosen = _chosen(scene, kinds, dice)
    workflow = None if chosen is None else _together(scene, kinds, chosen)
    if chosen is None or workflow is None:
        return None
    return Damaged(
        task=task.id,
        kinds=kinds,
        variants=tuple(injury.variant for injury in chosen),
        details=tuple(injury.detail for injury in chosen),
        workflow=workflow.to_json(),
        alone=tuple(injury.workflow.to_json() for injury in chosen),
        seed=seed,
        lost=lost_values(task, workflow, snapshot),
    )


def _chosen(scene: Scene, kinds: Sequence[DamageKind], dice: Random) -> list[Injury] | None:
    done: list[Injury] = []
    for kind in kinds:
        hurt = {injury.node for injury in done}
        places = [injury for injury in _INJURIES[kind](scene) if injury.node not in hurt]
        if not places:
            return None
        done.append(_choose(places, dice))
    return done


def _together(scene: Scene, kinds: Sequence[DamageKind], chosen: Sequence[Injury]) -> Workflow | None:
    """Return the workflow with all the injuries, None where one leaves no place for another."""
    workflow = scene.workflow
    for kind, wanted in zip(kinds, chosen, strict=True):
        there = _INJURIES[kind](Scene(workflow, scene.snapshot))
        found = next((injury for injury in there if injury.place == wanted.place), None)
        if found is None:
            return None
        workflow = parse_workflow(found.workflow.to_json())
    return workflow


def _choose(places: Sequence[Injury], dice: Random) -> Injury:
    """Draw the way first, then the node, then the place, so that none is drawn for being frequent."""
    variant = dice.choice(sorted({injury.variant for injury in places}))
    ways = [injury for injury in places if injury.variant == variant]
    node = dice.choice(sorted({injury.node or "" for injury in ways}))
    return dice.choice([injury for injury in ways if (injury.node or "") == node])


def _weight(kind: DamageKind) -> int:
    return max(FLOOR, MEASURED[kind])


def draw_kinds(count: int, dice: Random) -> tuple[DamageKind, ...]:
    """Return different kinds, drawn by how often they were measured.

    Raises:
        ValueError: there are not that many kinds.
    """
    if count > len(MEASURED):
        raise ValueError(f"there are only {len(MEASURED)} kinds of damage")
    left = list(MEASURED)
    drawn: list[DamageKind] = []
    for _ in range(count):
        kind = dice.choices(left, weights=[_weight(k) for k in left])[0]
        left.remove(kind)
        drawn.append(kind)
    return tuple(drawn)


def share_out(count: int) -> list[DamageKind]:
    """Return that many kinds in the measured mix, by largest remainder; every kind when there is room."""
    total = sum(_weight(kind) for kind in MEASURED)
    exact = {kind: count * _weight(kind) / total for kind in MEASURED}
    given = {kind: int(share) for kind, share in exact.items()}
    by_remainder = sorted(MEASURED, key=lambda kind: given[kind] - exact[kind])
    for kind in by_remainder[: count - sum(given.values())]:
        given[kind] += 1
    return [kind for kind in DamageKind for _ in range(given[kind])]
