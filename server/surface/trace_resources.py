"""What happened, as resources: kept runs whole, the story of an episode, conversations.

`trace://runs/{id}` is the trace of a run or of a relayed call as it is kept; `episode://runs/{id}` tells the
same as what a person asks of it: which way it went and why, what was called, how it came out and who says
so. `episode://conversations/{name}` has the calls that belong together.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

import mcp.types as types
from pydantic import JsonValue

from server.bank.errors import UnknownTrace
from server.surface.port import BankPort
from server.surface.remedies import render_fault
from server.surface.sources import Wanted, json_contents, json_resource, json_template, text_contents
from skills_store.trace import Step, Trace

__all__ = ["TraceResources"]

_RUNS = "trace://runs"
_EPISODES = "episode://runs"
_CONVERSATIONS = "episode://conversations"
_LISTED = 100
_RESOURCES = [
    json_resource(
        _RUNS,
        "runs",
        "Latest runs",
        f"The {_LISTED} newest runs and relayed calls, with the addresses of their traces.",
    ),
    json_resource(
        _EPISODES,
        "episodes",
        "Latest episodes",
        "The newest runs that had a task: task, route, status and who verified it.",
    ),
    json_resource(
        _CONVERSATIONS,
        "conversations",
        "Conversations",
        "Calls through call_tool that belong together, which save_skill can compile.",
    ),
]
_TEMPLATES = [
    json_template(
        f"{_RUNS}/{{id}}",
        "run",
        "The trace of one run or relayed call: every step with arguments, output and fault.",
    ),
    json_template(
        f"{_EPISODES}/{{id}}",
        "episode",
        "The story of one run: route and reasons, calls, outcome, verifications, faults.",
    ),
    json_template(
        f"{_CONVERSATIONS}/{{name}}",
        "conversation",
        "The calls of one conversation in the order they were made.",
    ),
]


class TraceResources:
    """The kept traces and conversations of a bank."""

    def __init__(self, bank: BankPort) -> None:
        self._bank = bank

    def resources(self) -> list[types.Resource]:
        """Return the lists of the newest."""
        return _RESOURCES

    def templates(self) -> list[types.ResourceTemplate]:
        """Return the templates of single runs and conversations."""
        return _TEMPLATES

    async def read(self, uri: str) -> types.ReadResourceResult | None:
        """Return a list, a trace, an episode or a conversation."""
        place, _, name = uri.partition("://")[2].partition("/")
        match uri.partition("://")[0], place, unquote(name):
            case "trace", "runs", "":
                return _listed(uri, "runs", [_line(trace) for trace in self._bank.recent_traces(_LISTED)])
            case "episode", "runs", "":
                with_task = [t for t in self._bank.recent_traces(_LISTED) if t.task is not None]
                return _listed(uri, "episodes", [_line(trace) for trace in with_task])
            case "episode", "conversations", "":
                found = (await self._bank.recordings(_LISTED)).recordings
                return _listed(uri, "conversations", [one.model_dump(mode="json") for one in found])
            case "trace", "runs", trace_id:
                trace = self._bank.trace(trace_id)
                return None if trace is None else text_contents(uri, trace.model_dump_json())
            case "episode", "runs", trace_id:
                trace = self._bank.trace(trace_id)
                return None if trace is None else json_contents(uri, _story(trace))
            case "episode", "conversations", conversation:
                return await self._conversation(uri, conversation)
            case _:
                return None

    def complete(self, wanted: Wanted) -> list[str] | None:
        """Return ids of the newest runs; conversations have to be known."""
        if not wanted.is_of(_TEMPLATES):
            return None
        if wanted.argument == "name":
            names = (trace.recording for trace in self._bank.recent_traces(_LISTED))
            return [quote(name, safe="") for name in dict.fromkeys(names) if name is not None]
        return [trace.id for trace in self._bank.recent_traces(_LISTED)]

    async def _conversation(self, uri: str, name: str) -> types.ReadResourceResult | None:
        try:
            found = await self._bank.show_recording(name)
        except UnknownTrace:
            return None
        return text_contents(uri, found.model_dump_json())


def _listed(uri: str, key: str, entries: list[JsonValue]) -> types.ReadResourceResult:
    return json_contents(uri, {key: entries})


def _line(trace: Trace) -> JsonValue:
    return {
        "id": trace.id,
        "task": trace.task,
        "status": trace.status,
        "route": trace.route,
        "calls": trace.calls,
        "seconds": trace.seconds,
        "started_at": trace.started_at,
        "trace": f"{_RUNS}/{trace.id}",
        "episode": f"{_EPISODES}/{trace.id}",
    }


def _story(trace: Trace) -> JsonValue:
    return {
        **(line if isinstance(line := _line(trace), dict) else {}),
        "route_reasons": [*trace.route_reasons],
        "level": trace.level,
        "steps": [_step(step) for step in trace.steps],
        "outputs": trace.outputs,
        "faults": [render_fault(fault) for fault in trace.faults],
        "verifications": [said.model_dump(mode="json") for said in trace.verifications],
        "workflow": trace.workflow,
        "conversation": trace.recording,
    }


def _step(step: Step) -> JsonValue:
    return {
        "node": step.node,
        "item": step.item,
        "called": str(step.tool) if step.tool is not None else step.skill,
        "outcome": step.outcome,
        "effect": step.effect.value,
        "seconds": step.seconds,
        "from_memory": step.from_memory,
        "fault": render_fault(step.fault) if step.fault is not None else None,
    }
