"""The conditions of a stream side by side: what each came to, and McNemar's test between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import comb

from server.bench.stream_episodes import Answer, Played
from server.bench.stream_report import NoiseReport, Pair, PlannerRuns, StreamRun
from server.bench.stream_world import NOISE, Condition

__all__ = ["compare_conditions", "mcnemar", "noise_cost"]

_COMPARED: tuple[tuple[Condition, Condition], ...] = (
    ("none", "compile only"),
    ("compile only", "+ reuse"),
    ("+ reuse", "+ curation"),
    ("none", "+ curation"),
    ("text memory", "+ curation"),
    ("+ reuse", "no admission gate"),
)
_MOST_WRONG_TOLD = 5


def compare_conditions(
    planner: str, played: Mapping[Condition, Played], *, is_simulated: bool = False
) -> PlannerRuns:
    """Return what conditions came to under one planner, and how each pair of them differs."""
    answers: dict[Condition, Sequence[Answer]] = {name: one.answers for name, one in played.items()}
    return PlannerRuns(
        planner=planner,
        simulated=is_simulated,
        runs=tuple(_summary(condition, one) for condition, one in played.items()),
        pairs=tuple(_pair(one, two, answers) for one, two in _COMPARED if one in answers and two in answers),
    )


def _summary(condition: Condition, played: Played) -> StreamRun:
    answers = played.answers
    late = answers[len(answers) // 2 :]
    wrong = Counter(answer.task.family.id for answer in answers if not answer.right)
    wrong_direct = [answer.task.task for answer in answers if answer.direct and not answer.direct_right]
    return StreamRun(
        condition=condition,
        tasks=len(answers),
        right=sum(answer.right for answer in answers),
        direct=sum(answer.direct for answer in answers),
        direct_right=sum(answer.direct_right for answer in answers),
        late_direct=sum(answer.direct for answer in late),
        late_tasks=len(late),
        withheld=sum(answer.withheld for answer in answers),
        tokens=sum(answer.tokens for answer in answers),
        late_tokens=sum(answer.tokens for answer in late),
        calls=sum(answer.calls for answer in answers),
        seconds=sum(answer.seconds for answer in answers),
        bank=played.bank,
        wrong=dict(wrong.most_common()),
        wrong_direct=tuple(wrong_direct[:_MOST_WRONG_TOLD]),
    )


def noise_cost(played: Mapping[Condition, Played]) -> NoiseReport | None:
    """Return what label noise costs; None where it was not played beside the clean stream."""
    noisy, clean = played.get("20 % label noise"), played.get("+ curation")
    if noisy is None or clean is None:
        return None
    both = [
        (one, other)
        for one, other in zip(noisy.answers, clean.answers, strict=True)
        if one.labelled and other.labelled
    ]
    return NoiseReport(
        share=NOISE,
        tasks=len(both),
        right=sum(one.right for one, _ in both),
        right_without_noise=sum(other.right for _, other in both),
    )


def _pair(one: Condition, two: Condition, answers: Mapping[Condition, Sequence[Answer]]) -> Pair:
    both = list(zip(answers[one], answers[two], strict=True))
    only_one = sum(a.right and not b.right for a, b in both)
    only_two = sum(b.right and not a.right for a, b in both)
    return Pair(one=one, two=two, only_one=only_one, only_two=only_two, p=mcnemar(only_one, only_two))


def mcnemar(only_one: int, only_two: int) -> float:
    """Return the two-sided p of McNemar's exact test, 1 where nothing is discordant."""
    total, least = only_one + only_two, min(only_one, only_two)
    return min(1.0, 2 * sum(comb(total, k) for k in range(least + 1)) / 2**total)
