"""The same stream under every condition, planner by planner, and what the conditions differ in.

Paper: FlowEvo (Table 4): 134 episodes from an empty bank, conditions compared by McNemar's test.
Differs: families recur over real tool servers; a planner without a model, one that is simulated and
    says so, and a real model where one is given, each in its own table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from server.backends.backend import Wire
from server.bench.forks import Forks
from server.bench.kept import Kept
from server.bench.stream_changed import measure_changed
from server.bench.stream_episodes import Answer, Played, PlayedLines, play
from server.bench.stream_frozen import measure_frozen
from server.bench.stream_planner import simulated_planner
from server.bench.stream_planted import measure_planted
from server.bench.stream_report import (
    ChangedReport,
    FrozenReport,
    NoiseReport,
    Pair,
    PlannerRuns,
    PlantedReport,
    StreamRun,
    StreamsReport,
)
from server.bench.stream_tasks import FAMILIES, StreamTask, servers_of, stream_of
from server.bench.stream_world import NOISE, WAYS, Condition, Stage, open_stream_bank

__all__ = ["StreamSize", "mcnemar", "measure_streams"]

_WITHOUT_MODEL: tuple[Condition, ...] = (
    "none",
    "compile only",
    "+ reuse",
    "+ curation",
    "no admission gate",
    "20 % label noise",
)
_WITH_MODEL: tuple[Condition, ...] = ("none", "compile only", "+ reuse", "+ curation", "text memory")
_COMPARED: tuple[tuple[Condition, Condition], ...] = (
    ("none", "compile only"),
    ("compile only", "+ reuse"),
    ("+ reuse", "+ curation"),
    ("none", "+ curation"),
    ("text memory", "+ curation"),
    ("+ reuse", "no admission gate"),
)
_DETERMINISTIC = "deterministic planner, no model"
_MOST_WRONG_TOLD = 5


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
    with_model: int = 24
    """Tasks that a real model plans, where one is given."""
    conditions: tuple[Condition, ...] = _WITHOUT_MODEL
    """Without a model."""
    simulated: tuple[Condition, ...] = _WITH_MODEL
    """With the simulated planner."""
    frozen: tuple[Literal["without a model", "simulated"], ...] = ("without a model", "simulated")
    """Planners under which a grown bank is frozen and its ways are compared."""
    changed: int = 36
    """Tasks of the stream in which a tool changes; 0: it is left out."""


async def measure_streams(
    size: StreamSize, stage: Stage, model: Wire | None = None, keep: Path | None = None
) -> StreamsReport:
    """Return what every condition made of the same stream.

    Args:
        size: how much is run.
        stage: where banks are opened.
        model: a real one, which plans a part of the stream; None: none does.
        keep: a file that finished conditions are read from and added to; None: nothing is kept.

    Raises:
        DemoServersMissing: the tool servers are not installed.
    """
    stream = stream_of(size.length, size.seed, FAMILIES[: size.families])
    kept = _Pieces(Kept(keep), size, stage)
    played = await kept.conditions(stream, size.conditions, None)
    planners = [_runs(_DETERMINISTIC, played)]
    frozen: list[FrozenReport] = []
    if "without a model" in size.frozen:
        frozen.append(await kept.frozen(stream, None, _DETERMINISTIC))
    if size.simulated:
        simulated = await kept.simulated(stream)
        planners.append(_runs("compact planner", simulated, is_simulated=True))
    if "simulated" in size.frozen:
        planner = simulated_planner(stream, size.seed)
        frozen.append(await kept.frozen(stream, planner, "compact planner (simulated)"))
    if model is not None:
        part = stream[: size.with_model]
        modelled = await kept.conditions(part, ("none", "+ curation", "text memory"), model)
        planners.append(_runs(f"{model.name}, the first {len(part)} tasks", modelled))
    return StreamsReport(
        seed=size.seed,
        length=size.length,
        families=tuple(family.id for family in FAMILIES[: size.families]),
        servers=servers_of(stream),
        planners=tuple(planners),
        noise=_noise(played),
        frozen=tuple(frozen),
        planted=await kept.planted() if size.planted else None,
        changed=await kept.changed() if size.changed else None,
        not_measured=_not_measured(model),
    )


def _not_measured(model: Wire | None) -> tuple[str, ...]:
    there = ("τ²-bench, BFCL and TextWorld as families",)
    return there if model is not None else ("a real model: give one with --model", *there)


@dataclass(frozen=True)
class _Pieces:
    """The parts of a run, each kept as soon as it is finished."""

    kept: Kept
    size: StreamSize
    stage: Stage

    async def conditions(
        self, stream: Sequence[StreamTask], conditions: Sequence[Condition], planner: Wire | None
    ) -> dict[Condition, Played]:
        """Return what each condition made of a stream."""
        played: dict[Condition, Played] = {}
        who = planner.name if planner is not None else "no model"
        for condition in conditions:
            self.stage.tell(f"stream of {len(stream)} tasks, {who}: {condition}")

            async def make(condition: Condition = condition) -> PlayedLines:
                return PlayedLines.of(await _played(stream, condition, planner, self.stage.forks))

            key = f"{who}, {condition}, {self._size} of {len(stream)}"
            lines = await self.kept.or_made("streams", key, PlayedLines, make)
            played[condition] = lines.played(stream)
        return played

    async def simulated(self, stream: Sequence[StreamTask]) -> dict[Condition, Played]:
        """Play with a planner that makes the same mistakes in each condition."""
        played: dict[Condition, Played] = {}
        for condition in self.size.simulated:
            planner = simulated_planner(stream, self.size.seed)
            played |= await self.conditions(stream, (condition,), planner)
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


def _runs(planner: str, played: Mapping[Condition, Played], *, is_simulated: bool = False) -> PlannerRuns:
    answers: dict[Condition, Sequence[Answer]] = {name: one.answers for name, one in played.items()}
    return PlannerRuns(
        planner=planner,
        simulated=is_simulated,
        runs=tuple(_summary(condition, one) for condition, one in played.items()),
        pairs=tuple(_pair(one, two, answers) for one, two in _COMPARED if one in answers and two in answers),
    )


def _summary(condition: Condition, played: Played) -> StreamRun:
    answers = played.answers
    late = answers[len(answers) // 2 :]
    wrong = [answer.task.family.id for answer in answers if not answer.right]
    return StreamRun(
        condition=condition,
        tasks=len(answers),
        right=sum(answer.right for answer in answers),
        direct=sum(answer.direct for answer in answers),
        direct_right=sum(answer.direct_right for answer in answers),
        late_direct=sum(answer.direct for answer in late),
        late_tasks=len(late),
        withheld=sum(answer.withheld for answer in answers),
        tokens=sum(answer.tokens for answer in answers),
        late_tokens=sum(answer.tokens for answer in late),
        calls=sum(answer.calls for answer in answers),
        seconds=sum(answer.seconds for answer in answers),
        bank=played.bank,
        wrong=tuple(wrong[:_MOST_WRONG_TOLD]),
    )


def _noise(played: Mapping[Condition, Played]) -> NoiseReport | None:
    noisy, clean = played.get("20 % label noise"), played.get("+ curation")
    if noisy is None or clean is None:
        return None
    both = [
        (one, other)
        for one, other in zip(noisy.answers, clean.answers, strict=True)
        if one.labelled and other.labelled
    ]
    return NoiseReport(
        share=NOISE,
        tasks=len(both),
        right=sum(one.right for one, _ in both),
        right_without_noise=sum(other.right for _, other in both),
    )


def _pair(one: Condition, two: Condition, answers: Mapping[Condition, Sequence[Answer]]) -> Pair:
    both = list(zip(answers[one], answers[two], strict=True))
    only_one = sum(a.right and not b.right for a, b in both)
    only_two = sum(b.right and not a.right for a, b in both)
    return Pair(one=one, two=two, only_one=only_one, only_two=only_two, p=mcnemar(only_one, only_two))


def mcnemar(only_one: int, only_two: int) -> float:
    """Return the two-sided p of McNemar's exact test, 1 where nothing is discordant."""
    total, least = only_one + only_two, min(only_one, only_two)
    return min(1.0, 2 * sum(comb(total, k) for k in range(least + 1)) / 2**total)
