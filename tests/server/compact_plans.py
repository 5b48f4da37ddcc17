"""The recorded plans of compact models, as readings in the world they were made for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from catalog.effects import Effect, EffectTable
from catalog.search import ToolIndex
from catalog.tools import Snapshot, Tool, ToolId
from server.planning.plan_reading import PlanReading, read_plan
from server.planning.spoken_tools import Vocabulary
from server.planning.view import World

FOLDER = Path(__file__).parents[1] / "data" / "compact-plans"
FREE = ("search_files", "read_file", "query_database", "get_forecast", "convert_currency", "web_search")
EFFECTS = EffectTable(
    effects={
        "desk": {"*": Effect.WRITE, **dict.fromkeys((*FREE, "fetch_url", "summarize_text"), Effect.READ)}
    }
)


@dataclass(frozen=True)
class Recorded:
    """One answer with the task it was given to."""

    run: str
    task: dict[str, Any]
    text: str
    is_cut_off: bool
    right: bool


@cache
def snapshot() -> Snapshot:
    tools = json.loads((FOLDER / "catalog.json").read_text("utf-8"))["tools"]
    return Snapshot.of(
        *(
            Tool(ToolId("desk", t["name"]), t["input"], t["output"], description=t["description"])
            for t in tools
        )
    )


@cache
def index() -> ToolIndex:
    return ToolIndex(snapshot())


@cache
def recorded() -> tuple[Recorded, ...]:
    tasks = json.loads((FOLDER / "catalog.json").read_text("utf-8"))["tasks"]
    rows = [json.loads(line) for line in (FOLDER / "plans.jsonl").read_text("utf-8").splitlines()]
    return tuple(Recorded(r["run"], tasks[r["task"]], r["text"], r["cut_off"], r["right"]) for r in rows)


def world(task: str, inputs: Any = None) -> World:
    return World(task, inputs or {}, snapshot(), EFFECTS, index())


def vocabulary(task: str, *wanted: str, inputs: Any = None) -> Vocabulary:
    return Vocabulary(world(task, inputs), {tool.id.tool: tool for tool in snapshot()}, wanted)


def read(plan: Recorded) -> PlanReading:
    return read_plan(plan.text, vocabulary(plan.task["task"]), is_cut_off=plan.is_cut_off)
