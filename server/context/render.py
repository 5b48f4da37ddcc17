"""The live timeline: a log rendered under a policy. Pure: equal logs and policies give equal messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from server.context.events import (
    Event,
    EventLog,
    Experience,
    Instruction,
    ModelTurn,
    Note,
    Plan,
    Problem,
    Recalled,
    Result,
    Selection,
    Task,
)
from server.context.messages import Span, Spoken, spoken
from server.context.policy import ContextPolicy

__all__ = ["Rendered", "asks_to_tidy", "protected", "render", "stub_of"]

Count = Callable[[str], int]
_PER_MESSAGE = 4
"""Tokens that a chat format adds to each message, about."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """What is sent, and what was left out of it."""

    messages: tuple[Spoken, ...]
    tokens: int
    cleared: tuple[str, ...] = ()
    """Results that only a stub, or the model's own summary, stands for."""
    fits: bool = True
    """Whether it stays within the budget; what is protected is kept even where it does not."""


def render(log: EventLog, policy: ContextPolicy, count: Count) -> Rendered:
    """Return the messages of a log.

    Args:
        log: of one task.
        policy: what to leave out, and when.
        count: tokens of a text for the model that is asked.
    """
    events = log.events
    whole = _rendered(events, {}, policy, count, hides_thoughts=policy.template == "reasoned")
    match policy.template:
        case "causal" | "reasoned":
            return whole
        case "window":
            return _windowed(events, {}, policy, count)
        case "self":
            return _windowed(events, _decided(events, policy), policy, count)


def asks_to_tidy(log: EventLog, policy: ContextPolicy, count: Count) -> tuple[str, ...]:
    """Return the results that the model is to decide about now; none below the trigger."""
    if policy.template != "self":
        return ()
    decided = _decided(log.events, policy)
    shown = _rendered(log.events, decided, policy, count)
    if shown.tokens <= policy.trigger * policy.budget_tokens:
        return ()
    held = protected(log.events, policy)
    open_ = [one for one in log.results() if one.name not in held and one.name not in decided]
    return tuple(one.name for one in open_ if _gain(one, count) >= policy.clear_at_least)


def protected(events: Sequence[Event], policy: ContextPolicy) -> frozenset[str]:
    """Return the results that stay whole: the newest, and those that the plan or the last step refers to."""
    names = [event.name for event in events if isinstance(event, Result)]
    plans = [event for event in events if isinstance(event, Plan)]
    turns = [event for event in events if isinstance(event, ModelTurn)]
    held = set(names[len(names) - policy.keep :]) if policy.keep else set[str]()
    if plans:
        held |= {name for name in names if f"${name}" in plans[-1].text}
    if turns:
        held |= turns[-1].reads
    return frozenset(held)


def stub_of(result: Result) -> str:
    """Return what stands for a result that was cleared."""
    keys = f", keys {', '.join(result.keys[:12])}" if result.keys else ""
    return f"[result {result.name} cleared: {result.size} characters{keys}; recall {result.name} to see it]"


def _gain(result: Result, count: Count) -> int:
    return count(result.text) - count(stub_of(result))


def _decided(events: Sequence[Event], policy: ContextPolicy) -> dict[str, str]:
    """Return what stands for each result the model chose to compress or drop, as far as it may."""
    held = protected(events, policy)
    results = {event.name: event for event in events if isinstance(event, Result)}
    standing: dict[str, str] = {}
    for event in events:
        if not isinstance(event, Selection):
            continue
        words = dict(event.summaries)
        for name, decision in event.decisions:
            if name not in results:
                continue
            if decision == "keep":
                standing.pop(name, None)
            elif decision == "compress" and words.get(name):
                standing[name] = f"[result {name}, in your words: {words[name]}; recall {name} to see it]"
            else:
                standing[name] = stub_of(results[name])
    return {name: text for name, text in standing.items() if name not in held}


def _windowed(
    events: Sequence[Event], standing: dict[str, str], policy: ContextPolicy, count: Count
) -> Rendered:
    """Return the messages with old results cleared, oldest first, as far as the budget asks for it."""
    shown = _rendered(events, standing, policy, count)
    goal = policy.trigger * policy.budget_tokens
    if shown.tokens <= goal:
        return shown
    held = protected(events, policy)
    for event in events:
        if not isinstance(event, Result) or event.name in held or event.name in standing:
            continue
        if _gain(event, count) < policy.clear_at_least:
            continue
        standing = {**standing, event.name: stub_of(event)}
        shown = _rendered(events, standing, policy, count)
        if shown.tokens <= goal:
            return shown
    if shown.fits:
        return shown
    shown = _rendered(events, standing, policy, count, hides_thoughts=True)
    return shown if shown.fits or not policy.summaries else _summarised(events, standing, policy, count)


def _summarised(
    events: Sequence[Event], standing: dict[str, str], policy: ContextPolicy, count: Count
) -> Rendered:
    """Return the messages with the oldest steps told in one line, as many as must be."""
    turns = [place for place, event in enumerate(events) if isinstance(event, ModelTurn)]
    shown = _rendered(events, standing, policy, count, hides_thoughts=True)
    for last in turns[1 : len(turns) - policy.keep]:
        told = [*_without_steps(events[:last], standing), *events[last:]]
        shown = _rendered(told, standing, policy, count, hides_thoughts=True)
        if shown.fits:
            break
    names = tuple(event.name for event in events if isinstance(event, Result) and event.name in standing)
    return replace(shown, cleared=names)


def _without_steps(events: Sequence[Event], standing: dict[str, str]) -> Iterator[Event]:
    """Yield old events, their steps as one note at the end; what is protected and what failed stays."""
    steps: list[str] = []
    for event in events:
        if isinstance(event, ModelTurn):
            steps.append(event.action)
        elif isinstance(event, Result) and event.name in standing:
            steps.append(f"gave {event.name}")
        elif not isinstance(event, Note | Recalled):
            yield event
    if steps:
        yield Note(f"[earlier steps: {'; '.join(steps)}]")


def _rendered(
    events: Sequence[Event],
    standing: dict[str, str],
    policy: ContextPolicy,
    count: Count,
    *,
    hides_thoughts: bool = False,
) -> Rendered:
    messages = _joined(_messages(events, standing, hides_thoughts=hides_thoughts))
    tokens = sum(count(one.text) + _PER_MESSAGE for one in messages)
    cleared = tuple(event.name for event in events if isinstance(event, Result) and event.name in standing)
    return Rendered(tuple(messages), tokens, cleared, fits=tokens <= policy.budget_tokens)


def _messages(events: Sequence[Event], standing: dict[str, str], *, hides_thoughts: bool) -> Iterator[Spoken]:
    newest_plan = next((event for event in reversed(events) if isinstance(event, Plan)), None)
    newest_turn = next((event for event in reversed(events) if isinstance(event, ModelTurn)), None)
    for event in events:
        match event:
            case Instruction(text=text):
                yield spoken("system", text, "instruction")
            case Task(text=text):
                yield spoken("user", text, "user")
            case Experience(unit=unit, text=text):
                yield Spoken("user", text, "driver", (Span(0, len(text), unit),))
            case Plan(text=text):
                if event is newest_plan:
                    yield spoken("assistant", text, "model")
            case ModelTurn(action=action, thought=thought):
                is_shown = thought and not (hides_thoughts and event is not newest_turn)
                yield spoken("assistant", f"{thought}\n{action}" if is_shown else action, "model")
            case Result(name=name, text=text):
                yield spoken("user", standing.get(name, f"{name}: {text}"), "tool")
            case Recalled(name=name, text=text):
                yield spoken("user", f"{name}: {text}", "tool")
            case Problem(text=text):
                yield spoken("user", f"error: {text}", "tool")
            case Note(text=text):
                yield spoken("user", text, "driver")
            case Selection():
                continue


def _joined(messages: Iterator[Spoken]) -> list[Spoken]:
    """Return messages in which roles take turns: those of one role in a row become one, spans moved along."""
    joined: list[Spoken] = []
    for one in messages:
        if not joined or joined[-1].role != one.role:
            joined.append(one)
            continue
        before = joined[-1]
        moved = len(before.text) + 1
        spans = tuple(
            replace(span, start=max(0, span.start + moved - 1), end=span.end + moved) for span in one.spans
        )
        author = before.author if before.author == one.author else "driver"
        joined[-1] = Spoken(before.role, f"{before.text}\n{one.text}", author, (*before.spans, *spans))
    return joined
