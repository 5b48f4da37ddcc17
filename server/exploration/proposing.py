"""Calls that a model proposes beside the deterministic ones: what it would like to try next.

Paper: AgentEvolver (exploration by a model at high temperature, visited pairs of action and state
avoided; facts §4.2). Differs: it only proposes arguments; what breaks a schema or was made in this
state already is dropped, and which tools may be called is not its to say.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence, Set
from typing import cast

from pydantic import JsonValue

from catalog.schema import is_valid
from catalog.tools import Tool
from server.backends.backend import Completion, Message, Request
from server.exploration.observation import Observation, Probe, state_now, states
from server.planning.conversation import Conversation

__all__ = ["propose_calls"]

_TOOLS_SHOWN = 40
_VISITED_SHOWN = 40
_CALLS = 6


def propose_calls(
    tools: Sequence[Tool],
    observations: Sequence[Observation],
    seed: int,
    changing: Set[str] = frozenset(),
    session: int = 0,
) -> Conversation[list[Probe]]:
    """Ask a model for calls that nobody made yet; return the valid new ones.

    Yields: one request at temperature 1.

    Args:
        tools: that may be called.
        observations: in order.
        seed: of the model.
        changing: names of the tools that may change what later calls answer.
        session: number of the process that would answer.
    """
    now = state_now(observations, changing, session)
    been = zip(observations, states(observations, changing), strict=True)
    made = [call for call, state in been if state == now]
    visited = {call.probe.key for call in made}
    completion: Completion = yield Request(
        (Message("user", _prompt(tools, made)),),
        schema=_SCHEMA,
        schema_name="calls",
        temperature=1.0,
        seed=seed,
        max_output_tokens=700,
    )
    by_name = {tool.id.tool: tool for tool in tools}
    probes = [probe for call in _calls(completion.text) if (probe := _probe(call, by_name)) is not None]
    fresh = {probe.key: probe for probe in probes if probe.key not in visited}
    return list(fresh.values())


_SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {
        "calls": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"tool": {"type": "string"}, "arguments": {"type": "object"}},
                "required": ["tool", "arguments"],
            },
        }
    },
    "required": ["calls"],
}


def _prompt(tools: Sequence[Tool], observations: Sequence[Observation]) -> str:
    listed = [_shown_tool(tool) for tool in tools[:_TOOLS_SHOWN]]
    made = [_shown_call(observation) for observation in observations[-_VISITED_SHOWN:]]
    return (
        "You explore a tool server to learn what it can do. Tools:\n"
        + "\n".join(listed)
        + "\nAlready made, do not repeat:\n"
        + "\n".join(made)
        + f"\nPropose up to {_CALLS} new calls with realistic values, untried tools first."
        + ' Answer as JSON: {"calls": [{"tool": "...", "arguments": {...}}]}'
    )


def _shown_tool(tool: Tool) -> str:
    purpose = tool.description.strip().split("\n")[0][:120]
    return f"- {tool.id.tool}({', '.join(_parameters(tool))}): {purpose}"


def _shown_call(observation: Observation) -> str:
    arguments = json.dumps(observation.probe.arguments)[:120]
    return f"- {observation.probe.tool.id.tool} {arguments} -> {'ok' if observation.succeeded else 'failed'}"


def _parameters(tool: Tool) -> list[str]:
    properties = tool.input_schema.get("properties")
    return list(properties) if isinstance(properties, dict) else []


def _calls(text: str) -> list[JsonValue]:
    try:
        answer = cast("JsonValue", json.loads(text))
    except ValueError:
        return []
    calls = answer.get("calls") if isinstance(answer, dict) else None
    return calls[:_CALLS] if isinstance(calls, list) else []


def _probe(call: JsonValue, tools: Mapping[str, Tool]) -> Probe | None:
    if not isinstance(call, dict):
        return None
    tool, arguments = tools.get(str(call.get("tool"))), call.get("arguments")
    if tool is None or not isinstance(arguments, dict) or not is_valid(tool.input_schema, arguments):
        return None
    return Probe(tool, arguments, "proposed")
