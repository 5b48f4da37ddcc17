"""Completions of a planning benchmark on tape, so that it resumes and is replayed without a model.

One JSON line an answer, appended as it comes. What is replayed is what a model really said, with
the tokens and seconds it took then; where a prompt has changed since, that is counted and told.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from server.backends.backend import Backend, Completion, Constraint, Request, Stop, Usage
from server.backends.errors import BackendUnavailable
from server.bench.errors import BenchError

__all__ = [
    "About",
    "Answer",
    "NotRecorded",
    "Tape",
    "TapedBackend",
    "new_tape",
    "read_tape",
    "request_digest",
]


class NotRecorded(BackendUnavailable):
    """The tape does not hold the answer, and nobody can be asked."""


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class About(_Line):
    """Who answers on a tape, and where."""

    kind: Literal["about"] = "about"
    model: str
    quantisation: str = ""
    runtime: str = ""
    machine: str = ""
    recorded: str = ""
    """Date and circumstances of the recording."""
    context_tokens: int | None = None
    samples: bool = True


class Answer(_Line):
    """One completion, in its place."""

    kind: Literal["answer"] = "answer"
    condition: str
    task: str
    turn: int
    prompt: str
    """Digest of what was asked."""
    texts: tuple[str, ...]
    stops: tuple[Stop, ...]
    input_tokens: int
    cached_tokens: int = 0
    output_tokens: int
    seconds: float
    constraint: Constraint = "none"


class Counted(_Line):
    """How many tokens a text has for the model."""

    kind: Literal["count"] = "count"
    text: str
    """Digest of the text."""
    tokens: int


_line: TypeAdapter[About | Answer | Counted] = TypeAdapter(
    Annotated[About | Answer | Counted, Field(discriminator="kind")]
)
_CHARACTERS_PER_TOKEN = 3.4


@dataclass
class Tape:
    """The answers that are there. `path` is None for one that is only read."""

    about: About
    path: Path | None = None
    answers: dict[tuple[str, str, int], Answer] = field(default_factory=dict[tuple[str, str, int], Answer])
    counts: dict[str, int] = field(default_factory=dict[str, int])
    changed: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """Condition and task of answers whose prompt is another one today."""

    def at(
        self, condition: str, task: str, live: Backend | None = None, hidden: Mapping[str, str] | None = None
    ) -> TapedBackend:
        """Return the backend of one task under one condition.

        Args:
            condition: how plans are asked for.
            task: id of the task.
            live: asked for what is not on the tape; None: nobody.
            hidden: texts of this run by the names that stand for them on the tape.
        """
        return TapedBackend(self, condition, task, live, dict(hidden or {}))

    def keep(self, line: About | Answer | Counted) -> None:
        """Add a line, on disk at once."""
        match line:
            case Answer():
                self.answers[line.condition, line.task, line.turn] = line
            case Counted():
                self.counts[line.text] = line.tokens
            case About():
                self.about = line
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line.model_dump_json(exclude_defaults=False) + "\n")


@dataclass
class TapedBackend:
    """A backend that answers from a tape, and records what is not on it."""

    tape: Tape
    condition: str
    task: str
    live: Backend | None
    hidden: Mapping[str, str]
    turn: int = 0

    @property
    def name(self) -> str:
        """The model that answers, or answered."""
        return self.live.name if self.live else f"recorded:{self.tape.about.model}"

    @property
    def samples(self) -> bool:
        """As when it was recorded."""
        return self.tape.about.samples

    @property
    def context_tokens(self) -> int | None:
        """As when it was recorded."""
        return self.tape.about.context_tokens

    async def complete(self, request: Request) -> Completion:
        """Return the answer on the tape, else the live one.

        Raises:
            NotRecorded: it is not on the tape and nobody can be asked.
            BackendError: the live one's.
        """
        place = (self.condition, self.task, self.turn)
        self.turn += 1
        digest = request_digest(request, self._hiding)
        known = self.tape.answers.get(place)
        if known is not None and (known.prompt == digest or self.live is None):
            if known.prompt != digest:
                self.tape.changed.add(place[:2])
            return self._completion(known)
        if self.live is None:
            raise NotRecorded(f"{self.name}: no answer to {self.task!r} ({self.condition}) was recorded")
        completion = await self.live.complete(request)
        self.tape.keep(
            Answer(
                condition=self.condition,
                task=self.task,
                turn=place[2],
                prompt=digest,
                texts=tuple(self._hiding(text) for text in completion.texts),
                stops=completion.stops,
                input_tokens=completion.usage.input_tokens,
                cached_tokens=completion.usage.cached_tokens,
                output_tokens=completion.usage.output_tokens,
                seconds=round(completion.seconds, 3),
                constraint=completion.constraint,
            )
        )
        return completion

    async def count_tokens(self, text: str) -> int:
        """Return the tokens of a text as counted then, else as the live model counts, else estimated."""
        digest = _digest(self._hiding(text))
        if digest not in self.tape.counts:
            if self.live is None:
                return int(len(text) / _CHARACTERS_PER_TOKEN) + 1
            self.tape.keep(Counted(text=digest, tokens=await self.live.count_tokens(text)))
        return self.tape.counts[digest]

    def _completion(self, answer: Answer) -> Completion:
        return Completion(
            texts=tuple(self._showing(text) for text in answer.texts),
            stops=answer.stops,
            model=self.tape.about.model,
            usage=Usage(answer.input_tokens, answer.cached_tokens, answer.output_tokens),
            seconds=answer.seconds,
            constraint=answer.constraint,
        )

    def _hiding(self, text: str) -> str:
        for name, value in self.hidden.items():
            text = text.replace(value, name)
        return text

    def _showing(self, text: str) -> str:
        for name, value in self.hidden.items():
            text = text.replace(name, value)
        return text


def read_tape(path: Path, *, extend: bool = False) -> Tape:
    """Return the tape in a file, plain or gzipped.

    Args:
        path: JSON lines, the first of which says who answers.
        extend: whether what is asked anew is added to the file.

    Raises:
        BenchError: it cannot be read; names the line.
    """
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")
    except (OSError, UnicodeDecodeError, EOFError) as error:
        raise BenchError(f"{path} cannot be read: {error}") from error
    tape: Tape | None = None
    for number, line in enumerate(text.splitlines(), 1):
        try:
            parsed = _line.validate_json(line)
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]["msg"]
            raise BenchError(f"{path}: line {number} is no line of a tape: {problem}") from error
        if tape is None:
            if not isinstance(parsed, About):
                raise BenchError(f"{path}: the first line does not say who answers")
            tape = Tape(parsed)
        else:
            tape.keep(parsed)
    if tape is None:
        raise BenchError(f"{path} is empty")
    tape.path = path if extend else None
    return tape


def request_digest(request: Request, hiding: Callable[[str], str]) -> str:
    """Return what stands for a request on a tape, without what differs from run to run."""
    return _digest(hiding(_as_text(request)))


def _as_text(request: Request) -> str:
    asked = [[message.role, message.text] for message in request.messages]
    return json.dumps([asked, request.schema, request.temperature, request.n, request.max_output_tokens])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:24]


def new_tape(path: Path, about: About) -> Tape:
    """Return a tape in a new file, to be extended as a model answers.

    Raises:
        BenchError: it cannot be written.
    """
    tape = Tape(about, path)
    try:
        tape.keep(about)
    except OSError as error:
        raise BenchError(f"{path}: {error.strerror}") from error
    return tape
