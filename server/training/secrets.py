"""Taking secrets out of an episode, its spans of experience moved along."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import cast

from pydantic import JsonValue

from server.training.episode import Episode, ExperienceSpan, Turn

__all__ = ["Redact", "redacted"]

Redact = Callable[[JsonValue], JsonValue]


def redacted(episode: Episode, redact: Redact) -> Episode:
    """Return the episode without secrets, in messages, arguments, tools and reasons.

    Text is looked at in parts, so that a span holds the same words as before; a secret that begins in one
    part and ends in the next is caught when a file is written, where spans are gone.
    """
    messages: list[Turn] = []
    moved: list[ExperienceSpan] = []
    for index, turn in enumerate(episode.messages):
        spans = sorted((one for one in episode.experience if one.message == index), key=lambda one: one.start)
        content, found = _parts(turn.content, spans, redact)
        moved += found
        calls = [cast("JsonValue", call.model_dump(mode="json")) for call in turn.tool_calls]
        plain = turn.model_dump(mode="json") | {"content": content, "tool_calls": redact(calls)}
        messages.append(Turn.model_validate(plain))
    rest = {"task", "tools", "steps"}
    shown = redact(cast("JsonValue", episode.model_dump(mode="json", include=rest)))
    assert isinstance(shown, dict)
    whole = episode.model_dump(mode="json") | shown
    whole["messages"] = [one.model_dump(mode="json") for one in messages]
    whole["experience"] = [one.model_dump(mode="json") for one in moved]
    # A tool's answer may hold half a character, which no file can.
    return Episode.model_validate_json(json.dumps(whole, ensure_ascii=False).encode("utf-8", "replace"))


def _parts(text: str, spans: list[ExperienceSpan], redact: Redact) -> tuple[str, list[ExperienceSpan]]:
    shown, end = "", 0
    moved: list[ExperienceSpan] = []
    for span in spans:
        shown += str(redact(text[end : max(end, span.start)]))
        start = len(shown)
        shown += str(redact(text[max(end, span.start) : max(end, span.end)]))
        end = max(end, span.end)
        if len(shown) > start:
            moved.append(span.model_copy(update={"start": start, "end": len(shown)}))
    return shown + str(redact(text[end:])), moved
