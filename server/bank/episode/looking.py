"""Looking for inputs that a task leaves open, by few calls of free tools and without a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from catalog.effects import Activity
from catalog.result import CallSuccess
from catalog.tools import Snapshot
from server.bank.context import Context
from server.execution.calls import CallRequest
from server.execution.episode import Episode
from server.planning.router import Direct
from server.planning.slot_finding import Lookup, OpenInput, lookups, read_answer
from server.planning.view import World

__all__ = ["LookedFor", "Search", "open_inputs"]

MOST_CALLS = 5
"""Calls that are made for all open inputs of a task together."""


@dataclass(frozen=True, slots=True)
class Search:
    """Open inputs, each with the calls that may give it. `servers` have to be connected first."""

    plans: Sequence[tuple[OpenInput, list[Lookup]]]

    @property
    def servers(self) -> frozenset[str]:
        return frozenset(lookup.tool.id.server for _, found in self.plans for lookup in found)

    async def run(self, task: str, episode: Episode, snapshot: Snapshot, most_calls: int) -> LookedFor:
        """Make the calls, one after the other, until every input has a value or nothing is left."""
        result = LookedFor()
        before, limit = episode.calls, min(most_calls, MOST_CALLS)
        for wanted, plan in self.plans:
            for lookup in plan:
                if wanted.name in result.values or episode.calls - before >= limit:
                    break
                await _look(wanted, lookup, task, episode, snapshot, result)
        result.calls = episode.calls - before
        return result


@dataclass
class LookedFor:
    """What was found, by which tool, and how many calls that took."""

    values: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    by: dict[str, str] = field(default_factory=dict[str, str])
    """Tool that gave each value."""
    calls: int = 0

    def reasons(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return in words what became of each of the inputs that were looked for."""
        counted = f"{self.calls} call{'' if self.calls == 1 else 's'}"
        found = [f"{name} was found with {self.by[name]}" for name in names if name in self.by]
        lost = [f"no free tool gave {name} ({counted})" for name in names if name not in self.by]
        return (*found, *lost)


def open_inputs(direct: Direct, world: World, context: Context) -> Search:
    """Return the calls that may give the inputs which a task leaves open."""
    own = frozenset(node.tool for node in direct.skill.workflow.nodes if node.tool is not None)
    near = frozenset(tool.server for tool in own)
    properties = direct.skill.signature.input_schema.get("properties")
    schemas = properties if isinstance(properties, dict) else {}
    plans: list[tuple[OpenInput, list[Lookup]]] = []
    for name, said in direct.missing.items():
        schema = schemas.get(name)
        wanted = OpenInput(name, schema if isinstance(schema, dict) else {}, said)
        found = lookups(wanted, world, own, near)
        there = [lookup for lookup in found if lookup.tool.id.server in context.config.servers]
        plans.append((wanted, there[:MOST_CALLS]))
    return Search(plans)


async def _look(
    wanted: OpenInput, lookup: Lookup, task: str, episode: Episode, snapshot: Snapshot, result: LookedFor
) -> None:
    tool = snapshot.get(lookup.tool.id)
    if tool is None or tool.contract_hash != lookup.tool.contract_hash:
        return
    async with episode.candidate(Activity.FIRST_RUN) as caller:
        answer = await caller.call(CallRequest("look_up", None, tool.id, lookup.arguments))
    if not isinstance(answer.outcome, CallSuccess):
        return
    value = read_answer(wanted, lookup, answer.outcome.output, task)
    if value is not None:
        result.values[wanted.name], result.by[wanted.name] = value, str(tool.id)
