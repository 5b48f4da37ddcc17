"""What a scripted server does and did: tools with their answers, and the log of calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import anyio
from pydantic import JsonValue

from catalog.tools import JsonSchema

__all__ = ["Answer", "CallLog", "LoggedCall", "Refuse", "Reply", "Respond", "ScriptedTool", "Vanish"]


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole result, where a plain value does not say enough.

    `content` None mirrors the structured value as text; `has_structured` False leaves it out.
    """

    structured: JsonValue = None
    content: list[JsonValue] | None = None
    is_error: bool = False
    has_structured: bool = True
    meta: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])

    @classmethod
    def text(cls, text: str, *, is_error: bool = False) -> Reply:
        """Return a result of one text block and nothing structured."""
        return cls(content=[{"type": "text", "text": text}], is_error=is_error, has_structured=False)


@dataclass(frozen=True, slots=True)
class Refuse:
    """A JSON-RPC error in place of a result."""

    code: int
    message: str


@dataclass(frozen=True, slots=True)
class Vanish:
    """No answer: the server ends during the call."""


Answer = JsonValue | Reply | Refuse | Vanish
Respond = Callable[[dict[str, JsonValue]], Answer | Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class ScriptedTool:
    """One tool.

    A dict is answered as structured content mirrored in text, a string as one text block, any
    other value as `{"result": value}`.
    """

    name: str
    respond: Respond | Sequence[Answer]
    """A function of the arguments, or answers in the order of calls to the script, the last one repeated."""
    input_schema: JsonSchema = field(default_factory=lambda: cast("JsonSchema", {"type": "object"}))
    output_schema: JsonSchema | None = None
    description: str = ""
    title: str | None = None
    annotations: Mapping[str, bool] = field(default_factory=dict[str, bool])
    """Hints by their protocol names, such as `readOnlyHint`."""
    latency_seconds: float = 0.0
    """How long an answer takes; cancellation cuts it short."""
    progress: Sequence[tuple[float, float | None, str | None]] = ()
    """Reports sent before the answer."""
    validates: bool = True
    """Whether arguments are checked against the input schema first."""


@dataclass(slots=True)
class LoggedCall:
    """One call that reached a tool."""

    tool: str
    arguments: dict[str, JsonValue]
    cancelled: bool = False
    """Whether the client gave it up before the answer."""


class CallLog:
    """What really ran, over all connections of one scripted server.

    Attributes:
        calls: in order of arrival; refused arguments and unknown tools do not arrive.
    """

    def __init__(self) -> None:
        self.calls: list[LoggedCall] = []
        self._changed = anyio.Event()

    def count(self, tool: str | None = None) -> int:
        """Return how many calls arrived, of one tool or of all."""
        return sum(tool is None or call.tool == tool for call in self.calls)

    def arrive(self, tool: str, arguments: dict[str, JsonValue]) -> LoggedCall:
        """Record a call."""
        call = LoggedCall(tool, arguments)
        self.calls.append(call)
        self._announce()
        return call

    def cancel(self, call: LoggedCall) -> None:
        """Record that a call was given up."""
        call.cancelled = True
        self._announce()

    async def wait_for(self, tool: str, count: int = 1) -> None:
        """Wait until so many calls of a tool have arrived."""
        while self.count(tool) < count:
            await self._changed.wait()

    async def wait_for_cancelled(self, tool: str, count: int = 1) -> None:
        """Wait until so many calls of a tool have been given up."""
        while sum(call.tool == tool and call.cancelled for call in self.calls) < count:
            await self._changed.wait()

    def _announce(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()
