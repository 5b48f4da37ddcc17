"""A client that works a task out through `call_tool` and saves it: how a bank gets what nobody plans.

The client's calls are the family's reference plan: recorded, not thought of by any model.
"""

from __future__ import annotations

from collections.abc import Mapping

import jmespath
from pydantic import JsonValue

from catalog.result import CallSuccess
from catalog.tools import ToolId
from server.bank import Bank
from server.bench.errors import BenchError
from server.bench.stream_tasks import StreamTask
from server.requests import SaveRequest

__all__ = ["show"]


async def show(task: StreamTask, bank: Bank) -> str:
    """Make a task's reference calls through the bank, save them as a skill, and return what came of that.

    Raises:
        BenchError: a call failed, or its answer lacks what the next call needs.
    """
    recording, outputs = f"shown-{task.number}", dict[str, JsonValue]()
    for number, call in enumerate(task.family.plan, 1):
        arguments = {name: _sent(value, task, outputs) for name, value in call.arguments.items()}
        server, _, tool = call.tool.partition("/")
        outcome = await bank.call_tool(ToolId(server, tool), arguments, recording=recording)
        if not isinstance(outcome, CallSuccess):
            raise BenchError(f"{task.family.id}: {call.tool} failed: {outcome.message}")
        outputs[f"n{number}"] = outcome.output
    saved = await bank.save(SaveRequest(name=f"shown_{task.family.id}", recording=recording, task=task.task))
    return saved.reason


def _sent(value: JsonValue, task: StreamTask, outputs: Mapping[str, JsonValue]) -> JsonValue:
    """Return an argument as it is sent: of the task, of an earlier answer, or as it stands."""
    if isinstance(value, str) and value.startswith("="):
        return task.values[value[1:]]
    if isinstance(value, str) and value.startswith("$"):
        node, _, path = value[1:].partition(".")
        found: JsonValue = jmespath.search(path, outputs[node])
        if found is None:
            raise BenchError(f"{task.family.id}: nothing at {path} in the answer of {node}")
        return found
    return value
