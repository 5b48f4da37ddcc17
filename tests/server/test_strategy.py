"""The strategy without any server: told evaluations by hand, asked for candidates; and what is fitter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.evolution.best_first import BestFirst
from server.evolution.building import base_candidate
from server.evolution.candidate import Candidate, Evaluation, Fitness, Record
from server.evolution.options import SearchOptions
from server.evolution.proposal import Proposal
from skills_store.workflow.edits import EditParameter, RemoveNode
from skills_store.workflow.hashing import content_hash
from skills_store.workflow.model import Workflow
from tests.worlds import node, workflow

BASE = workflow(node("sum", "sums/add", {"a": 0, "b": 0}), outputs={"o": "$nodes.sum.output#/result"})
ZERO = Fitness()


def put(argument: str, value: int, cost: float) -> Proposal:
    return Proposal((EditParameter(node="sum", pointer=f"/{argument}", value=value),), cost)


def came_to(unmet: float, fitness: Fitness = ZERO) -> Evaluation:
    return Evaluation("failed", (), fitness, None, None, {}, 0, unmet)


def value_of(planned: Workflow, argument: str = "a") -> object:
    return planned.nodes[0].arguments[argument]


class Script:
    """A proposer that answers by the value of `a`, and notes whom it was asked about."""

    def __init__(self, answers: Mapping[object, Sequence[Proposal]]) -> None:
        self.answers = answers
        self.asked: list[object] = []

    def __call__(self, record: Record) -> Sequence[Proposal]:
        value = value_of(record.candidate.workflow)
        self.asked.append(value)
        return self.answers.get(value, ())


def begun(script: Script, unmet: float = 1.0, options: SearchOptions | None = None) -> BestFirst:
    strategy = BestFirst(BASE, script, options or SearchOptions())
    strategy.take(Record(base_candidate(BASE), came_to(unmet)))
    return strategy


def asked(strategy: BestFirst, count: int) -> list[Candidate]:
    return [order.candidate for order in strategy.ask(count) if order.candidate is not None]


def told(strategy: BestFirst, candidate: Candidate, evaluation: Evaluation) -> None:
    strategy.take(Record(candidate, evaluation))


def test_the_first_candidate_is_the_base_as_it_is():
    (order,) = BestFirst(BASE, Script({})).ask(3)
    assert (order.number, order.mode) == (0, "base")
    assert order.candidate == Candidate(content_hash(BASE), BASE)


def test_candidates_come_in_order_of_cost_and_the_first_of_equals_first():
    script = Script({0: [put("a", 1, 0.5), put("a", 2, 0.2), put("a", 3, 0.5), put("a", 4, 0.1)]})
    assert [value_of(c.workflow) for c in asked(begun(script), 10)] == [4, 2, 1, 3]


def test_a_child_says_where_it_comes_from_and_what_it_cost():
    strategy = begun(Script({0: [put("a", 1, 0.5)], 1: [put("b", 2, 0.25)]}))
    (child,) = asked(strategy, 1)
    told(strategy, child, came_to(1.0))
    (grandchild,) = asked(strategy, 1)
    first, second = put("a", 1, 0).edits, put("b", 2, 0).edits
    assert grandchild == Candidate(
        id=content_hash(grandchild.workflow),
        workflow=grandchild.workflow,
        edits=(*first, *second),
        last=second,
        parent=child.id,
        cost=0.75,
        depth=2,
    )
    assert grandchild.workflow.nodes[0].arguments == {"a": 1, "b": 2}


def test_what_is_nearer_to_done_is_built_upon_before_what_is_cheaper():
    answers: dict[object, list[Proposal]] = {
        0: [put("a", 1, 0.3), put("a", 2, 0.5)],
        1: [put("b", 1, 0.3)],
        2: [put("b", 2, 0.3)],
    }
    strategy = begun(Script(answers), unmet=6.0)
    far, near = asked(strategy, 2)
    told(strategy, far, came_to(6.0))
    told(strategy, near, came_to(2.0))
    assert value_of(asked(strategy, 1)[0].workflow, "b") == 2


def test_proposals_are_asked_for_only_when_their_turn_comes():
    script = Script({0: [put("a", 1, 0.1), put("a", 2, 0.2)], 1: [put("b", 1, 0.1)], 2: [put("b", 2, 5.0)]})
    strategy = begun(script)
    one, two = asked(strategy, 2)
    told(strategy, one, came_to(1.0))
    told(strategy, two, came_to(9.0))
    strategy.ask(1)
    assert script.asked == [0, 1]


def test_no_workflow_is_offered_twice_however_it_is_reached():
    answers: dict[object, list[Proposal]] = {
        0: [put("a", 1, 0.1), put("b", 1, 0.2), put("a", 0, 0.3), put("a", 1, 0.4)],
        1: [put("b", 1, 0.1), put("a", 0, 0.2)],
    }
    strategy = begun(Script(answers))
    offered = [content_hash(BASE)]
    while batch := asked(strategy, 2):
        for candidate in batch:
            offered.append(candidate.id)
            told(strategy, candidate, came_to(1.0))
    assert len(offered) == len(set(offered)) == 4


def test_an_edit_that_is_refused_gives_no_candidate():
    refused = Proposal((RemoveNode(node="sum"),), 0.1)
    assert begun(Script({0: [refused]})).ask(5) == []


def test_a_proposal_is_made_whole_or_not_at_all():
    half = Proposal((*put("a", 1, 0.1).edits, RemoveNode(node="gone")), 0.1)
    assert begun(Script({0: [half]})).ask(5) == []


def test_what_is_right_is_not_built_upon():
    strategy = BestFirst(BASE, Script({0: [put("a", 1, 0.1)]}))
    (order,) = strategy.ask(1)
    assert order.candidate is not None
    strategy.tell(order, Record(order.candidate, replace(came_to(0.0), status="verified")))
    assert strategy.ask(1) == []


def test_depth_is_bounded():
    script = Script({depth: [put("a", depth + 1, 0.1)] for depth in range(50)})
    strategy = begun(script, options=SearchOptions(max_depth=3))
    depths: list[int] = []
    while batch := asked(strategy, 1):
        depths.append(batch[0].depth)
        told(strategy, batch[0], came_to(1.0))
    assert depths == [1, 2, 3]


def test_there_is_no_best_before_anything_was_told():
    with pytest.raises(ValueError, match="no candidate was evaluated yet"):
        _ = BestFirst(BASE, Script({})).best


class TestFitness:
    FITTER = (
        Fitness(verified=True),
        Fitness(keeps_inputs=True),
        Fitness(outputs_produced=1.0),
        Fitness(outputs_produced=0.5, executed=1.0, rule_score=1.0),
        Fitness(outputs_produced=0.5, executed=0.5, checks_passed=1.0, rule_score=1.0),
        Fitness(executed=1.0, checks_passed=0.5),
        Fitness(executed=1.0, rule_score=1.0),
        Fitness(executed=0.5, rule_score=1.0),
        Fitness(rule_score=1.0),
        Fitness(judged=0.9, fewer_calls=-9),
        Fitness(judged=0.8, fewer_calls=-1, fewer_nodes=-1),
        Fitness(judged=0.8, fewer_calls=-2, fewer_nodes=-1),
        Fitness(judged=0.8, fewer_calls=-2, fewer_nodes=-2),
        ZERO,
    )

    def test_outputs_count_before_execution_before_form_before_a_judge_before_thrift(self):
        assert all(better > worse for better, worse in pairwise(self.FITTER))

    def test_the_best_is_the_fittest_then_the_cheapest_then_the_earliest(self):
        script = Script({0: [put("a", value, 0.1 * value) for value in (1, 2, 3, 4)]})
        strategy = begun(script)
        fit = {1: ZERO, 2: self.FITTER[3], 3: self.FITTER[3], 4: self.FITTER[4]}
        for candidate in asked(strategy, 4):
            told(strategy, candidate, came_to(1.0, fit[int(str(value_of(candidate.workflow)))]))
        assert value_of(strategy.best.candidate.workflow) == 2

    @given(st.lists(st.sampled_from(FITTER), min_size=1, max_size=8))
    def test_the_best_never_gets_worse(self, found: list[Fitness]):
        script = Script({0: [put("a", value, 0.1) for value in range(1, 10)]})
        strategy = begun(script)
        best = strategy.best.evaluation.fitness
        for candidate, fitness in zip(asked(strategy, len(found)), found, strict=True):
            told(strategy, candidate, came_to(1.0, fitness))
            assert strategy.best.evaluation.fitness == max(best, fitness)
            best = strategy.best.evaluation.fitness
