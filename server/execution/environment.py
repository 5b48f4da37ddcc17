"""What the nodes of one run have in common, and the record of what came of each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace

import anyio

from catalog.canonical import JsonValue
from catalog.tools import Snapshot
from server.execution.calls import Caller
from server.execution.options import RunOptions
from server.execution.recording import Recorder
from skills_store.trace import Outcome, Step
from skills_store.workflow.faults import Fault
from skills_store.workflow.model import Workflow

__all__ = ["Environment", "Executed", "NodeRun", "Tally", "with_defaults"]


def with_defaults(workflow: Workflow, inputs: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the inputs, those left out at the default their schema declares."""
    properties = workflow.inputs.get("properties")
    declared = properties if isinstance(properties, dict) else {}
    defaults = {
        name: schema["default"]
        for name, schema in declared.items()
        if isinstance(schema, dict) and "default" in schema
    }
    return {**defaults, **inputs}


@dataclass(slots=True)
class Tally:
    """Upstream calls of one run so far, those inside skills too."""

    calls: int = 0


@dataclass(frozen=True, slots=True)
class NodeRun:
    """What came of one node. `output` means something only when it succeeded."""

    outcome: Outcome
    output: JsonValue = None
    steps: tuple[Step, ...] = ()
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class Executed:
    """What came of one workflow, the outermost or one inside a skill node."""

    nodes: Mapping[str, NodeRun]
    """By id, in the order of waves."""
    result: dict[str, JsonValue] | None
    """Its declared outputs, None when one of them could not be produced."""
    faults: tuple[Fault, ...]
    """Of its nodes and of its outputs."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """Every step, wave by wave."""
        return tuple(step for node in self.nodes.values() for step in node.steps)

    @property
    def outputs(self) -> dict[str, JsonValue]:
        """Full outputs of the nodes that succeeded."""
        return {name: node.output for name, node in self.nodes.items() if node.outcome == "succeeded"}


RunSkill = Callable[["Environment"], Awaitable[Executed]]


@dataclass(frozen=True)
class Environment:
    """One workflow being run, and everything its nodes share."""

    workflow: Workflow
    inputs: Mapping[str, JsonValue]
    caller: Caller
    snapshot: Snapshot
    options: RunOptions
    limiter: anyio.CapacityLimiter
    run_skill: RunSkill
    """Runs the workflow of a skill node in an environment of its own."""
    path: tuple[str, ...] = ()
    """Ids of the skill nodes around this workflow."""
    items: tuple[int, ...] = ()
    """Indices of the mapped nodes around this workflow."""
    tally: Tally = field(default_factory=Tally)

    @property
    def recorder(self) -> Recorder:
        """What makes values fit for the trace."""
        return Recorder(self.options.redact, self.options.spill)

    def inside(
        self, workflow: Workflow, inputs: Mapping[str, JsonValue], node: str, item: int | None
    ) -> Environment:
        """Return the environment of a skill node's workflow."""
        items = self.items if item is None else (*self.items, item)
        filled = with_defaults(workflow, inputs)
        return replace(self, workflow=workflow, inputs=filled, path=(*self.path, node), items=items)
