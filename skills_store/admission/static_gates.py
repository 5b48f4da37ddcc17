"""What is judged of a candidate without a run: whether it is new, callable as declared, and safe."""

from __future__ import annotations

from collections.abc import Iterable

from skills_store.admission.finding import Finding, approval, costly_tools, faultless, listed
from skills_store.evidence import Evidence

__all__ = ["duplicate", "interface", "safety"]


def duplicate(evidence: Evidence) -> Iterable[Finding]:
    """Paper: FlowEvo (dedup key): entry point and hash of the normalised body.

    Differs: the content hash of the workflow, which leaves names and prose out; a skill that only
        behaves the same is another proof of the kept one, or kept where a person asks for it.
    """
    twin = evidence.duplicate_of
    content_hash = evidence.skill.content_hash
    if twin is None:
        yield Finding("new", "duplicate", "active", "no skill has this workflow", content_hash)
    else:
        yield Finding("new", "duplicate", "shadow", f"the skill {twin} has this workflow", content_hash)
    equals = evidence.equals
    said = "no other skill is known to do the same" if equals is None else f"it does what {equals} does"
    yield Finding("behaviour", "duplicate", "active", said, equals)


def interface(evidence: Evidence) -> Iterable[Finding]:
    found = evidence.interface
    faults = [fault for fault in found.faults if fault.kind != "over_limit"]
    yield faultless("portable_schema", "interface", list(found.schema_lint))
    yield faultless("static_check", "interface", [f"{f.pointer or '/'}: {f.message}" for f in faults])
    yield faultless("pinned", "interface", [f"{tool} has no pinned contract" for tool in found.unpinned])


def safety(evidence: Evidence) -> Iterable[Finding]:
    """Paper: FlowEvo (gate 3, `static_safety_scan`): banned imports and calls.

    Differs: a workflow is data and calls nothing but tools, so safety is what those tools do, that
        it ends, and that it stays within bounds.
    """
    costly = costly_tools(evidence.tools)
    lasting = f"{listed(costly)} leaves lasting effects"
    yield Finding(
        "effects",
        "safety",
        "proposed" if costly else "active",
        f"{lasting}: a person approves with {approval(evidence.skill)}" if costly else "no lasting effects",
        [{"tool": str(t.tool), "effect": t.effect.value, "reset": t.reset.value} for t in evidence.tools],
    )
    flows = [*evidence.interface.flows]
    yield faultless("data_flow", "safety", flows, leaves="proposed")
    itself = ["it would call itself"] if evidence.interface.calls_itself else []
    yield faultless("no_self_call", "safety", itself)
    over = [fault.message for fault in evidence.interface.faults if fault.kind == "over_limit"]
    yield faultless("within_limits", "safety", over)
