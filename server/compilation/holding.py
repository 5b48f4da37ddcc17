"""Holding an input: a value that two runs shared and that no run could be varied in is a constant again.

A task says more than its values: the totient of 12 names what is to be done as much as the number. Lifting
takes both, varied runs show which is which, and where they cannot, the second run does.

Paper: FlowEvo (compile; DESIGN §5.8): the rest stays frozen. Differs: what is frozen is decided by runs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pydantic import JsonValue

from catalog.tools import JsonSchema, Snapshot
from server.compilation.prose import render_description, render_guidance
from server.compilation.signature import compile_signature
from server.compilation.widening import instantiated
from skills_store.skill import ReplayTest, Skill
from skills_store.workflow.hashing import content_hash, shape_hash

__all__ = ["hold_inputs"]


def hold_inputs(skill: Skill, names: Collection[str], snapshot: Snapshot, second: ReplayTest) -> Skill:
    """Return a candidate in which some inputs are the constants that the recorded run gave them.

    Args:
        skill: with a test to read the constants from.
        names: of inputs.
        snapshot: tools, for the signature.
        second: another run with the same constants, kept as a test.
    """
    first = skill.tests[0]
    held = {name: value for name, value in first.inputs.items() if name in names}
    workflow = instantiated(skill.workflow, held)
    workflow = workflow.model_copy(update={"inputs": _without(workflow.inputs, held)})
    tests = tuple(_held(test, held) for test in (first, second) if _agrees(test, held))
    signature = compile_signature(workflow, first.outputs, snapshot)
    return skill.model_copy(
        update={
            "state": "proposed",
            "reason": f"{', '.join(sorted(held))} held constant; waits for evidence",
            "workflow": workflow,
            "content_hash": content_hash(workflow),
            "shape_hash": shape_hash(workflow),
            "signature": signature,
            "description": render_description(workflow, signature),
            "guidance": render_guidance(skill.provenance.task, workflow),
            "tests": tests,
            "verdict": None,
        }
    )


def _without(schema: JsonSchema, held: Mapping[str, JsonValue]) -> JsonSchema:
    properties, required = schema.get("properties"), schema.get("required")
    return {
        **schema,
        "properties": {k: v for k, v in properties.items() if k not in held}
        if isinstance(properties, dict)
        else {},
        "required": [name for name in required if name not in held] if isinstance(required, list) else [],
    }


def _agrees(test: ReplayTest, held: Mapping[str, JsonValue]) -> bool:
    return all(test.inputs.get(name) == value for name, value in held.items())


def _held(test: ReplayTest, held: Mapping[str, JsonValue]) -> ReplayTest:
    return test.model_copy(update={"inputs": {k: v for k, v in test.inputs.items() if k not in held}})
