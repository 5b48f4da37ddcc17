"""Which inputs a candidate has, reads, and lets move its outputs."""

from __future__ import annotations

from collections.abc import Sequence

from catalog.canonical import JsonValue
from catalog.similarity import words
from skills_store.admission.finding import Finding
from skills_store.evidence import Evidence, VariedRun
from skills_store.skill import Skill
from skills_store.workflow.graph import needed
from skills_store.workflow.model import Workflow
from skills_store.workflow.references import Found
from skills_store.workflow.scan import node_references, scan

__all__ = ["INPUTS_REACH", "input_names", "reached"]

INPUTS_REACH = "inputs_reach_outputs"
"""Name of the check that every input was varied and has a say in the outputs."""

_AMOUNTS = frozenset({"result", "item", "row", "hit", "entry", "depth", "token", "count", "size"})
_MANNERS = frozenset(
    {
        *("limit", "timeout", "page", "verbose", "verbosity"),
        *("debug", "pretty", "indent", "format", "precision", "decimal"),
    }
)
"""Words in the name of an input that says how an answer is given, not what about."""


def reached(evidence: Evidence, names: Sequence[str]) -> Finding:
    """Judge whether each input has a say in the outputs.

    A run that changed one input alone tells of that input; one that changed several tells of an
    input only where no run changed it alone.
    """
    good = [run for run in evidence.varied if run.is_good]
    unread = sorted(set(names) - _read_inputs(evidence.skill.workflow))
    still = [name for name in names if name not in unread and _moves_something(name, good) is False]
    excused = {name: why for name in still if (why := _excuse(name, evidence.skill, good))}
    idle = [name for name in still if name not in excused]
    untried = [name for name in names if name not in unread and _moves_something(name, good) is None]
    inputs: JsonValue = {
        "inputs": list(names),
        "unread": [*unread],
        "idle": [*idle],
        "excused": [*excused],
        "untried": [*untried],
    }
    if unread or idle:
        problems = [f"nothing reads the input {name}" for name in unread]
        problems += [f"the input {name} moves no output" for name in idle]
        return Finding(INPUTS_REACH, "function", "shadow", "; ".join(problems), inputs)
    if untried:
        detail = f"no successful run on another value of {', '.join(untried)}"
        return Finding(INPUTS_REACH, "function", "proposed", detail, inputs)
    detail = "every input moves an output" if names else "it has no inputs"
    if excused:
        detail += f", apart from {'; '.join(f'{name}: {why}' for name, why in excused.items())}"
    return Finding(INPUTS_REACH, "function", "active", detail, inputs)


def _excuse(name: str, skill: Skill, runs: Sequence[VariedRun]) -> str:
    """Return why an input need not move an output that was tried and did not, empty when nothing says so."""
    said = frozenset(words(name))
    if said & _MANNERS or ("max" in said and said & _AMOUNTS):
        return "it says how much is given, how, or how long it may take"
    properties = skill.signature.input_schema.get("properties")
    schema = properties.get(name) if isinstance(properties, dict) else None
    options = schema.get("enum") if isinstance(schema, dict) else None
    values = [test.inputs.get(name) for test in skill.tests] + [run.inputs.get(name) for run in runs]
    if isinstance(options, list) and all(option in values for option in options):
        return f"all {len(options)} values of its enum were tried and agree"
    return ""


def _moves_something(name: str, runs: Sequence[VariedRun]) -> bool | None:
    alone = [run for run in runs if run.changed == (name,)]
    told = alone or [run for run in runs if name in run.changed]
    return any(run.outputs_changed for run in told) if told else None


def input_names(workflow: Workflow) -> list[str]:
    properties = workflow.inputs.get("properties")
    return sorted(properties) if isinstance(properties, dict) else []


def _read_inputs(workflow: Workflow) -> set[str]:
    """Return the inputs read by the outputs or by a node they stand on."""
    used = needed(workflow)
    found = [*scan(workflow.outputs)]
    found += [found for node in workflow.nodes if node.id in used for found in node_references(node)]
    return {f.reference.name for f in found if isinstance(f, Found) and f.reference.root == "inputs"}
