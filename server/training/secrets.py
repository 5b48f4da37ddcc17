"""Taking secrets out of an episode and out of a drive, their spans of experience moved along."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeVar, cast

from pydantic import JsonValue

from server.reports import DriveReport, MessageRecord, RepairReport, SnapshotRecord, SpanRecord
from server.training.episode import Episode, ExperienceSpan, Turn

__all__ = ["Redact", "redacted", "redacted_report"]

Redact = Callable[[JsonValue], JsonValue]
_Span = TypeVar("_Span", ExperienceSpan, SpanRecord)


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


def redacted_report(report: RepairReport, redact: Redact) -> RepairReport:
    """Return the report of a drive without secrets, its spans on the same words as before."""
    bare = report.model_copy(update={"drive": None}).model_dump(mode="json")
    clean = RepairReport.model_validate(redact(cast("JsonValue", bare)))
    drive = report.drive and _drive(report.drive, redact)
    return clean.model_copy(update={"drive": drive})


def _drive(drive: DriveReport, redact: Redact) -> DriveReport:
    shots = tuple(_shot(shot, redact) for shot in drive.snapshots)
    tools = redact(cast("JsonValue", list(drive.tools)))
    assert isinstance(tools, list)
    return drive.model_copy(update={"snapshots": shots, "tools": tuple(tools)})


def _shot(shot: SnapshotRecord, redact: Redact) -> SnapshotRecord:
    messages: list[MessageRecord] = []
    for one in shot.messages:
        text, spans = _parts(one.text, sorted(one.spans, key=lambda span: span.start), redact)
        messages.append(one.model_copy(update={"text": text, "spans": tuple(spans)}))
    return shot.model_copy(update={"messages": tuple(messages), "reply": str(redact(shot.reply))})


def _parts(text: str, spans: list[_Span], redact: Redact) -> tuple[str, list[_Span]]:
    shown, end = "", 0
    moved: list[_Span] = []
    for span in spans:
        shown += str(redact(text[end : max(end, span.start)]))
        start = len(shown)
        shown += str(redact(text[max(end, span.start) : max(end, span.end)]))
        end = max(end, span.end)
        if len(shown) > start:
            moved.append(span.model_copy(update={"start": start, "end": len(shown)}))
    return shown + str(redact(text[end:])), moved
