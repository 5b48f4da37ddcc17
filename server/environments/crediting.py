"""What each call of an episode was good for: the labels of `server.attribution`, over plain calls.

An agent sends values, not references: a value that an earlier call gave is taken as read from there, and
so is one of the answer. A call that may have changed something counts, whether or not it is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from catalog.canonical import digest
from server.attribution.advantage import Trajectory, advantages
from server.attribution.labels import StepLabel

__all__ = ["Episode", "MadeCall", "group_advantages", "label_calls"]

_TOO_COMMON = frozenset({"", "0", "1", "-1", "true", "false", "none", "null"})


@dataclass(frozen=True, slots=True)
class MadeCall:
    """One call of an episode as it went."""

    tool: str
    arguments: dict[str, JsonValue]
    output: JsonValue
    is_error: bool


@dataclass(frozen=True, slots=True)
class Episode:
    """A finished episode: its calls, its answer, and its reward in [0, 1]."""

    calls: tuple[MadeCall, ...]
    answer: JsonValue
    reward: float


def label_calls(episode: Episode) -> tuple[StepLabel, ...]:
    """Return a label for each call, `c1` first.

    A failed call is bad, and one that repeats the call right before it and gives the same. One that
    nothing reads is bad where the episode has an answer that reads others.
    """
    reads = _readers(episode)
    labels: list[StepLabel] = []
    before = ""
    judges_reading = bool(reads)
    for number, call in enumerate(episode.calls):
        node, action = f"c{number + 1}", f"{call.tool} {digest(call.arguments)} {digest(call.output)}"
        if call.is_error:
            labels.append(StepLabel(node, "bad", "execution", "it failed"))
        elif action == before:
            labels.append(
                StepLabel(node, "bad", "execution", "an earlier call was the same and gave the same")
            )
        elif judges_reading and number not in reads:
            labels.append(StepLabel(node, "bad", "execution", "nothing that counts reads it"))
        else:
            labels.append(StepLabel(node, "good", "execution", "it ran, and what counts reads it"))
        before = action
    return tuple(labels)


def group_advantages(group: Sequence[Episode]) -> list[list[float]]:
    """Return the advantage of each call of each episode of one task; empty for one without calls."""
    played = [episode for episode in group if episode.calls]
    found = iter(advantages([_trajectory(episode) for episode in played])) if played else iter(())
    return [next(found) if episode.calls else [] for episode in group]


def _trajectory(episode: Episode) -> Trajectory:
    rewards = tuple(1.0 if label.label == "good" else -1.0 for label in label_calls(episode))
    return Trajectory(rewards, episode.reward)


def _readers(episode: Episode) -> frozenset[int]:
    """Return the calls that the answer stands on, directly or through later calls; none without an answer."""
    outputs = [frozenset(_words(call.output)) for call in episode.calls]
    reads: set[int] = set()
    waiting = [(len(outputs), frozenset(_words(episode.answer)))]
    while waiting:
        end, wanted = waiting.pop()
        for number in range(end):
            if number not in reads and wanted & outputs[number]:
                reads.add(number)
                waiting.append((number, frozenset(_words(episode.calls[number].arguments))))
    return frozenset(reads)


def _words(value: JsonValue) -> Iterator[str]:
    """Yield the words and numbers of a value that are telling enough to be recognised elsewhere."""
    match value:
        case dict():
            for item in value.values():
                yield from _words(item)
        case list():
            for item in value:
                yield from _words(item)
        case str():
            yield from (w for w in re.findall(r"[\w.@#-]+", value.lower()) if w not in _TOO_COMMON)
        case bool() | None:
            return
        case _:
            text = f"{value:g}"
            if text not in _TOO_COMMON:
                yield text
