"""Runs as a bank keeps them: tasks solved right and wrong, and drives with experience."""

from __future__ import annotations

import json
from typing import Any

from catalog.tools import Snapshot, Tool, ToolId
from server.reports import RepairReport
from server.training.from_traces import Seen
from skills_store.trace import Step, Trace, Verification

SECRET = "sk-abcdefghijklmnopqrstuvwx"
WEATHER, BOOK = ToolId("travel", "get_weather"), ToolId("travel", "book_seat")
EXPERIENCE = "Weather wants the city's name alone."


def snapshot() -> Snapshot:
    def tool(id_: ToolId, **properties: Any) -> Tool:
        schema = {"type": "object", "properties": properties, "required": list(properties)}
        return Tool(id_, schema, description=f"Does {id_.tool}.")

    text = {"type": "string"}
    return Snapshot.of(tool(WEATHER, city=text), tool(BOOK, seat={"type": "integer"}, name=text))


def trace(id_: str, *steps: tuple[ToolId, dict[str, Any], Any], right: bool | None, task: str) -> Trace:
    """Return a run; a step whose output is None failed."""
    nodes = [
        {"id": f"n{i}", "tool": {"server": tool.server, "tool": tool.tool}, "arguments": arguments}
        for i, (tool, arguments, _) in enumerate(steps)
    ]
    outputs = {f"o{i}": f"$nodes.n{i}.output" for i in range(len(steps))}
    ran = tuple(
        Step(
            node=f"n{i}",
            tool=tool,
            arguments=arguments,
            outcome="failed" if output is None else "succeeded",
            output=output,
        )
        for i, (tool, arguments, output) in enumerate(steps)
    )
    return Trace(
        id=id_,
        workflow_hash="sha256:1",
        inputs={"who": "Ann"},
        steps=ran,
        outputs=None if right is False else {"answer": "sunny"},
        status={True: "verified", False: "failed", None: "unverified"}[right],
        task=task,
        verifications=() if right is None else (Verification(by="assertion", passed=right),),
        workflow={"name": "w", "inputs": {"type": "object"}, "nodes": nodes, "outputs": outputs},
    )


def seen(cities: tuple[str, ...] = ("Paris", "Rome", "Oslo")) -> list[Seen]:
    """Return of each city a right run, a wrong one, and one that nobody judged."""
    found: list[Seen] = []
    for city in cities:
        task = f"Tell the weather of {city} and book a seat, please."
        good = ((WEATHER, {"city": city}, {"sky": "sunny"}), (BOOK, {"seat": 4, "name": "Ann"}, {"ok": True}))
        bad = ((WEATHER, {"city": city.upper()}, None),)
        found += [
            Seen(trace(f"{city}-right", *good, right=True, task=task)),
            Seen(trace(f"{city}-wrong", *bad, right=False, task=task)),
            Seen(trace(f"{city}-open", *good[:1], right=None, task=task)),
        ]
    return found


def drive(*, right: bool, guided: bool) -> RepairReport:
    """Return the report of a drive of two steps; what was told of experience is in a span."""
    asked = "Task: Tell the weather of Paris.\nFinish with the outputs sky."
    spans = [{"start": len(asked), "end": len(asked) + 1 + len(EXPERIENCE), "unit": "u1"}] if guided else []
    system = {"role": "system", "text": "Answer with one JSON object.", "author": "instruction"}
    user = {
        "role": "user",
        "text": asked + (f"\n{EXPERIENCE}" if guided else ""),
        "author": "driver",
        "spans": spans,
    }
    first = json.dumps({"tool": "get_weather", "arguments": {"city": "Paris" if right else "paris!"}})
    last = json.dumps({"tool": "finish", "arguments": {"sky": "$r1#/sky"}})
    told = 'r1: {"sky": "sunny"}' if right else "error: no such city"
    said = {"role": "assistant", "text": first, "author": "model"}
    result = {"role": "user", "text": told, "author": "tool"}
    node = {"id": "r1", "tool": {"server": "travel", "tool": "get_weather"}, "arguments": {}}
    return RepairReport.model_validate(
        {
            "status": "verified" if right else "failed",
            "outputs": {"sky": "sunny"} if right else None,
            "workflow": {"nodes": [node] if right else []},
            "model": "tiny",
            "drive": {
                "template": "causal",
                "steps": 2,
                "ended": "finished" if right else "steps",
                "model_calls": 2,
                "tokens": 10,
                "prompt_budget": 100,
                "fits": True,
                "estimates_tokens": True,
                "snapshots": [
                    {"messages": [system, user], "reply": first, "step": 1},
                    {"messages": [system, user, said, result], "reply": last, "step": 2},
                ],
            },
        }
    )
