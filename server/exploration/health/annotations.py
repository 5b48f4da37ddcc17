"""Whether what a tool says of itself holds: one that says it only reads, and changes what another answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from server.exploration.arguments import is_server_made
from server.exploration.observation import Observation
from server.planning.leaves import leaves_of_value

__all__ = ["Contradiction", "contradictions"]


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A tool that says it only reads, with two equal looks between which it made the difference."""

    change: Observation
    without: Observation
    after: Observation


@dataclass(frozen=True, slots=True)
class _Look:
    """One answer, with what its process had been asked before."""

    call: Observation
    before: frozenset[str]
    """Tools, its own among them where it was called before."""
    place: int
    """Calls that its process had answered, a measure of its age."""


def contradictions(observations: Sequence[Observation]) -> list[Contradiction]:
    """Return the tools annotated as read-only that change what an equal call of another tool answers.

    Told from a clock or a process that differs by itself: without the tool the answer is the same in
    two processes at least, at an age that is no less, and every other tool that was called before the
    changed answer was called before an unchanged one too.
    """
    found: dict[str, Contradiction] = {}
    for looks in _looks(observations).values():
        for suspect in sorted({name for look in looks for name in look.before}):
            if suspect not in found and (shown := _shown_by(suspect, looks, observations)) is not None:
                found[suspect] = shown
    return list(found.values())


def _looks(observations: Sequence[Observation]) -> dict[str, list[_Look]]:
    before: dict[int, set[str]] = defaultdict(set)
    place: dict[int, int] = defaultdict(int)
    found: dict[str, list[_Look]] = defaultdict(list)
    for call in observations:
        tool, process = call.probe.tool.id.tool, call.session
        if call.succeeded and not call.probe.breaks_schema:
            found[call.probe.key].append(_Look(call, frozenset(before[process]), place[process]))
        before[process].add(tool)
        place[process] += 1
    return found


def _shown_by(suspect: str, looks: list[_Look], observations: Sequence[Observation]) -> Contradiction | None:
    looker = looks[0].call.probe.tool.id.tool
    without = [look for look in looks if suspect not in look.before]
    after = [look for look in looks if suspect in look.before]
    if suspect == looker or len({look.call.session for look in without}) < 2:
        return None
    usual = without[0].call.output
    if any(look.call.output != usual for look in without[1:]):
        return None
    cleared = frozenset(name for look in without for name in look.before) | {suspect, looker}
    oldest = max(look.place for look in without)
    for look in after:
        if look.before <= cleared and look.place <= oldest + 1 and _differs(look.call.output, usual):
            change = _last_call(suspect, look.call, observations)
            if change.probe.tool.annotations.read_only and change.succeeded:
                return Contradiction(change, without[0].call, look.call)
    return None


def _last_call(tool: str, look: Observation, observations: Sequence[Observation]) -> Observation:
    earlier = (o for o in reversed(observations[: look.number]) if o.session == look.session)
    return next(o for o in earlier if o.probe.tool.id.tool == tool)


def _differs(output: JsonValue, usual: JsonValue) -> bool:
    """Return whether two answers differ in more than times, paths and handles."""
    return list(_plain(output)) != list(_plain(usual))


def _plain(output: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    for leaf in leaves_of_value(output):
        if not isinstance(leaf.value, dict | list) and not is_server_made(leaf.key, leaf.value):
            yield leaf.pointer, leaf.value
