"""The data card: what is in an export, where it is from, what is simulated, and what nobody knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from catalog.plain_text import plain_text
from server.training.episode import Episode

__all__ = ["render_card"]


def render_card(
    episodes: Sequence[Episode], files: Mapping[str, int], licences: Mapping[str, str], alpha: float
) -> str:
    """Return the README.md of an export.

    Args:
        episodes: all that were exported, of both splits.
        files: rows by file.
        licences: what the operator said of a server's data, by server.
        alpha: weight of attribution beside outcome.
    """
    parts = [
        _head(),
        _counts(episodes),
        _files(files),
        _sources(episodes, licences),
        _limits(episodes, alpha),
    ]
    return "\n".join(parts)


def _head() -> str:
    return (
        "# Training data of a skillbank\n\n"
        "One line of `episodes.jsonl` is one run of one task; all other files are made from it.\n"
        "Experience that a model was told is in `episodes.jsonl`, marked by spans, and in no other file.\n"
        "Known secrets and well-known shapes of tokens are replaced by `[redacted]`. Personal data is not\n"
        "looked for: read the files before you pass them on.\n"
    )


def _counts(episodes: Sequence[Episode]) -> str:
    rows = [
        ("episodes", len(episodes)),
        ("right", sum(one.outcome.score == 1.0 for one in episodes)),
        ("wrong", sum(one.outcome.score == 0.0 for one in episodes)),
        (
            "unscored (no check looked, or only the world failed)",
            sum(one.outcome.score is None for one in episodes),
        ),
        ("tasks", len({one.group for one in episodes})),
        ("families", len({one.family for one in episodes})),
        ("families in test", len({one.family for one in episodes if one.split == "test"})),
        ("steps labelled good", _labelled(episodes, "good")),
        ("steps labelled bad", _labelled(episodes, "bad")),
        (
            "episodes with advantages",
            sum(any(s.advantage is not None for s in one.steps) for one in episodes),
        ),
        ("episodes told with experience", sum(one.guided for one in episodes)),
    ]
    return "## Counts\n\n" + _table(("what", "how many"), rows)


def _labelled(episodes: Iterable[Episode], label: str) -> int:
    return sum(step.label == label for one in episodes for step in one.steps)


def _files(files: Mapping[str, int]) -> str:
    return "## Files\n\n" + _table(("file", "rows"), sorted(files.items()))


def _sources(episodes: Sequence[Episode], licences: Mapping[str, str]) -> str:
    policies = Counter((one.provenance.source, one.provenance.policy or "not on record") for one in episodes)
    servers = Counter(name for one in episodes for name in one.provenance.servers)
    by = _table(
        ("source", "who chose the steps", "episodes"),
        [(source, plain_text(policy, 80), count) for (source, policy), count in sorted(policies.items())],
    )
    of = _table(
        ("tool server", "licence of its data", "episodes"),
        [
            (name, licences.get(name, "not told: ask before you pass it on"), n)
            for name, n in sorted(servers.items())
        ],
    )
    sources = Counter(step.label_source for one in episodes for step in one.steps)
    labels = ", ".join(f"{name} {count}" for name, count in sorted(sources.items())) or "none"
    return f"## Sources\n\n{by}\n{of}\nLabels of steps by: {labels}.\n"


def _limits(episodes: Sequence[Episode], alpha: float) -> str:
    simulated = sum(one.provenance.simulated for one in episodes)
    return (
        "## What to know\n\n"
        f"- Simulated: {simulated} of {len(episodes)} episodes. Their steps were a planner's, a search's or\n"
        "  a person's and are told as a model's turns; no model said them. Calls and answers are real.\n"
        f"- Advantages: alpha {alpha}, per step, relative to the other runs of the same task.\n"
        "- Token ids and log-probabilities of the model that acted are not on record. A trainer takes its\n"
        "  own, so the first update starts at a ratio of 1.\n"
        "- Splits are by family, so that no kind of task is in both.\n"
        "- Small sets hurt: EvoFlux reports that SFT and SFT+DPO on 177 and 624 examples matched or\n"
        "  fell below the model as it was. Measure on the test split before a tuned model is put in use.\n"
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    lines += [f"| {' | '.join(str(cell).replace('|', '/') for cell in row)} |" for row in rows]
    return "\n".join(lines) + "\n"
