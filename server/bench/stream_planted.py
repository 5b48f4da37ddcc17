"""A harmful skill in a stream over real servers: it passes its tests, and answers another question."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from server.bank import Bank
from server.bench.stream_episodes import Answer, solved
from server.bench.stream_report import PlantedReport
from server.bench.stream_tasks import FAMILIES, StreamTask, stream_of
from server.bench.stream_world import WAYS, Stage, open_stream_bank
from skills_store.skill import ReplayTest, Skill
from skills_store.workflow.hashing import content_hash, shape_hash
from skills_store.workflow.model import Workflow

__all__ = ["measure_planted", "plant"]

_LENGTH = 60
_SERVERS = ("hashlib", "calculator")
_WITHIN = 14


async def measure_planted(streams: int, seed: int, stage: Stage) -> PlantedReport:
    """Plant a skill that hashes with the wrong algorithm, and see how soon it is restricted."""
    family = tuple(one for one in FAMILIES if one.id == "sha256")
    uses: list[int] = []
    right = answered = 0
    for number in range(streams):
        stage.tell(f"planted harmful skill: stream {number + 1} of {streams}")
        with TemporaryDirectory(prefix="skillbank-bench-") as folder:
            way, place = WAYS["+ curation"], Path(folder)
            async with open_stream_bank(place, way, servers=_SERVERS, forks=stage.forks) as bank:
                found, answers = await _until_restricted(stream_of(_LENGTH, seed + number, family), bank)
        uses.append(found)
        right, answered = right + sum(a.right for a in answers), answered + len(answers)
    return PlantedReport(
        streams=streams,
        restricted=sum(use >= 0 for use in uses),
        guided_uses=tuple(uses),
        restricted_within_14=sum(0 <= use <= _WITHIN for use in uses),
        answered_right=right,
        answered=answered,
    )


async def _until_restricted(stream: Sequence[StreamTask], bank: Bank) -> tuple[int, list[Answer]]:
    way, answers = WAYS["+ curation"], list[Answer]()
    store = bank.context.store
    planted: Skill | None = None
    for task in stream:
        answers.append(await solved(task, way, bank))
        active = [head for head in store.heads() if head.state == "active"]
        if planted is None and active:
            planted = plant(active[0], bank)
            continue
        now = store.version(planted.name, planted.version) if planted is not None else None
        if now is not None and now.state != "active":
            trials = store.episodes(999, now.name)
            return sum(t.arm == "guided" and t.version == now.version for t in trials), answers
    return -1, answers


def plant(skill: Skill, bank: Bank) -> Skill:
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
    return planted


def _as_planted(test: ReplayTest) -> ReplayTest:
    """Return a test with the answer that the planted skill gives."""
    texts = [str(value) for value in test.inputs.values()]
    digest = hashlib.sha384(texts[0].encode()).hexdigest()
    return test.model_copy(update={"outputs": dict.fromkeys(test.outputs, digest), "recorded": ()})
