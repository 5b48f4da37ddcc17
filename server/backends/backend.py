"""The seam between whoever asks a model and the wires that reach one.

A backend turns one request into one completion. It owns retries, its own concurrency limit, and
what its wire does about structured output. Reading an answer's text belongs to who asked, who also
validates it: a constraint may be ignored on the way. Which backend plays which role is
`server.backends.roles`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

from catalog.tools import JsonSchema
from skills_store.experience.spans import ExperienceSpan

__all__ = ["Backend", "Completion", "Constraint", "Message", "Offer", "Request", "Stop", "Usage", "Wire"]

Constraint = Literal["schema", "json", "none"]
"""What a wire enforces of an answer's form: the schema, that it is JSON, or nothing."""
Stop = Literal["end", "length", "refusal"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class Request:
    """What a model is asked.

    Messages that repeat between requests come first and stay equal byte for byte, so that
    providers' prompt caches hit.
    """

    messages: tuple[Message, ...]
    schema: JsonSchema | None = None
    """Of the answer as JSON, None for text. It is not shown to the model: the messages say it too."""
    schema_name: str = "answer"
    temperature: float | None = 0.0
    """None: the model's default. A wire without sampling parameters leaves it out, see `Backend.samples`."""
    n: int = 1
    """Alternatives wanted of the same request; at least 1."""
    seed: int | None = None
    """Honoured where the wire has one."""
    max_output_tokens: int = 2_048
    """Of each alternative; hosted models get room for thought on top, see `server.backends.thinking`."""
    deadline_seconds: float = 60.0
    """Bound of everything, retries included."""
    experience: tuple[ExperienceSpan, ...] = ()
    """Where lessons stand in the messages, so that an export can take them out; no wire sends it."""

    def __post_init__(self) -> None:
        if not self.messages or self.n < 1 or self.max_output_tokens < 1 or self.deadline_seconds <= 0:
            raise ValueError("a request needs a message, n, max_output_tokens and deadline_seconds above 0")


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of a completion, all alternatives together, in one meaning for all wires."""

    input_tokens: int = 0
    """The whole prompt, cached part included."""
    cached_tokens: int = 0
    """The part of the prompt that came from a cache."""
    output_tokens: int = 0
    """Everything generated, reasoning included."""
    reasoning_tokens: int = 0
    is_estimated: bool = False
    """Whether the wire reported no usable count and it was estimated."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.cached_tokens + other.cached_tokens,
            self.output_tokens + other.output_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.is_estimated or other.is_estimated,
        )

    @property
    def total(self) -> int:
        """Input and output tokens."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model answered."""

    texts: tuple[str, ...]
    """One per alternative, at least one; fewer than asked only where the wire gives no more."""
    stops: tuple[Stop, ...]
    """Why each text ended, in the order of `texts`."""
    model: str
    """As the provider names it."""
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    """None where the price is not known."""
    seconds: float = 0.0
    retries: int = 0
    constraint: Constraint = "none"
    """What the wire was made to enforce for this answer."""

    @property
    def text(self) -> str:
        """The first alternative."""
        return self.texts[0]


class Backend(Protocol):
    """A model that can be asked.

    Implementations bound their own concurrency, close the request when the caller is cancelled, and
    retry only what can succeed later. A refusal of the model is a completion (`stops`), not an error.
    """

    @property
    def name(self) -> str:
        """As configured, such as `anthropic:MODEL`; holds no secret."""
        ...

    @property
    def samples(self) -> bool:
        """Whether `temperature` has an effect; where not, diversity must come from the prompt."""
        ...

    @property
    def context_tokens(self) -> int | None:
        """Tokens of prompt and answer that the model holds; None where it is not known."""
        ...

    async def complete(self, request: Request) -> Completion:
        """Return the model's answer.

        Raises:
            BackendError: nothing usable came; the subclass says whether asking again can help.
        """
        ...

    async def count_tokens(self, text: str) -> int:
        """Return how many tokens a text has for this model, estimated where asking is not free."""
        ...


@dataclass(frozen=True, slots=True)
class Offer:
    """What a model was found to offer, without being asked anything that costs."""

    constraint: Constraint
    """The most that it enforces of an answer's form."""
    detail: str
    """How, in a few words for a person."""
    context_tokens: int | None = None


class Wire(Backend, Protocol):
    """A backend that can be looked at before it is asked something."""

    async def examine(self) -> Offer:
        """Return what the model offers, found out once.

        Raises:
            BackendError: it cannot be reached or used.
        """
        ...
