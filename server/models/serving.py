"""Having a local model answer: a server that already runs is used, else one is started for as long as needed.

A cold prompt of a catalog takes a small model many seconds and a start takes one or two, so the server
that `skillbank model serve` keeps warm is shared by all processes of its user. What is started here is
private, since its owner's end would take it away from others.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Final

import anyio
import httpx2

from server.backends.errors import BackendMisconfigured, BackendUnavailable
from server.models.errors import ModelError, NotFetched, PortTaken, ServerFailed, UnknownModel
from server.models.leases import Lease, end_orphans, running_servers
from server.models.process import Address, Launch, Running, free_address, open_server
from server.models.runtime import SLOTS, Host, available_processors

__all__ = ["local_serving", "open_local_model", "open_shared_server"]

_RESTARTS: Final = 3
_WATCH_SECONDS: Final = 0.5
_ATTEMPTS: Final = 3
_HEALTH_SECONDS: Final = 2.0
_FEW_PROCESSORS: Final = 4
_MOST_THREADS: Final = 8
_SLEEP_SECONDS: Final = 600


@asynccontextmanager
async def open_shared_server(
    host: Host, name: str, *, port: int | None = None, slots: int = SLOTS
) -> AsyncGenerator[Running]:
    """Serve a model for all processes of this user while the context is open.

    Raises:
        ModelError: nothing of that name is here, there is no runtime, it does not start, or it is
            served already.
    """
    launch = _launch(host, name, slots, shared=True)
    end_orphans(host.shelf.servers)
    if (other := await _shared_one(launch)) is not None:
        raise ServerFailed(
            f"{other.model} is served already at {other.url} by process {other.owner_pid}; "
            f"local:{other.model} uses it"
        )
    async with AsyncExitStack() as stack:
        yield await _start(launch, port, stack)


@asynccontextmanager
async def open_local_model(host: Host, name: str, *, slots: int = SLOTS) -> AsyncGenerator[Lease]:
    """Yield a server of a model: one that runs, or one that is ended on leaving.

    When it ends meanwhile, whoever started it, it is started again at the same address with the same key, a
    few times. What is raised inside the context comes out as it is.

    Raises:
        ModelError: nothing of that name is here, there is no runtime, or it does not start.
    """
    launch = _launch(host, name, slots, shared=False)
    end_orphans(host.shelf.servers)
    raised: Exception | None = None
    async with AsyncExitStack() as stack:
        lease = await _shared_one(launch) or (await _start(launch, None, stack)).lease
        async with anyio.create_task_group() as group:
            group.start_soon(_keep_up, launch, lease)
            try:
                yield lease
            except Exception as error:  # raised again outside of the group, which would wrap it
                raised = error
            finally:
                group.cancel_scope.cancel()
    if raised is not None:
        raise raised


def local_serving(host: Host) -> Callable[[str], AbstractAsyncContextManager[Lease]]:
    """Return what has `local:NAME` answer for as long as its context is open.

    It raises nothing of its own after the yield, and before it what every backend does:

    Raises:
        BackendMisconfigured: nothing of that name, or nothing that runs it, is here; says what helps.
        BackendUnavailable: its server does not start.
    """

    @asynccontextmanager
    async def serving(name: str) -> AsyncGenerator[Lease]:
        async with AsyncExitStack() as stack:
            try:
                lease = await stack.enter_async_context(open_local_model(host, name))
            except (UnknownModel, NotFetched) as error:
                raise BackendMisconfigured(f"local:{name}: {error}") from error
            except ModelError as error:
                raise BackendUnavailable(f"local:{name}: {error}") from error
            yield lease

    return serving


def _launch(host: Host, name: str, slots: int, *, shared: bool) -> Launch:
    model = host.shelf.find(name)
    runtime = host.runtime()
    if runtime is None:
        raise NotFetched(
            f"{name} needs llama-server, which is neither on PATH nor built yet: "
            f"get it with skillbank model fetch {name}"
        )
    can_sleep = runtime.origin == "built"  # others may be too old for it
    return Launch(
        model=model,
        binary=runtime.path,
        leases=host.shelf.servers,
        slots=slots,
        threads=_threads(),
        shared=shared,
        sleeps_after_seconds=_SLEEP_SECONDS if can_sleep and not shared else None,
        environment=host.environment,
    )


async def _start(launch: Launch, port: int | None, stack: AsyncExitStack) -> Running:
    """Start a server; a free port that somebody else took in between is tried again with another."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return await stack.enter_async_context(open_server(launch, free_address(port)))
        except PortTaken:
            if port is not None:
                raise
    return await stack.enter_async_context(open_server(launch, free_address(port)))


async def _shared_one(launch: Launch) -> Lease | None:
    """Return a running server of the same weights that may be used and that answers."""
    async with httpx2.AsyncClient(timeout=_HEALTH_SECONDS, trust_env=False) as client:
        for lease in running_servers(launch.leases):
            is_same = lease.shared and lease.path == str(launch.model.path)
            if is_same and await _answers(client, lease):
                return lease
    return None


async def _answers(client: httpx2.AsyncClient, lease: Lease) -> bool:
    try:
        return (await client.get(f"{lease.url.removesuffix('/v1')}/health")).is_success
    except httpx2.TransportError:
        return False


async def _keep_up(launch: Launch, lease: Lease) -> None:
    """Start a server again that has ended, at its address; when it keeps ending, leave it dead."""
    while any(running.pid == lease.pid for running in running_servers(launch.leases)):
        await anyio.sleep(_WATCH_SECONDS)
    address = Address(httpx2.URL(lease.url).port or 0, lease.key)
    for _ in range(_RESTARTS):
        try:
            async with open_server(launch, address) as again:
                await again.wait()
        except ServerFailed:
            await anyio.sleep(_WATCH_SECONDS)


def _threads() -> int:
    """Return how many threads to compute with: one per processor, where they are many half of them."""
    processors = available_processors()
    return processors if processors <= _FEW_PROCESSORS else min(processors // 2, _MOST_THREADS)
