"""The same stream under every condition, planner by planner, and what the conditions differ in.

Paper: FlowEvo (Table 4): 134 episodes from an empty bank, conditions compared by McNemar's test.
Differs: families recur over real tool servers; a planner without a model, one that is simulated and
    says so, and a real model where one is given, each in its own table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from server.backends.backend import Wire
from server.bench.forks import Forks
from server.bench.kept import Kept
from server.bench.stream_changed import measure_changed
from server.bench.stream_compared import compare_conditions, noise_cost
from server.bench.stream_episodes import Played, PlayedLines, play
from server.bench.stream_frozen import measure_frozen
from server.bench.stream_hard import hard_stream
from server.bench.stream_planner import simulated_planner
from server.bench.stream_planted import measure_planted
from server.bench.stream_report import (
    ChangedReport,
    FrozenReport,
    HardReport,
    PlantedReport,
    StreamsReport,
)
from server.bench.stream_tasks import FAMILIES, StreamTask, servers_of, stream_of
from server.bench.stream_world import WAYS, Condition, Stage, open_stream_bank

__all__ = ["StreamSize", "measure_streams"]

_WITHOUT_MODEL: tuple[Condition, ...] = (
    "none",
    "compile only",
    "+ reuse",
    "+ curation",
    "no admission gate",
    "20 % label noise",
)
_WITH_MODEL: tuple[Condition, ...] = ("none", "compile only", "+ reuse", "+ curation", "text memory")
_WITH_REAL_MODEL: tuple[Condition, ...] = ("none", "+ curation", "text memory")
_COMPACT = "compact planner"
_DETERMINISTIC = "deterministic planner, no model"


@dataclass(frozen=True, slots=True)
class StreamSize:
    """How much is run."""

    length: int = 134
    """Tasks of a stream: as long as ALFWorld's."""
    seed: int = 7
    families: int = len(FAMILIES)
    """The first so many."""
    planted: int = 12
    """Streams with a harmful skill."""
    with_model: int = 10
    """Tasks that a real model plans, where one is given."""
    families_with_model: int = 2
    """Families of these: few, so that they recur."""
    conditions: tuple[Condition, ...] = _WITHOUT_MODEL
    """Without a model."""
    simulated: tuple[Condition, ...] = _WITH_MODEL
    """With the simulated planner."""
    frozen: tuple[Literal["without a model", "simulated"], ...] = ("without a model", "simulated")
    """Planners under which a grown bank is frozen and its ways are compared."""
    changed: int = 36
    """Tasks of the stream in which a tool changes; 0: it is left out."""
    hard: int = 134
    """Tasks of the harder stream; 0: it is left out."""
    hard_conditions: tuple[Condition, ...] = _WITHOUT_MODEL[:-1]
    hard_simulated: tuple[Condition, ...] = ("none", "+ reuse", "+ curation", "text memory")


async def measure_streams(
    size: StreamSize, stage: Stage, model: Wire | None = None, keep: Path | None = None
) -> StreamsReport:
    """Return what every condition made of the same streams.

    Args:
        size: how much is run.
        stage: where banks are opened.
        model: a real one, which plans a part of the stream; None: none does.
        keep: a file that finished conditions are read from and added to; None: nothing is kept.

    Raises:
        DemoServersMissing: the tool servers are not installed.
    """
    stream = stream_of(size.length, size.seed, FAMILIES[: size.families])
    pieces = _Pieces(Kept(keep), size, stage)
    played = await pieces.conditions(stream, size.conditions, None)
    planners = [compare_conditions(_DETERMINISTIC, played)]
    if size.simulated:
        simulated = await pieces.simulated(stream, size.simulated)
        planners.append(compare_conditions(_COMPACT, simulated, is_simulated=True))
    if model is not None:
        part = stream_of(size.with_model, size.seed, FAMILIES[: size.families_with_model])
        named = f"{model.name}, {len(part)} tasks of {size.families_with_model} families"
        modelled = await pieces.conditions(part, _WITH_REAL_MODEL, model, named)
        planners.append(compare_conditions(named, modelled))
    return StreamsReport(
        seed=size.seed,
        length=size.length,
        families=tuple(family.id for family in FAMILIES[: size.families]),
        servers=servers_of(stream),
        planners=tuple(planners),
        noise=noise_cost(played),
        hard=await _hard(pieces) if size.hard else None,
        frozen=await _frozen(stream, pieces),
        planted=await pieces.planted() if size.planted else None,
        changed=await pieces.changed() if size.changed else None,
        not_measured=_not_measured(model),
    )


async def _hard(pieces: _Pieces) -> HardReport:
    size = pieces.size
    stream = hard_stream(size.hard, size.seed)
    asked = [task for task in stream if not task.is_shown]
    without = await pieces.conditions(stream, size.hard_conditions, None, "hard")
    planners = [compare_conditions(_DETERMINISTIC, without)]
    if size.hard_simulated:
        simulated = await pieces.simulated(stream, size.hard_simulated, "hard")
        planners.append(compare_conditions(_COMPACT, simulated, is_simulated=True))
    return HardReport(
        shown=len(stream) - len(asked),
        asked=len(asked),
        checked=sum(task.is_checked for task in asked),
        families=tuple(sorted({task.family.id for task in stream})),
        planners=tuple(planners),
    )


async def _frozen(stream: Sequence[StreamTask], pieces: _Pieces) -> tuple[FrozenReport, ...]:
    wanted, found = pieces.size.frozen, list[FrozenReport]()
    if "without a model" in wanted:
        found.append(await pieces.frozen(stream, None, _DETERMINISTIC))
    if "simulated" in wanted:
        planner = simulated_planner(stream, pieces.size.seed)
        found.append(await pieces.frozen(stream, planner, f"{_COMPACT} (simulated)"))
    return tuple(found)


def _not_measured(model: Wire | None) -> tuple[str, ...]:
    return () if model is not None else ("a real model: give one with --model",)


@dataclass(frozen=True)
class _Pieces:
    """The parts of a run, each kept as soon as it is finished."""

    kept: Kept
    size: StreamSize
    stage: Stage

    async def conditions(
        self,
        stream: Sequence[StreamTask],
        conditions: Sequence[Condition],
        planner: Wire | None,
        part: str = "streams",
    ) -> dict[Condition, Played]:
        """Return what each condition made of a stream."""
        played: dict[Condition, Played] = {}
        who = planner.name if planner is not None else "no model"
        for condition in conditions:
            self.stage.tell(f"{part}: {len(stream)} tasks, {who}: {condition}")

            async def make(condition: Condition = condition) -> PlayedLines:
                return PlayedLines.of(await _played(stream, condition, planner, self.stage.forks))

            key = f"{who}, {condition}, {self._size} of {len(stream)}"
            lines = await self.kept.or_made(part, key, PlayedLines, make)
            played[condition] = lines.played(stream)
        return played

    async def simulated(
        self, stream: Sequence[StreamTask], conditions: Sequence[Condition], part: str = "streams"
    ) -> dict[Condition, Played]:
        """Play with a planner that makes the same mistakes in each condition."""
        played: dict[Condition, Played] = {}
        for condition in conditions:
            planner = simulated_planner(stream, self.size.seed)
            played |= await self.conditions(stream, (condition,), planner, part)
        return played

    async def frozen(self, stream: Sequence[StreamTask], planner: Wire | None, name: str) -> FrozenReport:
        """Return what a frozen bank is worth, way by way."""

        async def make() -> FrozenReport:
            return await measure_frozen(stream, planner, name, self.stage)

        return await self.kept.or_made("frozen", f"{name}, {self._size}", FrozenReport, make)

    async def planted(self) -> PlantedReport:
        """Return how soon a harmful skill is restricted."""

        async def make() -> PlantedReport:
            return await measure_planted(self.size.planted, self.size.seed, self.stage)

        return await self.kept.or_made("planted", f"{self.size.planted}, {self._size}", PlantedReport, make)

    async def changed(self) -> ChangedReport:
        """Return what a tool that changes in mid-stream costs."""

        async def make() -> ChangedReport:
            return await measure_changed(self.size.changed, self.size.seed, self.stage)

        return await self.kept.or_made("changed", f"{self.size.changed}, {self._size}", ChangedReport, make)

    @property
    def _size(self) -> str:
        return f"{self.size.length} tasks, {self.size.families} families, seed {self.size.seed}"


async def _played(
    stream: Sequence[StreamTask], condition: Condition, planner: Wire | None, forks: Forks | None
) -> Played:
    way = WAYS[condition]
    with TemporaryDirectory(prefix="skillbank-bench-") as folder:
        place, servers = Path(folder), servers_of(stream)
        async with open_stream_bank(place, way, planner, servers=servers, forks=forks) as bank:
            return await play(stream, way, bank)
