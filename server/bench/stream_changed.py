"""A tool that changes in mid-stream: an update renames an argument under skills that are in use.

The stream goes on across a restart, as an update of a server does: first nobody has looked at the
changed tool, so nothing may run over it unasked; then an operator has, and its skills come back.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from server.bank.curation.curating import recover_stale
from server.bench.renamed_relay import renamed_command
from server.bench.stream_episodes import Answer, Played, play
from server.bench.stream_report import ChangedReport
from server.bench.stream_tasks import FAMILIES, servers_of, stream_of
from server.bench.stream_world import WAYS, Stage, open_stream_bank
from server.provisioning.demo_servers import DEMO_SERVERS

__all__ = ["measure_changed"]

_SERVER, _TOOL, _OLD, _NEW = "hashlib", "hash_sha256", "data", "content"
_FAMILIES = ("sha256", "md5", "product")


async def measure_changed(
    length: int, seed: int, stage: Stage, families: Sequence[str] = _FAMILIES
) -> ChangedReport:
    """Return what a curated bank does before, at and after the change.

    Args:
        length: tasks; half of them before the change, a sixth before anybody looked at it.
        seed: of the stream.
        stage: where banks are opened.
        families: of the stream; the tool that changes is that of `sha256`.
    """
    stream = stream_of(length, seed, tuple(one for one in FAMILIES if one.id in families))
    half, seen = length // 2, length // 2 + length // 6
    way, servers = WAYS["+ curation"], servers_of(stream)
    with TemporaryDirectory(prefix="skillbank-bench-") as folder:
        stage.tell(f"a tool changes in mid-stream: {half} tasks before")
        async with open_stream_bank(Path(folder), way, servers=servers, forks=stage.forks) as bank:
            before = await play(stream[:half], way, bank)
        stage.tell("a tool changes in mid-stream: after the update")
        async with open_stream_bank(
            Path(folder), way, servers=servers, replaced=_updated(), forks=stage.forks
        ) as bank:
            await bank.context.snapshot()
            unseen = await play(stream[half:seen], way, bank)
            stale = [head.name for head in bank.context.store.heads() if head.state == "stale"]
            await bank.recheck_effects(_SERVER, "*")
            taken = await recover_stale(bank.context)
            after = await play(stream[seen:], way, bank)
            states = {name: bank.context.store.head(name) for name in stale}
    later = [*unseen.answers, *after.answers]
    return ChangedReport(
        before=half,
        before_right=_right(before),
        unseen=len(unseen.answers),
        unseen_right=_right(unseen),
        unseen_direct=sum(f"{_SERVER}/{_TOOL}" in answer.direct_tools for answer in unseen.answers),
        stale=tuple(stale),
        after=len(after.answers),
        after_right=_right(after),
        after_direct=sum(answer.direct for answer in after.answers),
        until_direct=_until_direct(after.answers),
        recovered=(
            *(f"{one.skill}@{one.version}: {one.step}" for one in taken),
            *(f"{name} is {head.state}" for name, head in states.items() if head is not None),
        ),
        wrong_direct=sum(answer.direct and not answer.direct_right for answer in later),
    )


def _updated() -> dict[str, tuple[str, ...]]:
    server = next(one for one in DEMO_SERVERS if one.name == _SERVER)
    return {_SERVER: renamed_command(_TOOL, _OLD, _NEW, tuple(server.command()))}


def _right(played: Played) -> int:
    return sum(answer.right for answer in played.answers)


def _over_tool(answers: Sequence[Answer]) -> list[Answer]:
    return [answer for answer in answers if _TOOL in answer.task.family.tools]


def _until_direct(answers: Sequence[Answer]) -> int | None:
    """Return how many tasks of the changed tool came before the first that a skill answered."""
    routes = [answer.direct for answer in _over_tool(answers)]
    return routes.index(True) if True in routes else None
