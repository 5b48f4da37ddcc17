"""The population without any server: told by hand; selection, survival, guidance, determinism."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from server.evolution.building import base_candidate, build_candidate
from server.evolution.candidate import Evaluation, Fitness, Made, Record
from server.evolution.options import SearchOptions, Switches
from server.evolution.population import Greedy, Population
from server.evolution.proposal import Proposal
from server.evolution.retry import RetryOnly
from server.evolution.selection import BINS, bin_of, ranked, select_parent, survivors
from server.evolution.strategy import Order, Strategy
from skills_store.workflow.edits import EditParameter, InsertNode
from skills_store.workflow.model import Node
from tests.worlds import node, workflow

BASE = workflow(node("sum", "sums/add", {"a": 0, "b": 0}), outputs={"o": "$nodes.sum.output#/result"})
OPTIONS = SearchOptions(strategy="population", generations=12)


def came_to(progress: float) -> Evaluation:
    fitness = Fitness(keeps_inputs=True, outputs_produced=progress, executed=progress, rule_score=progress)
    return Evaluation("failed", (), fitness, None, None, {}, 0, 1.0)


BEGUN = Record(base_candidate(BASE), came_to(0.4))


def literal(value: int, progress: float = 0.4, parent: Record = BEGUN) -> Record:
    """Return a child of the same structure as its parent."""
    edit = EditParameter(node="sum", pointer="/a", value=value)
    return Record(build_candidate(parent.candidate, Proposal((edit,), 0.1)), came_to(progress))


def longer(steps: int, progress: float = 0.4) -> Record:
    """Return a child with so many more nodes, each a structure of its own."""
    edits = [
        InsertNode(planned=Node(id=f"n{i}", tool=BASE.nodes[0].tool, arguments={"a": i}), position=0)
        for i in range(steps)
    ]
    return Record(build_candidate(BEGUN.candidate, Proposal(tuple(edits), 0.1)), came_to(progress))


def driven(strategy: Strategy, answers: Sequence[float], width: int = 3) -> list[Order]:
    """Answer every order with a child of its parent; return the orders."""
    orders: list[Order] = []
    while batch := strategy.ask(width):
        for order in batch:
            number = len(orders)
            progress = answers[number % len(answers)]
            record = (
                Record(order.candidate, came_to(progress))
                if order.candidate is not None
                else literal(1000 + number, progress, order.parent or BEGUN)
            )
            strategy.tell(order, record)
            orders.append(order)
    return orders


def told_of(orders: Sequence[Order]) -> list[tuple[object, ...]]:
    return [(o.number, o.mode, o.generation, o.parent and o.parent.candidate.id, o.seed) for o in orders]


class TestSurvival:
    def test_exact_duplicates_are_one(self):
        assert ranked([BEGUN, BEGUN, literal(1), literal(1)]) == [BEGUN, literal(1)]

    def test_every_structure_survives_before_any_survives_twice(self):
        crowd = [literal(value, 0.9) for value in range(20)]
        odd = [longer(1, 0.1), longer(2, 0.2)]
        assert len({bin_of(record) for record in [*odd, *crowd]}) == 3
        kept = survivors([*crowd, *odd], SearchOptions(size=4))
        assert Counter(len(record.candidate.workflow.nodes) for record in kept) == {1: 2, 2: 1, 3: 1}

    def test_without_diversity_the_fittest_survive_whatever_they_look_like(self):
        crowd = [literal(value, 0.9) for value in range(20)]
        options = SearchOptions(size=4, switches=Switches(diversity=False))
        kept = survivors([longer(1, 0.1), *crowd], options)
        assert [len(record.candidate.workflow.nodes) for record in kept] == [1, 1, 1, 1]

    @given(
        st.lists(st.tuples(st.booleans(), st.integers(1, 5), st.floats(0, 1)), min_size=1, max_size=25),
        st.integers(1, 8),
    )
    @settings(max_examples=40, deadline=None)
    def test_the_fittest_always_survives_and_the_bound_holds(
        self, drawn: list[tuple[bool, int, float]], size: int
    ):
        records = [longer(n, p) if is_longer else literal(n, p) for is_longer, n, p in drawn]
        kept = survivors(records, SearchOptions(size=size))
        assert kept[0] == ranked(records)[0]
        assert len(kept) <= size
        assert all(a.evaluation.fitness >= b.evaluation.fitness for a, b in pairwise(kept))
        assert {record.candidate.id for record in kept} <= {record.candidate.id for record in records}

    def test_a_bin_is_of_the_structure_and_not_of_literals(self):
        assert bin_of(literal(1)) == bin_of(literal(2)) == bin_of(BEGUN)
        assert len({bin_of(longer(steps)) for steps in range(12)}) > 4
        assert all(0 <= bin_of(longer(steps)) < BINS for steps in range(12))


class TestParents:
    MEMBERS = ranked([literal(value, value / 20) for value in range(1, 17)])

    def test_without_exploration_the_parent_is_of_the_best_quarter(self):
        chosen = {
            self.MEMBERS.index(select_parent(self.MEMBERS, 0.0, OPTIONS, Random(seed))) for seed in range(200)
        }
        assert chosen == {0}, "five are drawn of four, so the winner is the best"
        pairs = replace(OPTIONS, tournament=1)
        chosen = {
            self.MEMBERS.index(select_parent(self.MEMBERS, 0.0, pairs, Random(seed))) for seed in range(200)
        }
        assert chosen == {0, 1, 2, 3}

    def test_with_it_any_member_can_be(self):
        chosen = {
            self.MEMBERS.index(select_parent(self.MEMBERS, 1.0, OPTIONS, Random(seed))) for seed in range(400)
        }
        assert chosen == set(range(16))


class TestGenerations:
    def test_it_begins_with_the_base_and_breeds_whole_generations(self):
        orders = driven(Population(BASE, OPTIONS), [0.4])
        assert [order.mode for order in orders[:1]] == ["base"]
        assert Counter(order.generation for order in orders[1:]) == dict.fromkeys(range(1, 13), 3)
        assert [order.number for order in orders] == list(range(len(orders)))

    def test_nothing_is_ordered_while_a_generation_is_under_way(self):
        strategy = Population(BASE, OPTIONS)
        strategy.take(BEGUN)
        first = strategy.ask(2)
        rest = strategy.ask(5)
        assert (len(first), len(rest), strategy.ask(5)) == (2, 1, [])
        for order in (*rest, *first):
            strategy.tell(order, None)
        assert {order.generation for order in strategy.ask(5)} == {2}

    @given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.integers(0, 5), st.permutations([0, 1, 2]))
    @settings(max_examples=30, deadline=None)
    def test_equal_seed_and_history_give_equal_orders_in_whatever_order_they_are_told(
        self, answers: list[float], seed: int, order: list[int]
    ):
        options = replace(OPTIONS, seed=seed, generations=6)
        one = told_of(driven(Population(BASE, options), answers))
        again = told_of(driven(Population(BASE, options), answers, width=1))
        assert one == again

        def shuffled() -> list[tuple[object, ...]]:
            strategy, orders = Population(BASE, options), list[Order]()
            while batch := strategy.ask(3):
                for place in [place for place in order if place < len(batch)]:
                    asked = batch[place]
                    progress = answers[asked.number % len(answers)]
                    made = asked.candidate
                    record = (
                        Record(made, came_to(progress))
                        if made
                        else literal(1000 + asked.number, progress, asked.parent or BEGUN)
                    )
                    strategy.tell(asked, record)
                orders += batch
            return told_of(orders)

        assert shuffled() == one

    def test_another_seed_is_another_search(self):
        orders = [told_of(driven(Population(BASE, replace(OPTIONS, seed=s)), [0.4, 0.5])) for s in (0, 1)]
        assert orders[0] != orders[1]

    def test_a_stagnant_search_is_guided_and_not_at_its_beginning(self):
        orders = driven(Population(BASE, OPTIONS), [0.4])
        guided = [order.generation for order in orders if order.mode == "meta"]
        assert guided == [4, 7, 10], "after three generations, then with a pause of a fifth of them"
        assert all(len(order.others) <= 3 for order in orders if order.mode == "meta")

    def test_a_growing_search_is_not(self):
        answers = [0.1 + 0.02 * n for n in range(45)]
        orders = driven(Population(BASE, OPTIONS), answers)
        assert not [order for order in orders if order.mode == "meta"]

    @pytest.mark.parametrize(
        ("switches", "lost"),
        [(Switches(meta_guidance=False), "meta"), (Switches(), "cross")],
    )
    def test_what_is_switched_off_is_not_ordered(self, switches: Switches, lost: str):
        orders = driven(Population(BASE, replace(OPTIONS, switches=switches, generations=40)), [0.4])
        assert lost not in {order.mode for order in orders}

    def test_crossover_takes_another_member(self):
        options = replace(OPTIONS, crossover=1.0, generations=30)
        orders = [o for o in driven(Population(BASE, options), [0.4, 0.5]) if o.mode == "cross"]
        assert orders
        assert all(order.others and order.others[0] is not order.parent for order in orders)

    def test_growth_lowers_the_intensity_that_is_told(self):
        orders = driven(Population(BASE, replace(OPTIONS, generations=3)), [0.2, 0.9, 0.9, 0.9])
        assert orders[1].intensity == OPTIONS.highest_intensity
        assert orders[4].intensity < 0.3
        assert orders[4].growth > 0

    def test_an_infeasible_child_may_be_built_upon(self):
        strategy = Population(BASE, replace(OPTIONS, generations=1))
        strategy.take(BEGUN)
        for order in strategy.ask(3):
            bad = replace(came_to(0.1), status="static_faults")
            strategy.tell(order, Record(literal(order.number).candidate, bad))
        strategy.ask(3)
        assert "static_faults" in {member.evaluation.status for member in strategy.members}


def test_greedy_is_a_population_of_the_one_best():
    strategy = Greedy(BASE, OPTIONS)
    orders = driven(strategy, [0.3, 0.6, 0.2, 0.5])
    assert len(strategy.members) == 1
    assert strategy.best.evaluation.fitness.progress == max(0.6, 0.0) * 3 / 4
    assert {order.seed.split(":")[1] for order in orders} == {"greedy"}


def test_retry_asks_for_the_base_as_it_is_a_bounded_number_of_times():
    orders = driven(RetryOnly(BASE, SearchOptions(retries=3)), [0.4])
    assert [(order.number, order.mode) for order in orders] == [
        (0, "base"),
        (1, "retry"),
        (2, "retry"),
        (3, "retry"),
    ]
    assert all(order.candidate == base_candidate(BASE) for order in orders)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
@settings(max_examples=30, deadline=None)
def test_the_best_member_never_gets_worse(answers: list[float]):
    strategy = Population(BASE, replace(OPTIONS, generations=8))
    strategy.take(BEGUN)
    best = strategy.best.evaluation.fitness
    while batch := strategy.ask(3):
        for order in batch:
            progress = answers[order.number % len(answers)]
            strategy.tell(order, Record(literal(1000 + order.number).candidate, came_to(progress), Made()))
        assert strategy.best.evaluation.fitness >= best
        best = strategy.best.evaluation.fitness
