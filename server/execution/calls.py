"""The seam between running a workflow and reaching a tool: one request, one answer.

A `Caller` owns whether a call happens at all (`server.execution.episode`); the run owns which
calls are made, in what order, with what arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from catalog.canonical import JsonValue
from catalog.effects import Effect
from catalog.result import CallFailure, CallOutcome, CallSuccess, FailureKind, RanUpstream
from catalog.tools import ToolId

__all__ = ["Answer", "CallRequest", "Caller", "ScriptedAnswer", "ScriptedCaller"]


@dataclass(frozen=True, slots=True)
class CallRequest:
    """One call that a node wants made."""

    node: str
    """Id of the node; inside a skill node the ids from the outside in, joined by dots."""
    item: int | None
    """Index in the `for_each` list, None outside of a mapped node."""
    tool: ToolId
    arguments: dict[str, JsonValue]
    """Resolved, coerced and valid by the tool's input schema."""
    timeout_seconds: float | None = None
    """None: the server's own."""
    items: tuple[int, ...] = ()
    """Indices of all mapped nodes around the call, from the outside in; `item` is the last of its own."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a request, and where it came from."""

    outcome: CallOutcome
    effect: Effect = Effect.UNKNOWN
    from_memory: bool = False
    """An equal earlier answer stood in."""
    calls: int = 1
    """Upstream calls made for it: 0 from memory or when denied, 2 after a retry."""
    needs_approval: bool = False
    """Whether consent would let a denied call run."""


class Caller(Protocol):
    """Makes calls, or says why not.

    Never raises for upstream trouble or for a denial: both are a `CallFailure`. Cancelling the
    call reaches the upstream. Calls may run concurrently.
    """

    async def call(self, request: CallRequest) -> Answer:
        """Return the answer to one request."""
        ...


ScriptedAnswer = CallOutcome | Callable[[CallRequest], CallOutcome] | JsonValue
"""An outcome, what computes one, or the structured content of a success."""


@dataclass
class ScriptedCaller:
    """A `Caller` that answers from a script and keeps what it was asked.

    A tool that is not in the script is unknown upstream.
    """

    script: Mapping[ToolId, ScriptedAnswer]
    effects: Mapping[ToolId, Effect] = field(default_factory=dict[ToolId, Effect])
    requests: list[CallRequest] = field(default_factory=list[CallRequest])

    async def call(self, request: CallRequest) -> Answer:
        """Return the scripted answer."""
        self.requests.append(request)
        return Answer(self._outcome(request), self.effects.get(request.tool, Effect.PURE))

    def _outcome(self, request: CallRequest) -> CallOutcome:
        if request.tool not in self.script:
            message = f"Unknown tool: {request.tool.tool!r}"
            return CallFailure(FailureKind.UNKNOWN_TOOL, message, 0.0, RanUpstream.NO)
        scripted = self.script[request.tool]
        if isinstance(scripted, CallSuccess | CallFailure):
            return scripted
        if callable(scripted):
            return scripted(request)
        return CallSuccess(structured=scripted, content=[], seconds=0.0)
