"""Taking experience out of an episode, by its spans, so that a model learns to do without it.

Paper: AgentEvolver (experience stripping, §3.2). Differs: by typed spans that were kept when the experience
was put in, not by a pattern over rendered text.
"""

from __future__ import annotations

from server.training.episode import Episode, EpisodeStep, ExperienceSpan, Turn

__all__ = ["stripped"]


def stripped(episode: Episode) -> Episode:
    """Return the episode without what experience units said; a message that was nothing else goes too."""
    if not episode.experience:
        return episode
    kept: list[Turn] = []
    moved: dict[int, int] = {}
    for index, turn in enumerate(episode.messages):
        spans = [span for span in episode.experience if span.message == index]
        bare = turn.model_copy(update={"content": _without(turn.content, spans)})
        if spans and not bare.content.strip() and turn.role in ("system", "user"):
            continue
        moved[index] = len(kept)
        kept.append(bare)
    steps = tuple(_moved(step, moved) for step in episode.steps)
    trained = tuple(moved[index] for index in episode.trained)
    return episode.model_copy(
        update={"messages": tuple(kept), "trained": trained, "steps": steps, "experience": ()}
    )


def _moved(step: EpisodeStep, moved: dict[int, int]) -> EpisodeStep:
    return step.model_copy(update={"messages": tuple(moved[index] for index in step.messages)})


def _without(text: str, spans: list[ExperienceSpan]) -> str:
    kept, end = "", 0
    for span in sorted(spans, key=lambda one: one.start):
        kept += text[end : max(end, span.start)]
        end = max(end, span.end)
    return kept + text[end:]
