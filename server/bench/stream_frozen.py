"""The frozen-bank protocol: grow on the first half of a stream, freeze, compare ways on held-out instances.

No way is told a check here, so that nothing but the skill, the plan or the memory makes an answer right.

Paper: FlowEvo (fixed-bank analyses): direct, seeded and dynamic on held-out tasks of the same bank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from server.backends.backend import Wire
from server.bench.stream_episodes import Answer, Memory, Played, play
from server.bench.stream_report import FrozenReport, FrozenWay
from server.bench.stream_tasks import StreamTask, servers_of
from server.bench.stream_world import WAYS, Stage, Way, open_stream_bank

__all__ = ["measure_frozen"]

_STILL = replace(WAYS["none"], checked=False)
_FROZEN: dict[str, Way] = {
    "direct": replace(_STILL, route="direct"),
    "seeded": replace(_STILL, route="seeded"),
    "dynamic": _STILL,
    "as the bank chooses": replace(_STILL, route=None),
}


async def measure_frozen(
    stream: Sequence[StreamTask], planner: Wire | None, named: str, stage: Stage
) -> FrozenReport:
    """Return what each way makes of the second half of a stream with the bank of the first.

    Args:
        stream: the first half grows the bank.
        planner: the model that plans; None: the deterministic planner.
        named: the planner, for the report.
        stage: where banks are opened.
    """
    half = len(stream) // 2
    grown, held, servers = stream[:half], stream[half:], servers_of(stream)
    ways: list[FrozenWay] = []
    with TemporaryDirectory(prefix="skillbank-bench-") as folder:
        place = Path(folder)
        stage.tell(f"frozen bank, {named}: grow on {half} tasks")
        async with open_stream_bank(
            place, WAYS["+ reuse"], planner, servers=servers, forks=stage.forks
        ) as bank:
            await play(grown, WAYS["+ reuse"], bank)
        for name, way in _FROZEN.items():
            stage.tell(f"frozen bank, {named}: {name}")
            async with open_stream_bank(place, way, planner, servers=servers, forks=stage.forks) as bank:
                ways.append(_way(name, await play(held, way, bank)))
    if planner is not None:
        stage.tell(f"frozen bank, {named}: text memory")
        ways.append(_way("text memory", await _by_memory(stream, planner, stage)))
    return FrozenReport(planner=named, grown_on=half, held_out=len(held), ways=tuple(ways))


async def _by_memory(stream: Sequence[StreamTask], planner: Wire, stage: Stage) -> Played:
    """Gather a memory on the first half, with checks as the bank had them; use it without on the second."""
    memory, way, half = Memory(), WAYS["text memory"], len(stream) // 2
    with TemporaryDirectory(prefix="skillbank-bench-") as folder:
        place, servers = Path(folder), servers_of(stream)
        async with open_stream_bank(place, way, planner, servers=servers, forks=stage.forks) as bank:
            await play(stream[:half], way, bank, memory)
            return await play(stream[half:], replace(way, checked=False), bank, memory)


def _way(name: str, played: Played) -> FrozenWay:
    answers = played.answers
    return FrozenWay(
        way=name,
        right=sum(answer.right for answer in answers),
        tokens=sum(answer.tokens for answer in answers),
        calls=sum(answer.calls for answer in answers),
        open=sum(_was_open(name, answer) for answer in answers),
    )


def _was_open(name: str, answer: Answer) -> bool:
    match name:
        case "direct":
            return answer.direct
        case "seeded":
            return answer.calls > 0 or answer.tokens > 0
        case _:
            return True
