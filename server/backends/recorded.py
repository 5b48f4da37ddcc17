"""A backend that repeats what another one answered: recorded once, replayed without it.

A recording is a JSON Lines file, one request and its completion a line, found by the digest of what
was asked; equal requests are answered in the order in which they were recorded, then by the last.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from catalog.canonical import digest
from server.backends.backend import Completion, Offer, Request, Wire
from server.backends.errors import BackendMisconfigured
from server.backends.estimate import estimate_tokens

__all__ = ["RecordedBackend", "request_digest"]


class _Entry(BaseModel):
    """One line of a recording."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    digest: str
    asked: dict[str, JsonValue]
    """The request, for whoever reads the file."""
    answer: Completion


def request_digest(request: Request) -> str:
    """Return the identity of what is asked; neither the time for it nor places of lessons count."""
    return digest(_asked(request))


def _asked(request: Request) -> dict[str, JsonValue]:
    fields = dataclasses.asdict(request)
    del fields["deadline_seconds"], fields["experience"]
    return json.loads(json.dumps(fields))


class RecordedBackend:
    """Replays a recording, or makes one while another backend answers.

    Args:
        path: of the recording.
        recording: the backend whose answers are added to it; None: it is replayed, and nothing else.

    Raises:
        BackendMisconfigured: there is no such recording, or a line of it is none.
    """

    samples = True

    def __init__(self, path: Path, recording: Wire | None = None) -> None:
        self.name = recording.name if recording is not None else f"recorded:{path.name}"
        self._path = path
        self._inner = recording
        self._kept: dict[str, list[Completion]] = {}
        for entry in _read(path, missing_ok=recording is not None):
            self._kept.setdefault(entry.digest, []).append(entry.answer)

    @property
    def context_tokens(self) -> int | None:
        """As the recorded backend says, None in a replay."""
        return self._inner.context_tokens if self._inner is not None else None

    async def complete(self, request: Request) -> Completion:
        """Return the recorded answer, or record one.

        Raises:
            BackendError: the recorded backend's, or that this request was never recorded.
        """
        if self._inner is not None:
            answer = await self._inner.complete(request)
            self._record(request, answer)
            return answer
        kept = self._kept.get(request_digest(request))
        if kept is None:
            raise BackendMisconfigured(
                f"{self.name}: no answer was recorded for a request whose last message begins "
                f"{request.messages[-1].text[:80]!r}: record it anew"
            )
        return kept.pop(0) if len(kept) > 1 else kept[0]

    async def count_tokens(self, text: str) -> int:
        """Return what the recorded backend counts, an estimate in a replay."""
        return estimate_tokens(text) if self._inner is None else await self._inner.count_tokens(text)

    async def examine(self) -> Offer:
        """Return what the recorded backend offers."""
        return Offer("none", "recorded") if self._inner is None else await self._inner.examine()

    def _record(self, request: Request, answer: Completion) -> None:
        entry = _Entry(
            digest=request_digest(request),
            asked=_asked(request),
            answer=answer,
        )
        with self._path.open("a", encoding="utf-8") as file:
            file.write(entry.model_dump_json() + "\n")


def _read(path: Path, *, missing_ok: bool) -> Sequence[_Entry]:
    try:
        lines = path.read_text("utf-8").splitlines()
    except FileNotFoundError as error:
        if missing_ok:
            return []
        raise BackendMisconfigured(f"{path}: there is no such recording") from error
    entries: list[_Entry] = []
    for number, line in enumerate(lines, start=1):
        try:
            entries.append(_Entry.model_validate_json(line))
        except ValidationError as error:
            raise BackendMisconfigured(f"{path}:{number}: no line of a recording") from error
    return entries
