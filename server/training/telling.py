"""A trace told as a conversation: the task, a call and its answer per step, and the outputs.

The steps were a planner's, a search's or a person's, so an episode of these is marked as simulated: it is
told in the form in which a model would have said it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from server.attribution.labels import StepLabel, label_steps, replacing
from server.training.episode import EpisodeStep, FunctionCall, Outcome, ToolCall, Turn
from server.training.tools import Toolbox
from skills_store.errors import MalformedWorkflow
from skills_store.trace import Step, Trace
from skills_store.workflow.model import parse_workflow

__all__ = ["Told", "is_tellable", "outcome_of", "prompt_of", "tell"]

_LONGEST = 4_096
"""Characters of an answer. Source: AgentEvolver's `content_for_future`."""


@dataclass(frozen=True, slots=True)
class Told:
    """A conversation with its loss mask and the labels of its steps; advantages are not known yet."""

    messages: tuple[Turn, ...]
    trained: tuple[int, ...]
    steps: tuple[EpisodeStep, ...]


def is_tellable(trace: Trace) -> bool:
    """Return whether a trace has a task in words, a workflow to attribute by, and all its calls."""
    calls = _calls(trace)
    prefixes = tuple(f"{step.node}." for step in trace.steps if step.skill is not None)
    inner = all(any(call.node.startswith(prefix) for call in calls) for prefix in prefixes)
    return bool(trace.task) and trace.workflow is not None and bool(calls) and inner


def _calls(trace: Trace) -> list[Step]:
    return [step for step in trace.steps if step.tool is not None and step.outcome in ("succeeded", "failed")]


def tell(trace: Trace, tools: Toolbox, better: Sequence[StepLabel] = ()) -> Told:
    """Return a trace as a conversation.

    Args:
        trace: `is_tellable`.
        tools: has every tool it called.
        better: labels that stand in for those of the execution.
    """
    messages = list(prompt_of(trace.task or "", trace.inputs))
    said: dict[str, list[int]] = {}
    for step in _calls(trace):
        assert step.tool is not None
        name = tools.names[step.tool]
        call = ToolCall(function=FunctionCall(name=name, arguments=step.arguments))
        said.setdefault(step.node.split(".")[0], []).append(len(messages))
        messages.append(Turn(role="assistant", tool_calls=(call,)))
        messages.append(Turn(role="tool", content=_answer(step), name=name))
    if trace.outputs is not None:
        said[list(said)[-1]].append(len(messages))
        messages.append(Turn(role="assistant", content=_json(trace.outputs)))
    trained = tuple(index for index, turn in enumerate(messages) if turn.role == "assistant")
    return Told(tuple(messages), trained, _steps(replacing(_labels(trace), better), said))


def prompt_of(task: str, inputs: Mapping[str, JsonValue]) -> tuple[Turn, ...]:
    """Return the messages before the first step."""
    told = f"\nInputs: {_json(dict(inputs))}" if inputs else ""
    return (Turn(role="user", content=task + told),)


def outcome_of(trace: Trace) -> Outcome:
    """Return what became of a task: unscored where no check looked, or where only the world failed."""
    by = tuple(dict.fromkeys(one.by for one in trace.verifications))
    only_world = bool(trace.faults) and all(fault.evidence == "world" for fault in trace.faults)
    score = None
    if trace.status == "verified":
        score = 1.0
    elif trace.status == "failed" and not only_world:
        score = 0.0
    return Outcome(status=trace.status, score=score, by=by)


def _labels(trace: Trace) -> Sequence[StepLabel]:
    try:
        workflow = parse_workflow(trace.workflow)
    except MalformedWorkflow:  # secrets were taken out of a place where a document needs a value
        return ()
    return label_steps(workflow, trace)


def _steps(labels: Sequence[StepLabel], said: Mapping[str, Sequence[int]]) -> tuple[EpisodeStep, ...]:
    return tuple(
        EpisodeStep(
            index=index,
            messages=tuple(said[one.node]),
            node=one.node,
            label=one.label,
            label_source=one.source,
            reason=one.reason,
            reward=1.0 if one.label == "good" else -1.0,
        )
        for index, one in enumerate(one for one in labels if one.node in said)
    )


def _answer(step: Step) -> str:
    if step.outcome == "failed":
        said = step.fault.message if step.fault is not None else "it failed"
        return f"Error: {said}"[:_LONGEST]
    text = step.output if isinstance(step.output, str) else _json(step.output)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… [{len(text)} characters in all]"


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False)
