"""A simulated compact planner: it knows each task's reference plan, and gets it wrong at a stated rate.

What it stands for is a model's hit rate and nothing else: the prompts are the product's own, counted
as a model would read them, while how much a like example helps is assumed, not measured.
Paper: EvoFlux (compact planners succeed on 3 % of plans unaided); FlowEvo (29.7k tokens an episode
    without skills, 9.3k with).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from pydantic import JsonValue

from server.backends.backend import Request
from server.backends.scripted import ScriptedBackend
from server.bench.stream_tasks import PlannedCall, StreamTask

__all__ = ["RIGHT_TOLD", "RIGHT_UNTOLD", "simulated_planner"]

RIGHT_UNTOLD: Final = 0.35
"""Assumed share of right plans of a planner that sees no like example."""
RIGHT_TOLD: Final = 0.8
"""The same with an example that calls the right tools."""

_ASKED = re.compile(r"^Request: (.*)$", re.MULTILINE)
_LABEL = re.compile(r"^([\w./-]+)\(", re.MULTILINE)


def simulated_planner(stream: Sequence[StreamTask], seed: int) -> ScriptedBackend:
    """Return a planner for the tasks of a stream; the same seed gives the same mistakes.

    Args:
        stream: every task it may be asked for.
        seed: of its mistakes, which also depend on the task and on how often it was asked for it.
    """
    plans = _Plans({task.task: task for task in stream}, seed)
    return ScriptedBackend(plans.answer, name="simulated:compact-planner", context_tokens=8_192)


@dataclass
class _Plans:
    tasks: Mapping[str, StreamTask]
    seed: int
    asked: dict[str, int] = field(default_factory=dict[str, int])

    def answer(self, request: Request) -> list[str]:
        """Return as many plans as are wanted."""
        said = request.messages[1].text
        found = _ASKED.findall(said)
        task = self.tasks.get(found[-1]) if found else None
        if task is None:
            return ["I cannot plan this."] * request.n
        before = said[: said.rindex("Request: ")]
        told = all(tool in before for tool in task.family.tools)
        labels = _LABEL.findall(request.messages[0].text)
        return [self._plan(task, labels, told=told) for _ in range(request.n)]

    def _plan(self, task: StreamTask, labels: Sequence[str], *, told: bool) -> str:
        times = self.asked[task.task] = self.asked.get(task.task, 0) + 1
        dice = Random(f"{self.seed}:{task.task}:{times}")
        nodes = [_node(call, task, labels, number) for number, call in enumerate(task.family.plan, 1)]
        last = len(nodes)
        is_whole = task.family.place != "result"
        where = f"$n{last}" if is_whole else f"$n{last}.result"
        if dice.random() >= (RIGHT_TOLD if told else RIGHT_UNTOLD):
            _spoil(nodes, labels, dice)
        return json.dumps({"nodes": nodes, "outputs": {"result": where}})


def _node(call: PlannedCall, task: StreamTask, labels: Sequence[str], number: int) -> dict[str, JsonValue]:
    tool = call.tool.partition("/")[2]
    label = next(
        (label for label in labels if label == tool or label.endswith((f".{tool}", f"_{tool}"))), tool
    )
    given = {name: _given(value, task) for name, value in call.arguments.items()}
    return {"tool": label, "id": f"n{number}", "arguments": given}


def _given(value: JsonValue, task: StreamTask) -> JsonValue:
    return task.values[value[1:]] if isinstance(value, str) and value.startswith("=") else value


def _spoil(nodes: list[dict[str, JsonValue]], labels: Sequence[str], dice: Random) -> None:
    """Make the mistakes that compact planners make: another tool, a value left out, a step left out."""
    node = dice.choice(nodes)
    arguments = node["arguments"]
    kind = dice.choice(("tool", "argument", "step"))
    if kind == "tool" and labels:
        node["tool"] = dice.choice(labels)
    elif kind == "step" and len(nodes) > 1:
        nodes.remove(node)
    elif isinstance(arguments, dict) and arguments:
        arguments.pop(dice.choice(sorted(arguments)))
