"""Weak plans that are repaired: a compact model's, read from a tape; those made without one; simulated ones.

A recorded plan is what the model said, read again today; the tools it was shown are told by its way.
Whatever it was shown, it is checked, run and repaired in the task's whole catalog.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from catalog.effects import EffectTable
from catalog.search import ToolIndex
from catalog.tools import Snapshot
from server.backends.backend import Backend
from server.bench.damage import DamageKind
from server.bench.evolution_mix import simulate
from server.bench.evolution_report import DETERMINISTIC, FLOOR, SIMULATED
from server.bench.planning_tape import Tape
from server.planning.conversation import MeteredBackend
from server.planning.deterministic import plan_deterministically
from server.planning.heuristic_floor import plan_heuristic_floor
from server.planning.model_planner import ModelPlanner, Way
from server.planning.sequence import in_sequence
from server.planning.view import World
from server.planning.wanted import wanted_outputs
from server.provisioning.demo_files import FIXTURES
from server.provisioning.task_file import BenchTask
from server.verification import Checks
from skills_store.workflow.model import Workflow, parse_workflow

__all__ = ["WAYS", "Place", "PlanWay", "WeakPlan", "recorded_plan", "simulated_plan"]

_ANSWER_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class PlanWay:
    """How a model was asked for plans."""

    name: str
    """As the tape has it."""
    way: Way
    among_others: bool
    """Whether the other servers of the catalog stood before it; else the task's own alone."""


WAYS: tuple[PlanWay, ...] = (
    PlanWay("constrained", "constrained", among_others=False),
    PlanWay("free", "free", among_others=False),
    PlanWay("constrained, ten others", "constrained", among_others=True),
    PlanWay("free, ten others", "free", among_others=True),
)
"""The first two are the planning benchmark's, whose recording is read."""


@dataclass(frozen=True, slots=True)
class Place:
    """A task where it runs: its catalog, and what it may do there."""

    task: BenchTask
    catalog: Snapshot
    effects: EffectTable
    fixtures: str

    @property
    def checks(self) -> Checks:
        """What makes a run right."""
        return Checks(self.task.assertions)

    def world(self, catalog: Snapshot | None = None) -> World:
        """Return the world of planners and searches; None: with the whole catalog."""
        known = self.catalog if catalog is None else catalog
        return World(self.task.task, self.task.inputs, known, self.effects, ToolIndex(known), planned=True)

    @property
    def own(self) -> Snapshot:
        """The tools of the task's own servers."""
        return Snapshot.of(*(tool for tool in self.catalog if tool.id.server in self.task.servers))


@dataclass(frozen=True, slots=True)
class WeakPlan:
    """A plan that somebody made for a task, well or not."""

    place: Place
    source: str
    workflow: Workflow | None
    """None: what the model said could not be read as a plan."""
    tokens: int = 0
    """Of the model, prompt and answer together."""
    seconds: float = 0.0
    """That the model took, when it was recorded."""
    kinds: tuple[str, ...] = ()
    """What was done to a simulated one."""
    simulated: bool = False

    @property
    def key(self) -> str:
        """Names the plan among all."""
        return f"{self.source}/{self.place.task.id}"


async def recorded_plan(place: Place, way: PlanWay, tape: Tape, live: Backend | None) -> WeakPlan:
    """Return the plan a model made, off the tape, else by asking it.

    Raises:
        NotRecorded: it is not on the tape and nobody can be asked.
        BackendError: the model cannot be asked.
    """
    world = place.world(None if way.among_others else place.own)
    taped = tape.at(way.name, place.task.id, live, {FIXTURES: place.fixtures})
    model = MeteredBackend(taped)
    planner = ModelPlanner(model, world, wanted_outputs(place.checks), way=way.way)
    [reading] = await planner.propose(deadline_seconds=_ANSWER_SECONDS)
    return WeakPlan(
        place=place,
        source=way.name,
        workflow=None if reading.workflow is None else in_sequence(reading.workflow, world),
        tokens=model.usage.total,
        seconds=sum(turn.completion.seconds for turn in model.turns),
    )


def plans_without_model(place: Place) -> list[WeakPlan]:
    """Return the plans of the paper's heuristic floor and of our planner that needs no model."""
    world, wanted = place.world(), wanted_outputs(place.checks)
    drafts = plan_deterministically(world, wanted)
    return [
        WeakPlan(place, FLOOR, plan_heuristic_floor(world, wanted, servers=place.task.servers)),
        WeakPlan(place, DETERMINISTIC, drafts[0] if drafts else None),
    ]


def simulated_plan(place: Place, strength: str, mix: Mapping[DamageKind, int], seed: int) -> WeakPlan | None:
    """Return the reference of a task, damaged; None where there is no place for so many faults."""
    found = simulate(place.task, place.catalog, strength, mix, seed)
    if found is None:
        return None
    return WeakPlan(
        place=place,
        source=f"{SIMULATED}{strength}",
        workflow=parse_workflow(found.workflow),
        kinds=tuple(str(kind) for kind in found.kinds),
        simulated=True,
    )
