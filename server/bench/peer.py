"""trace2mcp on the benchmark's sessions, in an environment of its own (`server.provisioning.fetched`).

It is given more than the others: the task's values by name, which it takes as inputs, and which
calls are reads. Its workflow is translated place by place and run by the same executor.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import anyio
from pydantic import JsonValue

from catalog.effects import EffectTable
from server.bench.sessions import Session
from skills_store.skill import RecordedCall
from skills_store.workflow.model import Node, Workflow, json_pointer
from skills_store.workflow.references import Reference, escape_literal

__all__ = ["Peer"]

_CHILD = """
import json, sys
from trace2mcp import compile_trace
from trace2mcp.models import Reference

def plain(value):
    if isinstance(value, Reference):
        return {"$from": value.node_id or "", "path": list(value.path)}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value

try:
    made = compile_trace(json.load(sys.stdin), allow_side_effects=True)
    nodes = [[node.id, plain(node.arguments), list(node.depends_on)] for node in made.nodes]
    print(json.dumps({"nodes": nodes}))
except Exception as error:
    print(json.dumps({"error": f"{type(error).__name__}: {error}"}))
"""
_TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Peer:
    """trace2mcp behind an interpreter that has it."""

    python: Path
    effects: EffectTable

    async def compile(
        self, session: Session
    ) -> tuple[Workflow, dict[str, JsonValue], list[RecordedCall]] | str:
        """Return its workflow, the inputs that reproduce the session and its calls, or why there is none."""
        trace = {"inputs": session.given, "events": self._events(session)}
        with anyio.fail_after(_TIMEOUT_SECONDS):
            done = await anyio.run_process(
                [str(self.python), "-c", _CHILD],
                input=json.dumps(trace).encode(),
                check=False,
                stderr=subprocess.PIPE,
            )
        if done.returncode:
            return f"trace2mcp ended with code {done.returncode}: {done.stderr.decode()[-300:]}"
        answer = cast("dict[str, Any]", json.loads(done.stdout))
        return str(answer["error"]) if "error" in answer else _translated(answer["nodes"], session)

    def _events(self, session: Session) -> list[dict[str, JsonValue]]:
        return [
            {
                "id": f"call_{number}",
                "tool": str(call.tool),
                "arguments": call.arguments,
                "result": call.output,
                "side_effect": "read" if self.effects.effect(call.tool).is_free else "write",
            }
            for number, call in enumerate(session.calls)
        ]


def _translated(
    nodes: list[tuple[str, dict[str, JsonValue], list[str]]], session: Session
) -> tuple[Workflow, dict[str, JsonValue], list[RecordedCall]]:
    made: list[Node] = []
    recorded: list[RecordedCall] = []
    for node_id, arguments, after in nodes:
        call = session.calls[int(node_id.removeprefix("call_"))]
        translated = {key: _expression(value) for key, value in arguments.items()}
        made.append(Node(id=node_id, tool=call.tool, arguments=translated, after=tuple(after)))
        recorded.append(
            RecordedCall(node=node_id, tool=call.tool, arguments=call.arguments, output=call.output)
        )
    workflow = Workflow(
        name="by_trace2mcp",
        inputs={"type": "object", "properties": {_legal(name): {} for name in session.given}},
        nodes=tuple(made),
        outputs={"whole": f"$nodes.{made[-1].id}.output"},
    )
    inputs = {_legal(name): value for name, value in session.given.items()}
    return workflow, {name: value for name, value in inputs.items() if _is_read(name, workflow)}, recorded


def _is_read(name: str, workflow: Workflow) -> bool:
    return any(f"$inputs.{name}" in json.dumps(node.arguments) for node in workflow.nodes)


def _expression(value: JsonValue) -> JsonValue:
    match value:
        case {"$from": str(node), "path": list(path)}:
            parts = [part for part in path if isinstance(part, str | int)]
            if node:
                return str(Reference("nodes", node, json_pointer(*parts)))
            return str(Reference("inputs", _legal(str(parts[0])), json_pointer(*parts[1:])))
        case dict():
            return {key: _expression(item) for key, item in cast("Mapping[str, JsonValue]", value).items()}
        case list():
            return [_expression(item) for item in value]
        case _:
            return escape_literal(value)


def _legal(name: str) -> str:
    return re.sub(r"\W", "_", name, flags=re.ASCII)
