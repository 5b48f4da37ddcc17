"""The seam between a function and what runs it: one request, one outcome, whatever the code does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from pydantic import JsonValue

__all__ = [
    "Bound",
    "CodeOutcome",
    "CodeRequest",
    "Engine",
    "GrantedTool",
    "Limits",
    "Raised",
    "Returned",
    "SandboxUnavailable",
    "Stopped",
    "ToolRefused",
]

Bound = Literal["seconds", "memory", "output", "crash"]
GrantedTool = Callable[[dict[str, JsonValue]], Awaitable[JsonValue]]
"""Calls one tool with its arguments and returns its output. Raises ToolRefused where it has none."""


class SandboxUnavailable(RuntimeError):  # noqa: N818
    """This machine cannot confine an engine, so it refuses to run; the message says what is missing."""


class ToolRefused(RuntimeError):  # noqa: N818
    """A call that the code made has no answer; the message is what the code is told."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one call of a function may use."""

    seconds: float = 5.0
    """Of its own, whole turns of the host left out where the engine can tell them apart."""
    memory_bytes: int = 128 << 20
    output_bytes: int = 1 << 20
    """Of all that it sends to the host: its result and the arguments of its calls."""
    calls: int = 100
    """Of granted tools."""


@dataclass(frozen=True, slots=True)
class CodeRequest:
    """One call of a function."""

    source: str
    entry: str
    arguments: Mapping[str, JsonValue]
    tools: Mapping[str, GrantedTool] = field(default_factory=dict[str, GrantedTool])
    """By the name the function calls them under; none: it is pure."""
    limits: Limits = Limits()


@dataclass(frozen=True, slots=True)
class Returned:
    """The function returned a JSON value."""

    value: JsonValue
    seconds: float


@dataclass(frozen=True, slots=True)
class Raised:
    """The code raised, or could not be read. `is_unsupported`: the engine lacks what it uses."""

    kind: str
    message: str
    seconds: float
    is_unsupported: bool = False


@dataclass(frozen=True, slots=True)
class Stopped:
    """The code passed a bound, or its worker died, and was ended."""

    bound: Bound
    message: str
    seconds: float


CodeOutcome = Returned | Raised | Stopped


class Engine(Protocol):
    """Runs functions, each call isolated from every other.

    `run` never raises for anything the code does. Cancelling it ends the code.
    """

    @property
    def name(self) -> str:
        """`monty` or `process`."""
        ...

    @property
    def is_there(self) -> bool:
        """Whether it is installed, and so has a version."""
        ...

    @property
    def version(self) -> str:
        """What has to be the same for a function to mean the same."""
        ...

    async def run(self, request: CodeRequest) -> CodeOutcome:
        """Return what came of one call.

        Raises:
            SandboxUnavailable: this machine cannot confine the engine.
        """
        ...
