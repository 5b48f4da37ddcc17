"""Damage: seeded, parseable, one fault per node, in the measured mix."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.tools import Snapshot, Tool, ToolId
from server.bench.damage import FLOOR, MEASURED, DamageKind, damage, draw_kinds, share_out
from server.bench.tasks import reference_tasks
from skills_store.workflow.model import parse_workflow
from skills_store.workflow.scan import Unreadable, scan

_TASKS = reference_tasks()
_TYPES = {str: "string", bool: "boolean", int: "number", float: "number", list: "array", dict: "object"}


def _snapshot() -> Snapshot:
    """Tools as the reference tasks call them: every argument they give is known and required."""
    arguments: dict[ToolId, dict[str, dict[str, str]]] = {}
    for task in _TASKS:
        for node in task.reference.nodes:
            known = arguments.setdefault(node.tool, {})
            known.update({name: {"type": _TYPES[type(v)]} for name, v in node.arguments.items()})
    return Snapshot.of(
        *(
            Tool(tool, {"type": "object", "properties": properties, "required": list(properties)})
            for tool, properties in arguments.items()
        )
    )


_SNAPSHOT = _snapshot()
_LARGE = max(_TASKS, key=lambda task: len(task.reference.nodes))


@pytest.mark.parametrize("kind", DamageKind, ids=str)
def test_every_kind_finds_a_place_in_some_task_and_changes_it(kind):
    damaged = [(task, damage(task, _SNAPSHOT, [kind], seed=1)) for task in _TASKS]
    done = [(task, found) for task, found in damaged if found is not None]

    assert len(done) >= 10
    assert all(found.kinds == (kind,) for _, found in done)
    assert all(found.workflow != task.reference.to_json() for task, found in done)


@given(task=st.sampled_from(_TASKS), count=st.integers(1, 3), seed=st.integers(0, 10_000))
def test_damage_is_parseable_repeatable_and_keeps_the_declared_outputs(task, count, seed):
    found = damage(task, _SNAPSHOT, count, seed)

    assert found == damage(task, _SNAPSHOT, count, seed)
    if found is not None:
        workflow = parse_workflow(found.workflow)
        assert workflow.to_json() == found.workflow
        assert [found for found in scan(found.workflow["nodes"]) if isinstance(found, Unreadable)] == []
        assert set(workflow.outputs) == set(task.reference.outputs)
        assert workflow.inputs == task.reference.inputs
        assert len(found.kinds) == len(found.variants) == len(found.details) == count


@given(seed=st.integers(0, 10_000))
def test_three_faults_are_of_three_kinds_and_at_three_places(seed):
    found = damage(_LARGE, _SNAPSHOT, 3, seed)

    assert found is None or len(set(found.kinds)) == 3


def test_another_seed_breaks_a_task_in_another_way():
    ways = {str(damage(_LARGE, _SNAPSHOT, [DamageKind.MISSING_ARGUMENT], seed)) for seed in range(20)}

    assert len(ways) > 10


def test_a_kind_that_finds_no_place_is_said_to():
    task = next(task for task in _TASKS if task.id == "double_digest")

    assert damage(task, _SNAPSHOT, [DamageKind.WRONG_VALUE], seed=0) is None


def test_a_statement_that_is_said_nowhere_else_is_reported_as_lost():
    task = next(task for task in _TASKS if task.id == "mean_of_rows")
    cases = [damage(task, _SNAPSHOT, [DamageKind.MISSING_ARGUMENT], seed) for seed in range(40)]

    lost = {found.details[0]: found.lost for found in cases if found is not None}

    assert lost["average lacks sql"] == ("SELECT AVG(v) AS mean FROM t",)
    assert lost["average lacks conn_id"] == ()


def test_the_mix_is_shared_out_as_measured_with_a_floor():
    counts = Counter(share_out(60))

    assert sum(counts.values()) == 60
    assert set(counts) == set(DamageKind)
    assert counts[DamageKind.EXTRA_STEP] == max(counts.values())
    assert counts[DamageKind.MISNAMED_ARGUMENT] == counts[DamageKind.MISSING_STEP]
    assert MEASURED[DamageKind.MISNAMED_ARGUMENT] < FLOOR


@given(count=st.integers(1, 200))
def test_sharing_out_gives_exactly_what_was_asked_for(count):
    assert len(share_out(count)) == count


def test_drawn_kinds_differ_and_there_is_an_end_to_them():
    assert len(set(draw_kinds(len(MEASURED), Random(0)))) == len(MEASURED)
    with pytest.raises(ValueError, match="only 9 kinds"):
        draw_kinds(10, Random(0))
