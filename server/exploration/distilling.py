"""From a chain of calls to a workflow with inputs and checkable outputs: the draft of a task.

Paper: AgentEvolver (summarising trajectories into tasks; facts §4.2). Differs: the solution is the
chain itself as a typed workflow, and the check is derived from what it answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from catalog.tools import JsonSchema
from server.exploration.arguments import argument_schemas
from server.exploration.chains import Chain
from server.exploration.naming import slug
from server.exploration.observation import Observation
from server.exploration.options import Difficulty
from server.exploration.outputs import asked_outputs
from skills_store.workflow.model import Node, Workflow
from skills_store.workflow.references import Reference, escape_literal

__all__ = ["Draft", "distil"]

_LONGEST_TEXT = 300
_MOST_INPUTS = 8
_NOT_OF_INPUTS = frozenset({"$schema", "title", "default"})


@dataclass(frozen=True, slots=True)
class Draft:
    """A chain as a workflow, with the values it was run on. Not checked yet."""

    chain: Chain
    workflow: Workflow
    inputs: dict[str, JsonValue]
    slots: Mapping[str, tuple[str, str]]
    """By input: the tool and argument that it feeds first."""
    is_independent: bool = False
    """Whether no call stands on what an earlier one answered or changed."""

    @property
    def difficulty(self) -> Difficulty:
        """How its calls stand to each other."""
        return 1 if len(self.chain.steps) == 1 else 2 if self.is_independent else 3


@dataclass
class _Lifting:
    """The inputs of a draft while its nodes are written."""

    schemas: dict[str, JsonSchema] = field(default_factory=dict[str, JsonSchema])
    values: dict[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    slots: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])

    def reference(self, tool: str, argument: str, value: JsonValue, schema: JsonSchema) -> str:
        """Return the reference to the input that carries a value, equal ones of one name shared."""
        name = slug(argument) or "value"
        for number in range(1, 100):
            wanted = name if number == 1 else f"{name}_{number}"
            if wanted not in self.values:
                self.values[wanted], self.slots[wanted] = value, (tool, argument)
                self.schemas[wanted] = {k: v for k, v in schema.items() if k not in _NOT_OF_INPUTS}
                return str(Reference("inputs", wanted))
            if self.values[wanted] == value and type(self.values[wanted]) is type(value):
                return str(Reference("inputs", wanted))
        raise OverflowError(f"more than a hundred inputs are called {name}")


def distil(
    chain: Chain, *, all_outputs: bool = False, unlike: JsonValue = None, before: JsonValue = None
) -> Draft | None:
    """Return the draft of a chain, None where nothing it answered could be checked.

    Args:
        chain: successful calls.
        all_outputs: whether the answers of calls that nobody reads are outputs too, not the last one's only.
        unlike: an answer of the last call that says nothing of the chain: what it has too is no output.
        before: what the last call answered before the chain's last change: what it has too comes later.
    """
    ids = _node_ids(chain)
    lifting = _Lifting()
    nodes = tuple(_node(step, ids, lifting, previous) for step, previous in _with_previous(chain, ids))
    read = {origin.observation for step in chain.steps for origin in step.probe.origins.values()}
    ends = [step for step in chain.steps if step.number not in read] if all_outputs else [chain.last]
    outputs = asked_outputs(ends, ids, lifting.values, unlike, before)
    if not outputs or not lifting.values or len(lifting.values) > _MOST_INPUTS:
        return None
    workflow = Workflow(
        name=slug("_".join(dict.fromkeys(chain.tools)))[:60].strip("_") or "explored",
        inputs={"type": "object", "properties": dict(lifting.schemas), "required": list(lifting.schemas)},
        nodes=nodes,
        outputs=outputs,
    )
    return Draft(chain, workflow, lifting.values, lifting.slots, all_outputs and not chain.links)


def _with_previous(chain: Chain, ids: Mapping[int, str]) -> list[tuple[Observation, str | None]]:
    """Return each step with the node it must come after without reading it: the one before it."""
    before = [None, *(ids[step.number] for step in chain.steps[:-1])]
    return list(zip(chain.steps, before, strict=True))


def _node(step: Observation, ids: Mapping[int, str], lifting: _Lifting, previous: str | None) -> Node:
    tool, origins = step.probe.tool, step.probe.origins
    schemas = argument_schemas(tool)
    arguments: dict[str, JsonValue] = {}
    for name, value in step.probe.arguments.items():
        if name in origins:
            origin = origins[name]
            arguments[name] = str(Reference("nodes", ids[origin.observation], origin.pointer))
        elif _may_vary(value):
            arguments[name] = lifting.reference(tool.id.tool, name, value, schemas.get(name, {}))
        else:
            arguments[name] = escape_literal(value) if isinstance(value, str) else value
    reads = {ids[origin.observation] for origin in origins.values()}
    after = (previous,) if previous is not None and previous not in reads else ()
    return Node(id=ids[step.number], tool=tool.id, arguments=arguments, after=after)


def _may_vary(value: JsonValue) -> bool:
    """Return whether a value is plain enough to be said in a task."""
    if isinstance(value, str):
        return bool(value.strip()) and len(value) <= _LONGEST_TEXT
    if isinstance(value, list):
        is_plain = all(isinstance(part, int | float | str) or _is_record(part) for part in value)
        return 0 < len(value) <= 8 and is_plain
    return _is_record(value) or (isinstance(value, int | float) and not isinstance(value, bool))


def _is_record(value: JsonValue) -> bool:
    """Return whether a value is a few named scalars."""
    if not isinstance(value, dict) or not 0 < len(value) <= 4:
        return False
    return not any(isinstance(part, dict | list) for part in value.values())


def _node_ids(chain: Chain) -> dict[int, str]:
    found: dict[int, str] = {}
    for step in chain.steps:
        name = slug(step.probe.tool.id.tool)[:50] or "step"
        name = name if name[0].isalpha() else f"step_{name}"
        wanted = name if name not in found.values() else f"{name}_{len(found) + 1}"
        found[step.number] = wanted
    return found
