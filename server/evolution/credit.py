"""Which kind of edit, and which node, a search tries first: credit from what its own candidates came to.

Paper: AgentEvolver (ADCA-GRPO, §3.3; facts §4.4: the advantage as credit of edits and nodes). Differs:
there are no weights to train, so the advantage moves the cost of the next proposals; a trajectory is
one candidate, its steps are its nodes with their labels, its outcome is the progress it made.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from server.attribution.advantage import Trajectory, advantages
from server.attribution.labels import label_steps
from server.evolution.candidate import Record
from server.evolution.proposal import Proposal
from skills_store.workflow.edits import Edit

__all__ = ["credited"]

_WEIGHT = 0.15
"""Cost that full credit takes off a proposal, or that full blame adds."""
_BAD_NODE = 0.1
"""What an edit of a node that made a bad step costs less."""
_LEAST = 2
"""Candidates of a group below which there is nothing to compare."""
_GROUP = 64
_CHEAPEST = 0.05


def credited(proposals: Sequence[Proposal], parent: Record, records: Sequence[Record]) -> list[Proposal]:
    """Return proposals with costs moved by what kinds of edits and nodes were worth so far.

    Args:
        proposals: for the parent.
        parent: whose steps say which nodes are bad.
        records: of the search, in order.
    """
    worth = _worth_of_kinds(records[-_GROUP:])
    bad = _bad_nodes(parent)
    if not worth and not bad:
        return list(proposals)
    return [replace(p, cost=max(_CHEAPEST, p.cost - _moved(p, worth, bad))) for p in proposals]


def _moved(proposal: Proposal, worth: dict[str, float], bad: frozenset[str]) -> float:
    kinds = [math.tanh(worth[edit.kind]) for edit in proposal.edits if edit.kind in worth]
    touches = any(_node_of(edit) in bad for edit in proposal.edits)
    return _WEIGHT * (fmean(kinds) if kinds else 0.0) + (_BAD_NODE if touches else 0.0)


def _worth_of_kinds(records: Sequence[Record]) -> dict[str, float]:
    """Return by kind of edit the mean advantage of the candidates it made."""
    made = [(r, rewards) for r in records if r.candidate.last and (rewards := _rewards(r))]
    if len(made) < _LEAST:
        return {}
    group = [Trajectory(rewards, record.evaluation.fitness.progress) for record, rewards in made]
    found: dict[str, list[float]] = defaultdict(list)
    for (record, _), steps in zip(made, advantages(group), strict=True):
        for kind in {edit.kind for edit in record.candidate.last}:
            found[kind].append(steps[0])
    return {kind: fmean(values) for kind, values in found.items()}


def _rewards(record: Record) -> tuple[float, ...]:
    trace = record.evaluation.trace
    if trace is None:
        return ()
    return tuple(
        1.0 if one.label == "good" else -1.0 for one in label_steps(record.candidate.workflow, trace)
    )


def _bad_nodes(record: Record) -> frozenset[str]:
    trace = record.evaluation.trace
    if trace is None:
        return frozenset()
    return frozenset(one.node for one in label_steps(record.candidate.workflow, trace) if one.label == "bad")


def _node_of(edit: Edit) -> str | None:
    return getattr(edit, "node", None) if edit.kind != "insert_node" else None
