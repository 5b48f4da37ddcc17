"""Context templates: what must never be dropped is never dropped, and what is left out can be read again."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.context.events import (
    EventLog,
    Experience,
    Instruction,
    ModelTurn,
    Note,
    Plan,
    Problem,
    Result,
    Selection,
    Task,
)
from server.context.policy import TEMPLATES, ContextPolicy
from server.context.render import asks_to_tidy, protected, render, stub_of


def count(text: str) -> int:
    return -(-len(text) // 4)


def log_of(*events: object) -> EventLog:
    log = EventLog()
    for event in (Instruction("rules"), Task("the task"), *events):
        log.add(event)  # type: ignore[arg-type]
    return log


def result(number: int, size: int = 2_000) -> Result:
    return Result(f"r{number}", f"<{number}>" + "x" * size, size, ("id", "price"))


def steps(count_: int, size: int = 2_000) -> list[object]:
    made: list[object] = []
    for number in range(1, count_ + 1):
        made += [ModelTurn(f"call {number}", f"thought {number}"), result(number, size)]
    return made


def texts(log: EventLog, policy: ContextPolicy) -> str:
    return "\n".join(one.text for one in render(log, policy, count).messages)


@st.composite
def logs(draw: st.DrawFn) -> EventLog:
    log, results = log_of(), 0
    for kind in draw(st.lists(st.sampled_from(["step", "failed", "plan", "note"]), max_size=14)):
        match kind:
            case "step":
                results += 1
                reads = (
                    {f"r{draw(st.integers(1, results - 1))}"}
                    if results > 1 and draw(st.booleans())
                    else set()
                )
                log.add(ModelTurn(f"call {results}", draw(st.sampled_from(["", "why"])), frozenset(reads)))
                log.add(result(results, draw(st.integers(0, 4_000))))
            case "failed":
                log.add(Problem(f"failure {len(log.events)}"))
            case "plan":
                log.add(Plan(f"plan {len(log.events)} with $r{draw(st.integers(1, 5))}"))
            case _:
                log.add(Note("note"))
    if results and draw(st.booleans()):
        chosen = draw(st.sets(st.integers(1, results)))
        decisions = tuple((f"r{one}", draw(st.sampled_from(["keep", "compress", "drop"]))) for one in chosen)
        log.add(Selection(decisions, tuple((name, "short") for name, _ in decisions)))
    return log


policies = st.builds(
    ContextPolicy,
    template=st.sampled_from(TEMPLATES),
    budget_tokens=st.integers(50, 6_000),
    keep=st.integers(0, 4),
    clear_at_least=st.integers(0, 200),
    summaries=st.booleans(),
)


@given(logs(), policies)
def test_errors_the_plan_and_referenced_results_are_never_dropped(log: EventLog, policy: ContextPolicy):
    shown = "\n".join(one.text for one in render(log, policy, count).messages)
    plans = [event for event in log.events if isinstance(event, Plan)]
    for event in log.events:
        if isinstance(event, Problem):
            assert f"error: {event.text}" in shown
        if isinstance(event, Result) and event.name in protected(log.events, policy):
            assert event.text in shown
    assert not plans or plans[-1].text in shown


@given(logs(), policies)
def test_every_result_is_shown_or_can_be_read_again(log: EventLog, policy: ContextPolicy):
    rendered = render(log, policy, count)
    shown = "\n".join(one.text for one in rendered.messages)
    for one in log.results():
        assert one.text in shown or one.name in rendered.cleared
        assert one.name in shown


@given(logs(), policies)
def test_rendering_is_pure_and_roles_take_turns(log: EventLog, policy: ContextPolicy):
    first, again = render(log, policy, count), render(log, policy, count)
    assert first == again
    roles = [one.role for one in first.messages]
    assert all(one != other for one, other in itertools.pairwise(roles))
    assert first.fits == (first.tokens <= policy.budget_tokens)


@given(logs(), st.integers(1, 6_000))
def test_causal_only_appends(log: EventLog, budget: int):
    policy = ContextPolicy("causal", budget_tokens=budget)
    before = render(log, policy, count).messages
    log.add(ModelTurn("next"))
    after = render(log, policy, count).messages
    whole = lambda messages: "\n".join(one.text for one in messages)  # noqa: E731
    if not any(isinstance(event, Plan) for event in log.events):
        assert whole(after).startswith(whole(before))


def test_a_window_clears_the_oldest_results_first_and_no_more_than_it_must():
    log = log_of(*steps(6))
    rendered = render(log, ContextPolicy("window", budget_tokens=3_700, keep=2), count)
    assert rendered.cleared == ("r1", "r2")
    assert rendered.fits
    assert stub_of(result(1)) in rendered.messages[2].text or stub_of(result(1)) in rendered.messages[3].text


def test_a_window_below_its_trigger_shows_everything():
    log = log_of(*steps(3))
    assert render(log, ContextPolicy("window", budget_tokens=9_000), count).cleared == ()


def test_a_result_that_the_last_step_reads_stays_whole_however_old_it_is():
    log = log_of(*steps(6), ModelTurn("call 7", reads=frozenset({"r1"})))
    rendered = render(log, ContextPolicy("window", budget_tokens=3_000, keep=1), count)
    assert "r1" not in rendered.cleared
    assert "r2" in rendered.cleared


def test_reasoned_shows_only_the_newest_thought():
    shown = texts(log_of(*steps(3, size=10)), ContextPolicy("reasoned"))
    assert "thought 3" in shown
    assert "thought 1" not in shown
    assert "call 1" in shown


def test_the_model_is_asked_to_tidy_only_past_the_trigger_and_what_it_keeps_stays():
    policy = ContextPolicy("self", budget_tokens=3_500, keep=2)
    log = log_of(*steps(6))
    assert asks_to_tidy(log, policy, count) == ("r1", "r2", "r3", "r4")
    assert asks_to_tidy(log_of(*steps(2)), policy, count) == ()
    log.add(Selection((("r1", "keep"), ("r2", "compress"), ("r3", "drop")), (("r2", "twelve in stock"),)))
    shown = texts(log, policy)
    assert "in your words: twelve in stock" in shown
    assert stub_of(result(3)) in shown


def test_without_a_decision_self_clears_like_a_window():
    log = log_of(*steps(6))
    options = {"budget_tokens": 3_500, "keep": 2}
    assert render(log, ContextPolicy("self", **options), count) == render(
        log, ContextPolicy("window", **options), count
    )


def test_summaries_tell_the_oldest_steps_in_one_line():
    log = log_of(*steps(30, size=300))
    policy = ContextPolicy("window", budget_tokens=500, keep=2, clear_at_least=0, summaries=True)
    rendered = render(log, policy, count)
    assert "[earlier steps: call 1; gave r1" in "\n".join(one.text for one in rendered.messages)
    assert len(rendered.messages) < len(render(log, ContextPolicy("causal"), count).messages)


def test_experience_is_stripped_exactly():
    with_it = log_of(Experience("e1", "Dates are ISO."), Experience("e2", "Round late."))
    without = log_of()
    policy = ContextPolicy("causal")
    stripped = [one.without_experience() for one in render(with_it, policy, count).messages]
    assert [one.text for one in stripped] == [one.text for one in render(without, policy, count).messages]
    spans = [span for one in render(with_it, policy, count).messages for span in one.spans]
    assert [span.unit for span in spans] == ["e1", "e2"]


@pytest.mark.parametrize(
    "wrong", [{"budget_tokens": 0}, {"keep": -1}, {"trigger": 0.0}, {"trigger": 1.5}, {"clear_at_least": -1}]
)
def test_a_policy_that_makes_no_sense_is_refused(wrong: dict[str, float]):
    with pytest.raises(ValueError, match=r"at least|above 0"):
        ContextPolicy(**wrong)  # type: ignore[arg-type]
