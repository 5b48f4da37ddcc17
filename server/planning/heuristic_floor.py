"""The paper's fallback planner, by name: the tools whose words the task shares, in a row, no arguments.

It is a floor to compare with, never what a task is really planned by (`server.planning.deterministic`).

Paper: EvoFlux (heuristic fallback, a deterministic execution floor; facts §1.6). Differs: a workflow here
declares outputs, so each wanted one reads the last tool's whole answer, where the paper has a model
put the answers into words.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from catalog.similarity import words
from catalog.tools import Snapshot, Tool
from catalog.vocabulary import STOP_WORDS
from server.planning.deterministic import inputs_schema
from server.planning.view import World
from skills_store.workflow.model import Node, Workflow
from skills_store.workflow.references import Reference

__all__ = ["plan_heuristic_floor"]

_MOST_STEPS = 3
_NAMED_SERVER = 10
"""What a tool gains whose server the task was said to need: the paper's."""


def plan_heuristic_floor(
    world: World,
    wanted: Sequence[str] = (),
    *,
    servers: Sequence[str] = (),
    max_steps: int = _MOST_STEPS,
) -> Workflow | None:
    """Return the floor's plan for the task of a world, None where no tool shares a word with it.

    Args:
        world: task and tools; its inputs are declared and read by nobody.
        wanted: names of the outputs; empty: one output `result`.
        servers: those the task is said to need.
        max_steps: tools at most, and never more than three.
    """
    chosen = _ranked(world.snapshot, world.task, frozenset(servers))[: max(0, min(max_steps, _MOST_STEPS))]
    if not chosen:
        return None
    ids = [f"t{place}" for place in range(1, len(chosen) + 1)]
    nodes = tuple(
        Node(id=ids[place], tool=tool.id, after=(ids[place - 1],) if place else ())
        for place, tool in enumerate(chosen)
    )
    last = str(Reference("nodes", ids[-1]))
    outputs: dict[str, JsonValue] = dict.fromkeys(wanted or ("result",), last)
    return Workflow(name="floor", inputs=inputs_schema(world), nodes=nodes, outputs=outputs)


def _ranked(snapshot: Snapshot, task: str, servers: frozenset[str]) -> list[Tool]:
    asked = set(words(task)) - STOP_WORDS

    def score(tool: Tool) -> int:
        said = set(words(f"{tool.id.server} {tool.id.tool} {tool.description}"))
        return len(asked & said) + (_NAMED_SERVER if tool.id.server in servers else 0)

    scored = [(score(tool), tool) for tool in snapshot]
    return [tool for _, tool in sorted((s for s in scored if s[0]), key=lambda pair: (-pair[0], pair[1].id))]
