"""What the evolution benchmark found, as data. Rendering it is `server.bench.evolution_table`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue

from server.bench.damage import DamageKind
from server.bench.evolution_world import Part
from server.bench.planning_tape import About

__all__ = ["EvolutionReport", "Group", "McpBenchRow", "Mix", "PlanOutcome", "Row", "groups_of", "rows_of"]


REACT_SOURCE = "ReAct"
FLOOR = "heuristic floor"
DETERMINISTIC = "deterministic planner"
SIMULATED = "simulated, "
"""Sources of plans; a simulated one's ends in its strength, and a recorded one is a way of asking."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PlanOutcome(_Model):
    """What became of one plan under one condition: of the best candidate, where that is not the plan."""

    task: str
    part: Part
    source: str
    """Whose plan: a way of asking the model, or a strength of the simulator."""
    condition: str
    simulated: bool
    kinds: tuple[str, ...] = ()
    """What was done to a simulated one."""
    readable: bool
    static_ok: bool = False
    executed_ok: bool = False
    verified: bool = False
    right: bool | None = None
    """On held-out inputs; None: not verified, there are none, or no workflow came of it."""
    calls: int = 0
    candidates: int = 0
    plan_tokens: int = 0
    plan_seconds: float = 0.0
    """That the model took for the plan, when it was recorded."""
    search_tokens: int = 0
    seconds: float = 0.0
    """Of what was done with the plan, on this machine now."""
    stopped: str | None = None
    """Which budget ended it; None: it ended by itself."""
    crashed: str | None = None
    """The error a search ended with instead of a result: a defect of ours. None: it gave one."""
    by: str = ""
    """Who made the best candidate."""
    faults: tuple[str, ...] = ()
    """Left of the best candidate."""
    base: dict[str, JsonValue] | None = None
    best: dict[str, JsonValue] | None = None

    @property
    def tokens(self) -> int:
        """Of plan and search together."""
        return self.plan_tokens + self.search_tokens


class Row(_Model):
    """Some plans under one condition."""

    condition: str
    plans: int
    static_ok: int
    executed_ok: int
    verified: int
    best: tuple[int, int]
    """Verified, and how many, of the search part."""
    valid_best: tuple[int, int]
    """The same of the validation part."""
    right: int
    judged: int
    """Verified plans whose tasks have held-out inputs."""
    calls: float
    """Mean per plan."""
    tokens: float
    seconds: float
    calls_per_solved: float | None
    """Of all plans together, by verified ones; None: none is."""
    tokens_per_solved: float | None
    seconds_per_solved: float | None


class Group(_Model):
    """Rows that are of the same plans and may be compared."""

    name: str
    rows: tuple[Row, ...]


class Mix(_Model):
    """Faults counted in recorded plans."""

    plans: int
    wrong: int
    counts: dict[DamageKind, int]
    mean: float
    """Of a plan that has any."""


class McpBenchRow(_Model):
    """MCP-Bench tasks whose servers run offline, under one condition; no check of answers, no judge."""

    condition: str
    tasks: int
    planned: int
    static_ok: int
    executed_ok: int
    rule_score: float
    """Mean, in [0, 1]; 0 where there is no plan."""
    calls: float
    tokens: float
    seconds: float


class EvolutionReport(_Model):
    """The whole run."""

    bench: Literal["evolution"] = "evolution"
    quick: bool
    seed: int
    tasks: int
    tasks_with_plans: int
    parts: dict[Part, int]
    sizes: dict[int, int]
    """How many tasks have so many steps."""
    mapped: int
    """Tasks with a step per item of a list."""
    servers: tuple[str, ...]
    distractors: int
    """Other servers in each catalog, at least."""
    budget: dict[str, float]
    about: About | None
    """Who made the recorded plans; None: there are none."""
    mix: Mix | None
    versions: dict[str, str]
    notes: tuple[str, ...] = ()
    outcomes: tuple[PlanOutcome, ...] = ()
    mcp_bench: tuple[McpBenchRow, ...] = ()
    seconds: float = 0.0
    groups: tuple[Group, ...] = ()


def groups_of(outcomes: Sequence[PlanOutcome]) -> tuple[Group, ...]:
    """Return the rows of recorded plans, of the part on which more conditions ran, and of simulated plans."""
    apart = [name for name in dict.fromkeys(one.source for one in outcomes) if _stands_apart(name)]
    real = [one for one in outcomes if one.source not in apart and one.source != REACT_SOURCE]
    counts = Counter(one.condition for one in real)
    most = max(counts.values(), default=0)
    whole = [one for one in real if counts[one.condition] == most]
    groups = [Group(name="all", rows=rows_of(whole))]
    sources = tuple(dict.fromkeys(one.source for one in whole))
    if len(sources) > 1:
        groups += [
            Group(name=name, rows=rows_of(one for one in whole if one.source == name)) for name in sources
        ]
    if fewer := [name for name, count in counts.items() if count < most]:
        part = {(one.source, one.task) for one in real if one.condition == fewer[0]}
        in_part = [one for one in real if (one.source, one.task) in part]
        tried = [one for one in outcomes if one.source == REACT_SOURCE]
        groups.append(Group(name="part", rows=rows_of([*in_part, *tried])))
    groups += [Group(name=name, rows=rows_of(o for o in outcomes if o.source == name)) for name in apart]
    return tuple(groups)


def _stands_apart(source: str) -> bool:
    """Return whether plans of a source are no model's."""
    return source.startswith(SIMULATED) or source in (FLOOR, DETERMINISTIC)


def rows_of(outcomes: Iterable[PlanOutcome]) -> tuple[Row, ...]:
    """Return a row for each condition, in the order in which they come."""
    by_condition: dict[str, list[PlanOutcome]] = {}
    for outcome in outcomes:
        by_condition.setdefault(outcome.condition, []).append(outcome)
    return tuple(_row(name, group) for name, group in by_condition.items())


def _row(condition: str, group: Sequence[PlanOutcome]) -> Row:
    solved = sum(one.verified for one in group)
    totals = {
        "calls": float(sum(one.calls for one in group)),
        "tokens": float(sum(one.tokens for one in group)),
        "seconds": sum(one.seconds for one in group),
    }
    return Row(
        condition=condition,
        plans=len(group),
        static_ok=sum(one.static_ok for one in group),
        executed_ok=sum(one.executed_ok for one in group),
        verified=solved,
        best=_verified([one for one in group if one.part == "search"]),
        valid_best=_verified([one for one in group if one.part == "validation"]),
        right=sum(one.right is True for one in group),
        judged=sum(one.right is not None for one in group),
        calls=totals["calls"] / len(group),
        tokens=totals["tokens"] / len(group),
        seconds=totals["seconds"] / len(group),
        calls_per_solved=totals["calls"] / solved if solved else None,
        tokens_per_solved=totals["tokens"] / solved if solved else None,
        seconds_per_solved=totals["seconds"] / solved if solved else None,
    )


def _verified(group: Sequence[PlanOutcome]) -> tuple[int, int]:
    return sum(one.verified for one in group), len(group)
