"""Attribution: labels from the run, labels from dropping steps, and the advantage of each step."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.tools import ToolId
from server.attribution.ablation import ablate
from server.attribution.advantage import Trajectory, advantages
from server.attribution.judging import judge_steps
from server.attribution.labels import agreement, label_steps, replacing
from server.backends.backend import Completion
from skills_store.trace import Step, Trace
from skills_store.workflow.model import Workflow, parse_workflow

ADD = {"server": "calculator", "tool": "add"}


def workflow(*nodes: tuple[str, dict[str, object]], output: str) -> Workflow:
    made = [{"id": name, "tool": ADD, "arguments": arguments} for name, arguments in nodes]
    return parse_workflow(
        {
            "name": "sum",
            "inputs": {"type": "object"},
            "nodes": made,
            "outputs": {"n": f"$nodes.{output}.output#/r"},
        }
    )


def step(node: str, outcome: str = "succeeded", **arguments: object) -> Step:
    return Step(node=node, tool=ToolId("calculator", "add"), arguments=arguments, outcome=outcome)


def trace(*steps: Step) -> Trace:
    return Trace(id="t", workflow_hash="w", inputs={}, steps=steps, outputs=None, status="succeeded")


def labels(plan: Workflow, *steps: Step) -> dict[str, str]:
    return {label.node: label.label for label in label_steps(plan, trace(*steps))}


def test_a_step_is_good_when_it_ran_is_read_and_was_not_made_before():
    plan = workflow(
        ("one", {"a": 1, "b": 2}),
        ("again", {"a": 1, "b": 2}),
        ("stray", {"a": 5, "b": 5}),
        ("end", {"a": "$nodes.one.output#/r", "b": "$nodes.again.output#/r"}),
        output="end",
    )
    ran = [step("one", a=1, b=2), step("again", a=1, b=2), step("stray", a=5, b=5), step("end", a=3, b=3)]
    assert labels(plan, *ran) == {"one": "good", "again": "bad", "stray": "bad", "end": "good"}


def test_a_failed_step_is_bad_and_one_that_was_not_reached_has_no_label():
    plan = workflow(("one", {"a": 1, "b": 2}), ("end", {"a": "$nodes.one.output#/r", "b": 1}), output="end")
    assert labels(plan, step("one", "failed"), step("end", "not_reached")) == {"one": "bad"}


@pytest.mark.anyio
async def test_dropping_a_step_shows_whether_it_was_needed():
    plan = workflow(
        ("one", {"a": 1, "b": 2}),
        ("stray", {"a": 0, "b": 0}),
        ("end", {"a": "$nodes.one.output#/r"}),
        output="end",
    )

    async def still_passes(candidate: Workflow) -> bool:
        return {"one", "end"} <= {node.id for node in candidate.nodes}

    found = await ablate(plan, lambda _: True, still_passes)
    assert {label.node: label.label for label in found} == {"one": "good", "stray": "bad", "end": "good"}
    assert {label.source for label in found} == {"ablation"}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("nodes", "good"),
    [
        ((("a", "x"), ("b", "a"), ("end", "x")), {"end"}),
        ((("a", "x"), ("b", "a"), ("c", "b"), ("end", "x")), {"end"}),
        ((("a", "x"), ("b", "a"), ("end", "a")), {"a", "end"}),
        ((("a", "x"), ("b", "a"), ("end", "b")), {"a", "b", "end"}),
    ],
    ids=["stray reader", "two stray readers", "one reader of two is stray", "all lead to the answer"],
)
async def test_what_only_strays_read_is_dropped_with_them(nodes: tuple[tuple[str, str], ...], good: set[str]):
    written = [
        (name, {"a": 1 if read == "x" else f"$nodes.{read}.output#/r", "b": 2}) for name, read in nodes
    ]
    plan = workflow(*written, output="end")

    async def still_passes(candidate: Workflow) -> bool:
        return good <= {node.id for node in candidate.nodes}

    found = await ablate(plan, lambda _: True, still_passes)
    assert {label.node for label in found} == {name for name, _ in nodes}
    assert {label.node for label in found if label.label == "good"} == good


@pytest.mark.anyio
async def test_what_is_not_free_is_not_ablated():
    plan = workflow(("one", {"a": 1}), output="one")

    async def never(candidate: Workflow) -> bool:
        raise AssertionError(candidate)

    assert await ablate(plan, lambda _: False, never) == ()


def test_a_judge_is_asked_once_and_only_for_steps_there_are():
    talk = judge_steps(trace(step("one"), step("end")), passed=True)
    request = next(talk)
    assert "Outcome: right" in request.messages[0].text
    answer = {"steps": [{"step": "one", "judgement": "BAD"}, {"step": "ghost", "judgement": "GOOD"}]}
    with pytest.raises(StopIteration) as ended:
        talk.send(Completion((json.dumps(answer),), ("end",), "m"))
    assert [(label.node, label.label, label.source) for label in ended.value.value] == [
        ("one", "bad", "judge")
    ]


def test_better_labels_replace_and_agreement_counts_what_both_have():
    plan = workflow(("one", {"a": 1}), ("end", {"a": "$nodes.one.output#/r"}), output="end")
    own = label_steps(plan, trace(step("one"), step("end", a=2)))
    talk = judge_steps(trace(step("one"), step("end")), passed=False)
    next(talk)
    with pytest.raises(StopIteration) as ended:
        talk.send(Completion(('{"steps": [{"step": "one", "judgement": "BAD"}]}',), ("end",), "m"))
    judged = ended.value.value
    assert [label.label for label in replacing(own, judged)] == ["bad", "good"]
    assert agreement(own, judged) == 0.0
    assert agreement(own, ()) is None


def test_advantages_by_hand():
    """Two runs of two steps and of one: m = (0, 1), mean 0.5, variance mean(1.25, 0.25) = 0.75."""
    group = [Trajectory((1.0, -1.0), 0.0), Trajectory((1.0,), 1.0)]
    deviation = (0.75 + 1e-8) ** 0.5
    first, last = 0.1 * 0.5 / deviation, 0.1 * -1.5 / deviation
    found = advantages(group)
    assert found[0] == pytest.approx([first + last - 1.0, last - 1.0])
    assert found[1] == pytest.approx([first + 1.0])


def test_nothing_that_varies_gives_nothing():
    assert advantages([Trajectory((1.0, 1.0), 1.0), Trajectory((1.0,), 1.0)]) == [[0.0, 0.0], [0.0]]
    assert advantages([]) == []
    with pytest.raises(ValueError, match="steps in every trajectory"):
        advantages([Trajectory((), 1.0)])


RUNS = st.lists(
    st.builds(
        Trajectory,
        st.lists(st.sampled_from([1.0, -1.0]), min_size=1, max_size=6).map(tuple),
        st.sampled_from([0.0, 0.5, 1.0]),
    ),
    min_size=1,
    max_size=6,
)


@given(RUNS)
def test_each_trajectory_weighs_the_same_in_the_attribution(group: list[Trajectory]):
    """Scaling every reward, or its distance from the group's mean, changes no advantage."""
    scaled = [Trajectory(tuple(3 * r for r in run.rewards), run.outcome) for run in group]
    for one, other in zip(advantages(group), advantages(scaled), strict=True):
        assert one == pytest.approx(other, abs=1e-6)
