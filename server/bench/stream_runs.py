"""Running a stream of tasks through a real bank over real servers, under the conditions that are compared.

Paper: FlowEvo (Table 4): no skills; compiled only; reused too; curated too; 134 episodes.
Differs: the planner is the deterministic one, so no condition spends a token, and text memory, which
    only a model reads, is not measured here. Right is what Python computed, not what a model says.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Literal, cast

from pydantic import BaseModel, ConfigDict, JsonValue

from server.bank import Bank
from server.bench.servers import demo_document
from server.bench.stream_tasks import FAMILIES, SERVERS, StreamTask, stream_of
from server.progress import Progress, ProgressListener
from server.requests import Budget, SolveRequest
from server.settings import Settings
from server.verification import Checks
from server.wiring import open_bank
from skills_store.skill import ReplayTest, Skill
from skills_store.workflow.assertions import check_assertion
from skills_store.workflow.hashing import content_hash, shape_hash
from skills_store.workflow.model import Workflow

__all__ = [
    "Condition",
    "FrozenReport",
    "Pair",
    "PlantedReport",
    "StreamRun",
    "StreamSize",
    "StreamsReport",
    "mcnemar",
    "measure_streams",
]

Condition = Literal["none", "compile only", "+ reuse", "+ curation", "20 % label noise"]
_CONDITIONS: tuple[Condition, ...] = ("none", "compile only", "+ reuse", "+ curation", "20 % label noise")
_COMPARED: tuple[tuple[Condition, Condition], ...] = (
    ("none", "compile only"),
    ("compile only", "+ reuse"),
    ("+ reuse", "+ curation"),
    ("none", "+ curation"),
)
_BUDGET = Budget(seconds=20, calls=200, candidates=60)
_NOISE = 0.2


class _Report(BaseModel):
    model_config = ConfigDict(frozen=True)


class StreamRun(_Report):
    """What one condition came to."""

    condition: str
    tasks: int
    right: int
    """By Python's answer. With label noise only tasks whose label was true are counted."""
    direct: int
    """Tasks whose last answer came from a skill run without a plan."""
    direct_right: int
    late_direct: int
    """The same in the second half of the stream."""
    late_tasks: int
    withheld: int
    tokens: int
    """None is spent: there is no model."""
    calls: int
    """Of tools, for answers; replays of admission and audits are not counted."""
    seconds: float
    bank: tuple[int, ...]
    """Active skills after each quarter of the stream."""


class Pair(_Report):
    """Two conditions task by task: McNemar's exact test."""

    one: str
    two: str
    only_one: int
    """Tasks that only the first got right."""
    only_two: int
    p: float


class FrozenReport(_Report):
    """Grow on the first half, freeze, and solve held-out instances in two ways."""

    held_out: int
    direct_right: int
    direct_hits: int
    dynamic_right: int


class PlantedReport(_Report):
    """A harmful skill among the right ones: its tests are right, its answer is that of another task."""

    streams: int
    restricted: int
    guided_uses: tuple[int, ...]
    """Trials with it, until it was restricted, by stream; -1: it was not, within the stream."""
    restricted_within_14: int
    answered_right: int
    answered: int


class StreamsReport(_Report):
    """Streams over real servers, with the deterministic planner."""

    seed: int
    families: int
    servers: tuple[str, ...]
    planner: str = "deterministic, no model"
    runs: tuple[StreamRun, ...]
    pairs: tuple[Pair, ...]
    frozen: FrozenReport
    planted: PlantedReport
    not_measured: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Way:
    """How a condition's bank is set up, and how it is asked."""

    learning: str = "auto"
    curation: Mapping[str, JsonValue] | None = None
    route: Literal["dynamic"] | None = None
    noise: float = 0.0


_OFF: Mapping[str, JsonValue] = {"withhold": 0, "audit_every": 0}
_WAYS: dict[Condition, _Way] = {
    "none": _Way(learning="off", curation=_OFF, route="dynamic"),
    "compile only": _Way(curation=_OFF, route="dynamic"),
    "+ reuse": _Way(curation=_OFF),
    "+ curation": _Way(),
    "20 % label noise": _Way(noise=_NOISE),
}


@dataclass(frozen=True, slots=True)
class _Answer:
    task: StreamTask
    right: bool
    direct: bool
    withheld: bool
    labelled: bool
    """Whether the bank was told the truth about its answer."""
    calls: int
    seconds: float


@dataclass(frozen=True, slots=True)
class StreamSize:
    """How much is run."""

    length: int = 134
    """Tasks of a stream: as long as ALFWorld's."""
    seed: int = 7
    families: int = len(FAMILIES)
    """The first so many."""
    planted: int = 20
    """Streams with a harmful skill."""


async def measure_streams(size: StreamSize, listener: ProgressListener) -> StreamsReport:
    """Return what every condition made of the same stream.

    Args:
        size: how much is run.
        listener: told what is measured.

    Raises:
        DemoServersMissing: the tool servers are not installed.
    """
    stream = stream_of(size.length, size.seed, FAMILIES[: size.families])
    answers: dict[Condition, list[_Answer]] = {}
    runs: list[StreamRun] = []
    for condition in _CONDITIONS:
        listener(Progress("bench", f"stream of {size.length} tasks: {condition}"))
        answers[condition], bank = await _run(stream, _WAYS[condition])
        runs.append(_summary(condition, answers[condition], bank))
    return StreamsReport(
        seed=size.seed,
        families=size.families,
        servers=SERVERS,
        runs=tuple(runs),
        pairs=tuple(_pair(one, two, answers) for one, two in _COMPARED),
        frozen=await _frozen(stream, listener),
        planted=await _planted(size.planted, size.seed, listener),
        not_measured=(
            "text memory: only a model reads it, and none takes part",
            "tokens: the deterministic planner spends none",
            "a schema change in mid-stream: see the drift of excel-mcp-server in tests/live",
            "the admission gate off",
            "τ²-bench, BFCL and TextWorld streams",
        ),
    )


def _written(folder: Path, way: _Way) -> Settings:
    document = demo_document(SERVERS)
    own = cast("dict[str, JsonValue]", document["skillbank"])
    own["learning"] = way.learning
    if way.curation is not None:
        own["curation"] = dict(way.curation)
    config = folder / "config.json"
    config.write_text(json.dumps(document), encoding="utf-8")
    return Settings(config, folder / "store.db", environment={})


async def _run(stream: Sequence[StreamTask], way: _Way) -> tuple[list[_Answer], list[int]]:
    with TemporaryDirectory() as folder:
        async with open_bank(_settings(Path(folder), way)) as bank:
            return await _answered(stream, way, bank)


def _settings(folder: Path, way: _Way) -> Settings:
    return replace(_written(folder, way), environment=dict(os.environ))


async def _answered(stream: Sequence[StreamTask], way: _Way, bank: Bank) -> tuple[list[_Answer], list[int]]:
    dice = Random("labels")
    answers: list[_Answer] = []
    sizes: list[int] = []
    quarter = max(1, len(stream) // 4)
    for number, task in enumerate(stream, 1):
        answers.append(await _solved(task, way, bank, flipped=dice.random() < way.noise))
        if number % quarter == 0 and len(sizes) < 4:
            sizes.append(sum(head.state == "active" for head in bank.context.store.heads()))
    return answers, sizes


async def _solved(task: StreamTask, way: _Way, bank: Bank, *, flipped: bool) -> _Answer:
    label = f"!({task.assertion})" if flipped else task.assertion
    request = SolveRequest(checks=Checks((label,)), budget=_BUDGET, route=way.route)
    started = time.perf_counter()
    report = await bank.solve(task.task, request)
    seconds = time.perf_counter() - started
    told = (
        report.outputs is not None
        and check_assertion(
            task.assertion, output=cast("JsonValue", report.outputs), inputs={}, nodes={}
        ).passed
    )
    return _Answer(
        task=task,
        right=told,
        direct=report.route == "direct",
        withheld=any("left out of this one" in reason for reason in report.route_reasons),
        labelled=not flipped,
        calls=report.calls,
        seconds=seconds,
    )


def _summary(condition: Condition, answers: Sequence[_Answer], bank: Sequence[int]) -> StreamRun:
    told = [answer for answer in answers if answer.labelled]
    late = [answer for answer in told if answer.task.number >= len(answers) // 2]
    return StreamRun(
        condition=condition,
        tasks=len(told),
        right=sum(answer.right for answer in told),
        direct=sum(answer.direct for answer in told),
        direct_right=sum(answer.direct and answer.right for answer in told),
        late_direct=sum(answer.direct for answer in late),
        late_tasks=len(late),
        withheld=sum(answer.withheld for answer in told),
        tokens=0,
        calls=sum(answer.calls for answer in told),
        seconds=sum(answer.seconds for answer in told),
        bank=tuple(bank),
    )


def _pair(one: Condition, two: Condition, answers: Mapping[Condition, Sequence[_Answer]]) -> Pair:
    both = list(zip(answers[one], answers[two], strict=True))
    only_one = sum(a.right and not b.right for a, b in both)
    only_two = sum(b.right and not a.right for a, b in both)
    return Pair(one=one, two=two, only_one=only_one, only_two=only_two, p=mcnemar(only_one, only_two))


def mcnemar(only_one: int, only_two: int) -> float:
    """Return the two-sided p of McNemar's exact test, 1 where nothing is discordant."""
    total, least = only_one + only_two, min(only_one, only_two)
    return min(1.0, 2 * sum(comb(total, k) for k in range(least + 1)) / 2**total)


async def _frozen(stream: Sequence[StreamTask], listener: ProgressListener) -> FrozenReport:
    """Grow a bank on the first half, then let it learn nothing more."""
    listener(Progress("bench", "frozen bank: grow, freeze, solve held-out instances"))
    half = len(stream) // 2
    grown, held = stream[:half], stream[half:]
    with TemporaryDirectory() as folder:
        place = Path(folder)
        async with open_bank(_settings(place, _WAYS["+ reuse"])) as bank:
            await _answered(grown, _WAYS["+ reuse"], bank)
        still = _Way(learning="off", curation=_OFF)
        async with open_bank(_settings(place, still)) as bank:
            direct, _ = await _answered(held, still, bank)
            dynamic, _ = await _answered(held, replace(still, route="dynamic"), bank)
    return FrozenReport(
        held_out=len(held),
        direct_right=sum(answer.right for answer in direct),
        direct_hits=sum(answer.direct for answer in direct),
        dynamic_right=sum(answer.right for answer in dynamic),
    )


_PLANTED_LENGTH = 60


async def _planted(streams: int, seed: int, listener: ProgressListener) -> PlantedReport:
    """Plant a skill that hashes with the wrong algorithm, and see how soon it is restricted."""
    family = tuple(one for one in FAMILIES if one.id == "sha256")
    uses: list[int] = []
    right = answered = 0
    for number in range(streams):
        listener(Progress("bench", f"planted harmful skill: stream {number + 1} of {streams}"))
        with TemporaryDirectory() as folder:
            async with open_bank(_settings(Path(folder), _Way())) as bank:
                found, answers = await _until_restricted(
                    stream_of(_PLANTED_LENGTH, seed + number, family), bank
                )
        uses.append(found)
        right, answered = right + sum(a.right for a in answers), answered + len(answers)
    return PlantedReport(
        streams=streams,
        restricted=sum(use >= 0 for use in uses),
        guided_uses=tuple(uses),
        restricted_within_14=sum(0 <= use <= 14 for use in uses),
        answered_right=right,
        answered=answered,
    )


async def _until_restricted(stream: Sequence[StreamTask], bank: Bank) -> tuple[int, list[_Answer]]:
    way, answers = _Way(), list[_Answer]()
    name: str | None = None
    for task in stream:
        answers.append(await _solved(task, way, bank, flipped=False))
        active = [head for head in bank.context.store.heads() if head.state == "active"]
        if name is None and active:
            name = _plant(active[0], bank)
        head = bank.context.store.head(name) if name is not None else None
        if head is not None and head.state != "active":
            trials = bank.context.store.episodes(999, name)
            return sum(t.arm == "guided" and t.version == head.version for t in trials), answers
    return -1, answers


def _plant(skill: Skill, bank: Bank) -> str:
    """Put a version of a skill in use that calls another hash, with tests that it passes."""
    context = bank.context
    text = skill.workflow.model_dump_json().replace("hash_sha256", "hash_sha384")
    workflow = Workflow.model_validate_json(text)
    tools = [tool for tool in context.known() if tool.id.tool == "hash_sha384"]
    pins = tuple(
        pin.model_copy(update={"tool": tools[0].id, "contract_hash": tools[0].contract_hash})
        for pin in skill.pins
    )
    planted = skill.model_copy(
        update={
            "version": skill.version + 1,
            "reason": "planted by the benchmark",
            "workflow": workflow,
            "content_hash": content_hash(workflow),
            "shape_hash": shape_hash(workflow),
            "pins": pins,
            "tests": tuple(_as_planted(test) for test in skill.tests),
            "created_at": context.clock(),
        }
    )
    context.store.add_version(planted, expected_head=skill.version)
    return planted.name


def _as_planted(test: ReplayTest) -> ReplayTest:
    """Return a test with the answer that the planted skill gives."""
    texts = [str(value) for value in test.inputs.values()]
    digest = hashlib.sha384(texts[0].encode()).hexdigest()
    return test.model_copy(update={"outputs": dict.fromkeys(test.outputs, digest), "recorded": ()})
