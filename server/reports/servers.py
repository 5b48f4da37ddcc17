"""What the bank answers on tool servers, models and tools, as data: doctor and search."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from catalog.effects import Effect, Reset
from catalog.search import SearchMethod
from server.reports.base import Report

__all__ = [
    "CallTrouble",
    "DoctorReport",
    "LocalModelReport",
    "ModelReport",
    "ServerReport",
    "ServerTool",
    "ToolHit",
    "ToolsReport",
]


class CallTrouble(Report):
    """One call that failed by its server, from the traces that are kept."""

    tool: str
    kind: str
    message: str
    at: float
    """Unix seconds."""
    is_last: bool
    """Whether no later call of the server is known."""


class ServerTool(Report):
    """One usable tool of a server."""

    name: str
    title: str | None
    description: str
    effect: Effect
    contract_hash: str


class ServerReport(Report):
    """One configured tool server as `doctor` found it."""

    name: str
    status: Literal["ok", "problems", "unreachable", "idle"]
    """`idle`: not started yet, which `doctor` never leaves a server at."""
    transport: str
    era: str | None = None
    """Negotiated protocol revision, None when unreachable."""
    tools: int = 0
    seconds: float = 0.0
    problems: tuple[str, ...] = ()
    quarantined: dict[str, str] = Field(default_factory=dict[str, str])
    """Tools it lists that are never called, with the reason."""
    strict_hosts: dict[str, tuple[str, ...]] = Field(default_factory=dict[str, tuple[str, ...]])
    """Tools that a strict host would refuse if it met them without us, with what it refuses."""
    annotated: int = 0
    """Tools that say anything of their effects."""
    last_errors: tuple[CallTrouble, ...] = ()
    """The latest calls that failed by the server, the latest first."""
    changes: tuple[str, ...] = ()
    """What changed about its tools while this process looked, oldest first."""
    reset: Reset = Reset.NONE
    classified: int = 0
    """Tools whose effect class is not `unknown`."""
    circuit: Literal["closed", "open", "half_open"] = "closed"
    """Whether calls are sent: `open` they fail at once, `half_open` one is tried."""
    retry_seconds: float | None = None
    """How long until it is tried again, None while the circuit is closed."""


class LocalModelReport(Report):
    """How a configured local model does on this machine, at its present load."""

    name: str
    url: str
    prompt_tokens_per_second: float
    generated_tokens_per_second: float
    slots: int
    """Alternatives that one request may ask for."""
    context_tokens: int
    shared: bool
    """Whether `model serve` keeps it running; else it was started for this measurement."""


class ModelReport(Report):
    """How one model is that plays a role."""

    roles: tuple[str, ...]
    model: str
    """As configured; holds no key."""
    usable: bool
    offers: str
    """What it enforces of a structured answer, and how; empty where that is not known."""
    context_tokens: int | None = None
    problem: str | None = None
    """What keeps it from being used, None when nothing does."""


class DoctorReport(Report):
    """Answer of `doctor`."""

    servers: tuple[ServerReport, ...]
    models: tuple[ModelReport, ...] = ()
    """Those that play a role; empty: there is none, and plans are made without."""
    config: str | None = None
    store: str | None = None
    local_models: tuple[LocalModelReport, ...] = ()
    problems: tuple[str, ...] = ()


class ToolHit(Report):
    """One tool found for a query."""

    server: str
    tool: str
    description: str
    score: float
    input_schema: dict[str, JsonValue]
    output_schema: dict[str, JsonValue] | None = None
    effect: Effect = Effect.UNKNOWN
    goal: str | None = None
    """The part of a long request that it was found for, None for the whole of it."""
    reasons: tuple[str, ...] = ()


class ToolsReport(Report):
    """Answer of `find_tools`, best first; of a long request the best of each part first."""

    tools: tuple[ToolHit, ...]
    method: SearchMethod
    """What was compared: meanings and words, or words alone."""
    note: str = ""
    """Why only words were compared; empty when meanings were too."""
