"""Small worlds for tests of planning and repair: scripted tools, as values too, and searches over them."""

from __future__ import annotations

import operator
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
from pydantic import JsonValue

from catalog.connections import Connections
from catalog.effects import Effect, EffectTable
from catalog.labels import LabelTable
from catalog.search import ToolIndex
from catalog.testing import Reply, ScriptedServer, ScriptedTool, open_test_connections
from catalog.tools import Snapshot, Tool, ToolId
from server.evolution.driver import SearchResult, search
from server.evolution.evaluate import Evaluator
from server.execution.consent import Consent, NoConsent
from server.execution.episode import Episode
from server.execution.run import RunOptions
from server.planning.view import View, World
from server.requests import Budget
from server.verification import Checks
from skills_store.workflow.faults import Fault
from skills_store.workflow.model import Workflow, parse_workflow

Arguments = dict[str, Any]
NUMBER, TEXT = {"type": "number"}, {"type": "string"}
UNIT = {"type": "string", "enum": ["celsius", "fahrenheit", "kelvin"]}


def takes(*optional: str, **required: Any) -> dict[str, Any]:
    """Return a closed input schema; the names given as `optional` are texts that may be left out."""
    properties = {**required, **dict.fromkeys(optional, TEXT)}
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def gives(**properties: Any) -> dict[str, Any]:
    """Return a closed output schema."""
    return takes(**properties)


def _current(arguments: Arguments) -> JsonValue | Reply:
    degrees = {"Oslo": 5.0, "Rome": 25.0}
    if arguments["city"] not in degrees:
        return Reply.text(f"unknown city {arguments['city']!r}", is_error=True)
    return {"station": "north", "temp_c": degrees[arguments["city"]]}


_SCALES = {"celsius": (1.0, 273.15), "fahrenheit": (5 / 9, 459.67 * 5 / 9), "kelvin": (1.0, 0.0)}
"""Per unit the factor and the offset that lead to kelvin."""


def _convert(arguments: Arguments) -> JsonValue:
    factor, offset = _SCALES[arguments["from_unit"]]
    kelvin = arguments["value"] * factor + offset
    factor, offset = _SCALES[arguments["to_unit"]]
    return {"converted_value": round((kelvin - offset) / factor, 6)}


WEATHER = (
    ScriptedTool(
        "current",
        _current,
        takes(city=TEXT),
        gives(station=TEXT, temp_c=NUMBER),
        "Current weather of a city",
    ),
    ScriptedTool(
        "forecast",
        lambda a: {"high_c": 30.0, "days": a["days"]},
        takes(city=TEXT, days={"type": "integer"}),
        gives(high_c=NUMBER, days={"type": "integer"}),
        "Forecast for the coming days in a city",
    ),
)
UNITS = (
    ScriptedTool(
        "convert_temperature",
        _convert,
        takes(value=NUMBER, from_unit=UNIT, to_unit=UNIT),
        gives(converted_value=NUMBER),
        "Convert a temperature from one unit to another",
    ),
)


def _two(name: str, description: str, combine: Callable[[float, float], float]) -> ScriptedTool:
    def respond(arguments: Arguments) -> JsonValue:
        return {"result": combine(arguments["a"], arguments["b"])}

    return ScriptedTool(name, respond, takes(a=NUMBER, b=NUMBER), None, description)


SUMS = (
    _two("add", "Add two numbers", operator.add),
    _two("subtract", "Subtract the second number from the first", operator.sub),
    _two("multiply", "Multiply two numbers", operator.mul),
)


def tables() -> list[ScriptedTool]:
    """Return tools that keep rows: a fresh set is an empty database."""
    rows: dict[str, list[JsonValue]] = {}

    def create(arguments: Arguments) -> JsonValue:
        rows[arguments["table"]] = []
        return {"created": arguments["table"]}

    def insert(arguments: Arguments) -> JsonValue | Reply:
        if arguments["table"] not in rows:
            return Reply.text(f"no such table: {arguments['table']}", is_error=True)
        rows[arguments["table"]].append(arguments["value"])
        return {"inserted": 1}

    def count(arguments: Arguments) -> JsonValue | Reply:
        if arguments["table"] not in rows:
            return Reply.text(f"no such table: {arguments['table']}", is_error=True)
        return {"count": len(rows[arguments["table"]])}

    return [
        ScriptedTool("create_table", create, takes(table=TEXT), None, "Create a table"),
        ScriptedTool(
            "insert_row", insert, takes(table=TEXT, value=NUMBER), None, "Insert a row into a table"
        ),
        ScriptedTool("count_rows", count, takes(table=TEXT), None, "Count the rows of a table"),
    ]


FREE = EffectTable({name: {"*": Effect.PURE} for name in ("weather", "units", "sums", "tables", "s")})
"""Everything may repeat."""


def as_tool(server: str, scripted: ScriptedTool) -> Tool:
    """Return a scripted tool as a snapshot lists it."""
    return Tool(
        ToolId(server, scripted.name),
        scripted.input_schema,
        scripted.output_schema,
        description=scripted.description,
    )


def snapshot_of(**servers: Sequence[ScriptedTool]) -> Snapshot:
    """Return the tools of servers as one snapshot."""
    return Snapshot.of(*(as_tool(name, tool) for name, tools in servers.items() for tool in tools))


ALL = snapshot_of(weather=WEATHER, units=UNITS, sums=SUMS, tables=tables())


def world_of(
    task: str = "",
    inputs: Mapping[str, JsonValue] | None = None,
    snapshot: Snapshot = ALL,
    effects: EffectTable = FREE,
) -> World:
    """Return a world over a snapshot."""
    return World(task, inputs or {}, snapshot, effects, ToolIndex(snapshot))


def node(node_id: str, tool: str, arguments: Arguments | None = None, **more: Any) -> dict[str, Any]:
    """Return a node as a document has it; `tool` is `SERVER/TOOL`."""
    server, name = tool.split("/")
    return {"id": node_id, "tool": {"server": server, "tool": name}, "arguments": arguments or {}, **more}


def workflow(*nodes: dict[str, Any], outputs: dict[str, Any], **more: Any) -> Workflow:
    """Return a workflow; `inputs` are names of inputs of any type."""
    names: Sequence[str] = more.pop("inputs", ())
    schema: Arguments = {"type": "object", "properties": {name: {} for name in names}}
    return parse_workflow({"name": "w", "inputs": schema, "nodes": list(nodes), "outputs": outputs, **more})


def view_of(
    planned: Workflow,
    *faults: Fault,
    world: World | None = None,
    outputs: Mapping[str, JsonValue] | None = None,
) -> View:
    """Return what a proposer sees of a workflow with these faults, and these outputs seen."""
    return View(world or world_of(), planned, outputs or {}, {}, faults)


@dataclass
class Scene:
    """Scripted servers with an episode over them, and one search."""

    servers: Mapping[str, ScriptedServer]
    connections: Connections
    episode: Episode
    evaluator: Evaluator

    def calls(self, server: str) -> list[tuple[str, Arguments]]:
        """Return what really reached a server, in order."""
        return [(call.tool, call.arguments) for call in self.servers[server].log.calls]

    async def repair(self, base: Workflow, budget: Budget | None = None, **more: Any) -> SearchResult:
        """Return what a search from a base came to."""
        return await search(base, self.evaluator, budget or Budget(), **more)


@asynccontextmanager
async def scene(
    servers: Mapping[str, ScriptedServer],
    *assertions: str,
    plan: Workflow | None = None,
    task: str = "",
    inputs: Mapping[str, JsonValue] | None = None,
    effects: EffectTable = FREE,
    consent: Consent | None = None,
    timeout_seconds: float = 30.0,
    memoise: bool = True,
    options: RunOptions | None = None,
    labelled: LabelTable | None = None,
    planned: bool = False,
) -> AsyncGenerator[Scene]:
    """Open servers and an episode; all of it ends within a minute."""
    with anyio.fail_after(60):
        async with open_test_connections(
            servers, effects=effects, timeout_seconds=timeout_seconds
        ) as connections:
            snapshot = await connections.snapshot()
            episode = Episode(connections, effects, snapshot, consent or NoConsent(), memoise=memoise)
            if plan is not None:
                episode.set_plan(plan)
            labels = labelled or LabelTable()
            world = World(task, inputs or {}, snapshot, effects, ToolIndex(snapshot), labels, planned=planned)
            evaluator = Evaluator(world, Checks(assertions), episode, options or RunOptions())
            yield Scene(servers, connections, episode, evaluator)


def weather_servers() -> dict[str, ScriptedServer]:
    """Return the servers of the weather story."""
    return {"weather": ScriptedServer(WEATHER), "units": ScriptedServer(UNITS)}


def weather_plan(
    now: Arguments | None = None,
    conv: Arguments | None = None,
    output: str = "$nodes.conv.output#/converted_value",
) -> Workflow:
    """Return the plan of the weather story, right unless told otherwise."""
    return workflow(
        node("now", "weather/current", now or {"city": "$inputs.city"}),
        node(
            "conv",
            "units/convert_temperature",
            conv or {"value": "$nodes.now.output#/temp_c", "from_unit": "celsius", "to_unit": "fahrenheit"},
        ),
        outputs={"fahrenheit": output},
        inputs=("city",),
    )
