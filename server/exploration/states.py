"""States of a server: what changes it is called in a fresh process, and what looks at it is asked after.

Paper: AgentEvolver (self-questioning, interesting states are kept; facts §4.2). Differs: a state is
interesting where a tool that only looks answers otherwise than in a fresh process.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from pydantic import JsonValue

from catalog.similarity import words
from catalog.tools import Tool, ToolId
from server.exploration.arguments import is_handle, is_server_made, required_arguments
from server.exploration.breadth import first_successes
from server.exploration.equal_calls import volatile_tools
from server.exploration.lexicon import is_statement
from server.exploration.observation import Observation, Probe
from server.exploration.session import ExplorationSession
from server.planning.leaves import leaves_of_value

__all__ = ["Shown", "StateSearch"]

_MAKES: Final = frozenset(
    {"add", "append", "create", "insert", "make", "new", "put", "register", "save", "set", "store", "write"}
)
_ENDS: Final = frozenset(
    {"clear", "close", "delete", "drop", "remove", "reset", "rollback", "shutdown", "stop"}
)
_LOOKED: Final = 8
"""Tools that may look at what one change did."""
_LOOKS: Final = 4
"""Of them, those that look at one state."""
_SECOND: Final = 3
"""Changes that are tried after a first one."""
_SOURCES_DEEP: Final = 3


@dataclass(frozen=True, slots=True)
class Shown:
    """What one look shows of a state."""

    changes: tuple[int, ...]
    """Numbers of the changes that were made before it in its process."""
    fresh: JsonValue
    """What it answers in a fresh process, None where it fails there."""
    before: JsonValue
    """What it answered before the last change, None where it failed."""


@dataclass
class StateSearch:
    """Changes the server in fresh processes and looks at what came of it.

    Attributes:
        shown: by number of a look, what it shows.
    """

    session: ExplorationSession
    shown: dict[int, Shown] = field(default_factory=dict[int, Shown])
    _fresh: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """What each look answers in a fresh process, None where it fails."""
    _templates: dict[str, Observation] = field(default_factory=dict[str, Observation])

    async def run(self) -> None:
        """Go from one change to the next while the budget lasts.

        Raises:
            BudgetSpent: the budget of the session ended.
        """
        self._templates = _templates(self.session.observations)
        for change in self._changes():
            looks = self._looks_at(change)
            if looks:
                await self._see_fresh(change, looks)
                await self._walk(change, looks)

    def _changes(self) -> list[Tool]:
        """Return the tools a walk may begin with, those that make something and share arguments first."""
        scope = self.session.scope
        worked = {o.probe.tool.id.tool for o in first_successes(self.session.observations)}
        found = [t for t in scope.allowed if t.id.tool in scope.changing & worked and not _is(t, _ENDS)]
        return sorted(found, key=lambda t: (not _is(t, _MAKES), -len(self._sharing(t, looking=True))))

    def _looks_at(self, change: Tool) -> list[Tool]:
        """Return the tools that may show what a change did: they share an argument with it, or need none."""
        volatile = volatile_tools(self.session.observations, self.session.scope.changing)
        sharing = self._sharing(change, looking=True)
        bare = [tool for tool in self._others(change, looking=True) if not _plain_arguments(tool)]
        found = [t for t in (*sharing, *bare) if t.id.tool not in volatile and self._can_be_called(t)]
        alone_first = sorted(found, key=lambda tool: len(self._sources_of(tool)))
        return list({tool.id.tool: tool for tool in alone_first}.values())[:_LOOKED]

    def _sharing(self, tool: Tool, *, looking: bool) -> list[Tool]:
        named, said = set(_plain_arguments(tool)), " ".join(map(str, self._values(tool, {}).values()))
        others = self._others(tool, looking=looking)
        return [
            t for t in others if named & set(_plain_arguments(t)) or (looking and self._is_about(t, said))
        ]

    def _is_about(self, look: Tool, said: str) -> bool:
        """Return whether a look asks for something that a change is told, in whatever words."""
        asked = [value for value in self._values(look, {}).values() if isinstance(value, str) and value]
        return any(re.search(rf"\b{re.escape(value)}\b", said) for value in asked)

    def _following(self, change: Tool) -> list[Tool]:
        """Return the changes that may follow one: they share an argument with it, or read what it answers."""
        reading = [t for t in self._others(change, looking=False) if change.id in self._sources_of(t)]
        found = (*reading, *self._sharing(change, looking=False))
        return list({tool.id.tool: tool for tool in found}.values())

    def _sources_of(self, tool: Tool) -> list[ToolId]:
        """Return the tools whose answers a tool was given values of."""
        template = self._templates.get(tool.id.tool)
        origins = template.probe.origins.values() if template is not None else ()
        return [self.session.observations[origin.observation].probe.tool.id for origin in origins]

    def _can_be_called(self, tool: Tool) -> bool:
        """Return whether it is known where each handle that a tool needs comes from."""
        template = self._templates.get(tool.id.tool)
        known = template.probe.origins if template is not None else {}
        return all(name in known for name in required_arguments(tool) if is_handle(name))

    def _others(self, tool: Tool, *, looking: bool) -> list[Tool]:
        scope = self.session.scope
        return [t for t in scope.allowed if t is not tool and looking == (t.id.tool not in scope.changing)]

    async def _see_fresh(self, change: Tool, looks: Iterable[Tool]) -> None:
        """Ask what looks at a change in a fresh process, each once in an exploration."""
        values = self._values(change, {})
        unseen = [tool for tool in looks if self._asked(tool, values) not in self._fresh]
        if unseen:
            await self.session.renew()
        for tool in unseen:
            seen = await self._made(tool, values)
            self._fresh[self._asked(tool, values)] = seen.output if seen.succeeded else None

    async def _walk(self, change: Tool, looks: list[Tool]) -> None:
        """Make a change in a fresh process, look, and go on from there with changes of the same thing."""
        await self.session.renew()
        values = self._values(change, {})
        first = await self._made(change, values)
        if not first.succeeded:
            return
        shown = await self._look(looks, values, {})
        further = [t for t in self._following(change) if self._can_be_called(t)]
        for tool in sorted(further, key=_as_second)[:_SECOND]:
            then = await self._made(tool, values)
            if then.succeeded:
                shown = await self._look(looks, values, shown)

    async def _look(
        self,
        looks: Iterable[Tool],
        values: Mapping[str, JsonValue],
        shown: Mapping[str, JsonValue],
    ) -> Mapping[str, JsonValue]:
        """Look at a state through what showed the last one or was not asked; return what each shows."""
        now = dict(shown)
        telling = [t for t in looks if shown.get(t.id.tool, "") != self._fresh.get(self._asked(t, values))]
        for tool in telling[:_LOOKS]:
            seen = await self._made(tool, values)
            fresh = self._fresh.get(self._asked(tool, values))
            before = shown.get(tool.id.tool, fresh)
            if seen.succeeded and _says_more(seen.output, before):
                self.shown[seen.number] = Shown(self._changes_before(seen), fresh, before)
            now[tool.id.tool] = seen.output
        return now

    def _changes_before(self, seen: Observation) -> tuple[int, ...]:
        """Return the changes that were made in the process before a look."""
        earlier = self.session.observations[: seen.number]
        changing = self.session.scope.changing
        made = (o for o in earlier if o.session == seen.session and o.succeeded)
        return tuple(o.number for o in made if o.probe.tool.id.tool in changing)

    def _asked(self, tool: Tool, values: Mapping[str, JsonValue]) -> str:
        return Probe(tool, self._values(tool, values), "after_change").key

    async def _made(self, tool: Tool, values: Mapping[str, JsonValue], deep: int = 0) -> Observation:
        """Call a tool with the values of a walk, after the calls that give it the handles it needs."""
        arguments = self._values(tool, values)
        template = self._templates.get(tool.id.tool)
        for name, origin in template.probe.origins.items() if template is not None else ():
            held = self.session.held(origin)
            if held is None and deep < _SOURCES_DEEP:
                source = self.session.observations[origin.observation].probe
                await self._made(source.tool, source.arguments, deep + 1)
                held = self.session.held(origin)
            if held is not None:
                arguments[name] = held
        return await self.session.call(Probe(tool, arguments, "after_change"))

    def _values(self, tool: Tool, values: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Return arguments without handles: those of the walk by name, else ones that worked or may work."""
        template = self._templates.get(tool.id.tool)
        given = dict(template.probe.arguments) if template is not None and template.succeeded else {}
        for name in required_arguments(tool):
            if name not in given and (options := self.session.known.candidates(tool, name, 1)):
                given[name] = options[0]
        read = set(template.probe.origins) if template is not None else set[str]()
        told = {name: value for name, value in values.items() if not is_statement(value)}
        return {n: told.get(n, v) for n, v in given.items() if n not in read and not is_handle(n)}


def _templates(observations: list[Observation]) -> dict[str, Observation]:
    """Return the first success of each tool, and of those without one the last call its schema allows."""
    found = {o.probe.tool.id.tool: o for o in observations if not o.probe.breaks_schema}
    return {**found, **{o.probe.tool.id.tool: o for o in first_successes(observations)}}


def _says_more(output: JsonValue, before: JsonValue) -> bool:
    """Return whether an answer has what the one before has not, times and handles aside."""
    known = [(leaf.pointer, leaf.value) for leaf in leaves_of_value(before)]
    new = (leaf for leaf in leaves_of_value(output) if (leaf.pointer, leaf.value) not in known)
    scalars = (leaf for leaf in new if not isinstance(leaf.value, dict | list))
    return any(not is_server_made(leaf.key, leaf.value) for leaf in scalars)


def _plain_arguments(tool: Tool) -> list[str]:
    """Return the names of what a tool must be given and what is no handle."""
    return [name for name in required_arguments(tool) if not is_handle(name)]


def _is(tool: Tool, verbs: frozenset[str]) -> bool:
    return not verbs.isdisjoint(words(tool.id.tool))


def _as_second(tool: Tool) -> tuple[bool, bool, bool]:
    """Return what orders the changes after a first one: what makes something, then what ends nothing."""
    return words(tool.id.tool)[0] not in _MAKES, not _is(tool, _MAKES), _is(tool, _ENDS)
