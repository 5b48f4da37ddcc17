"""An upstream as the connections need it: a name, and a way to open a transport to it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from catalog.config import Forwarded, ServerSpec, expand
from catalog.effects import Reset
from catalog.era import Era
from catalog.errors import ServerUnavailable
from catalog.isolation import open_private_folders
from catalog.transport import LastWords, open_transport
from catalog.wire import Streams, Transport

__all__ = ["Upstream", "configured_upstream"]


@dataclass(frozen=True, slots=True)
class Upstream:
    """One server as the connections need it.

    `open` returns a transport to it: the shared one for `Reset.NONE`, else one to a fresh
    process that is restored as the mode says.
    """

    name: str
    open: Callable[[Reset, LastWords], Transport]
    kind: str
    timeout_seconds: float | None = None
    disabled: bool = False
    era: Era | None = None
    """The only era to speak, None: what the server is found to speak."""
    parallel_calls: int | None = None
    """Calls under way at once, None: the default of the connections."""
    idle_seconds: float | None = None
    """After how long without a call its shared process is ended, None: never."""
    forwards: frozenset[Forwarded] = frozenset()
    """What it may ask or tell the client behind a call."""
    may_lose_state: bool = False
    """Whether it may be ended when idle although calls may have left something in it."""


def configured_upstream(
    spec: ServerSpec,
    environment: Mapping[str, str],
    idle_seconds: float | None = None,
    forwards: frozenset[Forwarded] = frozenset(),
) -> Upstream:
    """Return a configured server as an upstream; placeholders are filled when it is opened.

    Args:
        spec: as configured. Its own `idle_seconds` is the operator's word that nothing is lost then.
        environment: fills placeholders.
        idle_seconds: for servers that say nothing of it; None: such servers are kept.
        forwards: what it may ask or tell the client behind a call.
    """

    def opened(reset: Reset, words: LastWords) -> Transport:
        return _open(spec, environment, reset, words)

    return Upstream(
        name=spec.name,
        open=opened,
        kind=spec.transport,
        timeout_seconds=spec.timeout_seconds,
        disabled=spec.disabled,
        parallel_calls=spec.parallel_calls,
        forwards=forwards,
        idle_seconds=(idle_seconds if spec.idle_seconds is None else spec.idle_seconds) or None,
        may_lose_state=spec.idle_seconds is not None,
    )


@asynccontextmanager
async def _open(
    spec: ServerSpec, environment: Mapping[str, str], reset: Reset, words: LastWords
) -> AsyncGenerator[Streams]:
    expanded = expand(spec, environment)
    if reset is not Reset.NONE and expanded.transport != "stdio":
        raise ServerUnavailable(spec.name, "it is reached by an address: it has no process to start afresh")
    if reset is Reset.PROCESS_DIRS:
        async with (
            open_private_folders(expanded) as private,
            open_transport(private, words) as streams,
        ):
            yield streams
    else:
        async with open_transport(expanded, words) as streams:
            yield streams
