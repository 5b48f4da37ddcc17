"""Which backend plays which role: planner, editor, judge, explorer.

A backend is opened when its role is first asked for, shared by every role that names the same
model, and closed with the bank. What a string may name is `catalog.config.models`; the wires are
the other modules of this package.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import anyio
import anyio.abc

from catalog.config import ModelSpec, Role
from server.backends.access import Access, access_of
from server.backends.backend import Backend, Wire
from server.backends.errors import BackendMisconfigured
from server.backends.sampling import Sampler, SamplingBackend

__all__ = ["Models", "Served", "Serving", "no_models", "open_models", "with_backend"]


class Served(Protocol):
    """A local model that answers."""

    @property
    def url(self) -> str:
        """Base of its OpenAI-compatible API, such as `http://127.0.0.1:PORT/v1`."""
        ...

    @property
    def key(self) -> str | None:
        """What it wants as its API key, None for nothing."""
        ...


Serving = Callable[[str], AbstractAsyncContextManager[Served]]
"""Has a local model answer: `serving(NAME)` of `local:NAME`, given to `open_models`.

Entering it starts or finds the model's server; leaving it ends what it started. One task enters and
leaves it. Requests carry NAME as their model. A server that ends meanwhile is its own to start again
at the same address with the same key; it raises nothing once it has yielded.

Raises:
    BackendMisconfigured: no such model, or it was not fetched; the message says the command that helps.
    BackendUnavailable: its server does not start.
"""

_NONE = ModelSpec("none")


@dataclass(frozen=True)
class Models:
    """The models of a bank by role; a client that lends its own, or one run's choice, gets a view."""

    configured: Mapping[str, ModelSpec]
    _open: Callable[[ModelSpec], Awaitable[Wire]] = field(repr=False)
    _chosen: ModelSpec | None = None
    _sampler: Sampler | None = field(default=None, repr=False)

    def spec(self, role: Role) -> ModelSpec:
        """Return the model that plays a role, of kind `none` where there is none."""
        return self._chosen or self.configured.get(role) or self.configured.get("default") or _NONE

    async def backend(self, role: Role) -> Backend | None:
        """Return the model that plays a role, ready to be asked; None where there is none.

        Raises:
            BackendError: it cannot be used; the message says what helps.
        """
        spec = self.spec(role)
        if spec.kind == "none":
            return None
        return await self.open(spec)

    async def open(self, spec: ModelSpec) -> Wire:
        """Return any model, ready to be asked.

        Raises:
            BackendError: it cannot be used; the message says what helps.
        """
        if spec.kind == "sampling":
            return SamplingBackend(self._sampler)
        return await self._open(spec)

    def wrapped(self, wrap: Callable[[Wire], Wire]) -> Models:
        """Return the models with each that is opened in a wrapping, such as one that remembers."""

        async def opened(spec: ModelSpec) -> Wire:
            return wrap(await self._open(spec))

        return replace(self, _open=opened)

    def choosing(self, spec: ModelSpec | None) -> Models:
        """Return the models with one in every role, as a person chose for this run; None: no change."""
        return self if spec is None else replace(self, _chosen=spec)

    def lending(self, sampler: Sampler | None) -> Models:
        """Return the models with the one that an MCP client lends; None: it has none to lend."""
        return replace(self, _sampler=sampler)


def no_models() -> Models:
    """Return the models of a bank that has none."""

    async def refuse(spec: ModelSpec) -> Wire:
        raise BackendMisconfigured(f"{spec}: no model can be opened here")

    return Models({}, refuse)


def with_backend(backend: Wire) -> Models:
    """Return models in which one backend, such as a scripted double, plays every role."""

    async def opened(spec: ModelSpec) -> Wire:
        del spec
        return backend

    return Models({"default": ModelSpec("local", backend.name)}, opened)


@asynccontextmanager
async def open_models(
    configured: Mapping[str, ModelSpec],
    environment: Mapping[str, str],
    *,
    serving: Serving | None = None,
    memory: Path | None = None,
) -> AsyncGenerator[Models]:
    """Open nothing yet; leaving it closes every model that was opened.

    Args:
        configured: by role, and `default`.
        environment: where keys are read from.
        serving: has local models answer; None: there are none.
        memory: file in which it is remembered what servers offer; None: for this process alone.
    """
    raised: Exception | None = None
    async with AsyncExitStack() as stack, anyio.create_task_group() as tasks:
        opener = _Opener(environment, serving, memory, stack, tasks)
        try:
            yield Models(configured, opener.open)
        except Exception as error:  # raised again outside of the group, which would wrap it
            raised = error
        finally:
            opener.close()
    if raised is not None:
        raise raised


class _Opener:
    """Opens each model once."""

    def __init__(
        self,
        environment: Mapping[str, str],
        serving: Serving | None,
        memory: Path | None,
        stack: AsyncExitStack,
        tasks: anyio.abc.TaskGroup,
    ) -> None:
        self._environment = environment
        self._serving = serving
        self._memory = memory
        self._stack = stack
        self._tasks = tasks
        self._opened: dict[ModelSpec, Wire] = {}
        self._lock = anyio.Lock()
        self._closing = anyio.Event()

    def close(self) -> None:
        """Let local models end."""
        self._closing.set()

    async def open(self, spec: ModelSpec) -> Wire:
        async with self._lock:
            if spec not in self._opened:
                self._opened[spec] = await self._wire(spec)
            return self._opened[spec]

    async def _wire(self, spec: ModelSpec) -> Wire:
        access = access_of(spec, self._environment)
        match spec.kind:
            case "anthropic":
                from server.backends.anthropic_wire import open_anthropic

                return await self._stack.enter_async_context(open_anthropic(spec, access))
            case "openai":
                from server.backends.openai_wire import open_openai

                return await self._stack.enter_async_context(open_openai(spec, access))
            case "openai-compatible":
                return await self._compatible(spec, access)
            case "local":
                served = await self._tasks.start(self._keep_serving, spec)
                return await self._compatible(spec, Access(served.key, served.url))
            case "sampling" | "none":
                raise ValueError(f"{spec} is no model that is opened")

    async def _compatible(self, spec: ModelSpec, access: Access) -> Wire:
        from server.backends.compatible_wire import open_compatible

        wire = await self._stack.enter_async_context(open_compatible(spec, access, self._memory))
        await wire.examine()
        return wire

    async def _keep_serving(
        self, spec: ModelSpec, *, task_status: anyio.abc.TaskStatus[Served] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        if self._serving is None:
            raise BackendMisconfigured(f"{spec}: local models cannot be served here")
        async with self._serving(spec.model) as served:
            task_status.started(served)
            await self._closing.wait()
