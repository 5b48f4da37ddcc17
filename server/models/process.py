"""One llama-server as a process of its own on loopback: started, waited for, and ended for certain.

It never runs in our process: a schema that its grammar cannot digest may end it, and then only it. POSIX
only; on Linux the kernel ends it when we are killed, elsewhere the next start does.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL, STDOUT
from tempfile import TemporaryFile
from typing import IO, Final

import anyio
import httpx2
from anyio.abc import Process
from pydantic import BaseModel, ValidationError

from catalog.plain_text import plain_text
from server.models.errors import PortTaken, ServerFailed
from server.models.leases import Lease, create_lease
from server.models.program import dying_with_us
from server.models.shelf import ServedModel

__all__ = ["Address", "Launch", "Running", "free_address", "open_server"]

_HOST: Final = "127.0.0.1"
_START_SECONDS: Final = 180.0
_POLL_SECONDS: Final = 0.05
_GRACE_SECONDS: Final = 3.0
_TAIL_BYTES: Final = 4_096
_PROMPT_CACHE_MEBIBYTES: Final = 512
_WARNINGS: Final = "2"
_INHERITED: Final = (
    *("HOME", "LANG", "LC_", "PATH", "TMPDIR", "LD_LIBRARY_PATH"),
    *("CUDA_", "GGML_", "HIP_", "OMP_", "ROCR_", "VK_"),
)
"""What the names begin with of the variables it gets: what it computes with, and no keys of others."""
_CANNOT_BIND: Final = "couldn't bind"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server answers, and the key without which it does not."""

    port: int
    key: str = field(repr=False)

    @property
    def url(self) -> str:
        """Base URL of the OpenAI-compatible API."""
        return f"http://{_HOST}:{self.port}/v1"


@dataclass(frozen=True, slots=True)
class Launch:
    """What is to be started."""

    model: ServedModel
    binary: Path
    leases: Path
    slots: int
    """Alternatives that one request may ask for; they share the context."""
    threads: int
    shared: bool
    """Whether other processes of this user may use it."""
    sleeps_after_seconds: int | None
    """Idle time after which it gives its memory back until it is asked again; None: never."""
    environment: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Running:
    """A server that answers."""

    lease: Lease
    _process: Process = field(repr=False)
    _log: IO[bytes] = field(repr=False)

    async def wait(self) -> str:
        """Return, when it has ended, how."""
        return _how_it_ended(await self._process.wait(), self._log)


class _Settings(BaseModel):
    n_ctx: int


class _Props(BaseModel):
    """What a server says of itself."""

    total_slots: int
    default_generation_settings: _Settings


def free_address(port: int | None = None) -> Address:
    """Return an address nobody has, with a new key.

    Args:
        port: as a person wants it, None: any.

    Raises:
        PortTaken: it is taken, or may not be used.
    """
    with socket.socket() as probe:
        if port is not None:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server will
        try:
            probe.bind((_HOST, port or 0))
        except OSError as error:
            raise PortTaken(
                f"port {port} cannot be used: {error.strerror}; leave --port out for a free one"
            ) from error
        return Address(int(probe.getsockname()[1]), secrets.token_urlsafe(24))


@asynccontextmanager
async def open_server(launch: Launch, address: Address) -> AsyncGenerator[Running]:
    """Start a server, yield it when it answers, end it on leaving.

    Raises:
        ServerFailed: it did not start; with its last words.
    """
    lease = create_lease(launch.leases, launch.model.name)
    try:
        with TemporaryFile() as log:
            process = await _start(launch, address, lease.file.fileno(), log)
            try:
                props = await _ready(process, address, log)
                running = _lease_of(launch, address, process.pid, props)
                lease.publish(running)
                yield Running(running, process, log)
            finally:
                with anyio.CancelScope(shield=True):
                    await _stop(process)
    finally:
        lease.close()


async def _start(launch: Launch, address: Address, lock: int, log: IO[bytes]) -> Process:
    inherited = {n: value for n, value in launch.environment.items() if n.startswith(_INHERITED)}
    wanted = {
        "OMP_WAIT_POLICY": "passive",  # spinning threads on busy cores cost nine tenths of the speed
        "LLAMA_API_KEY": address.key,  # not an argument, which every user of the machine can read
        "LLAMA_ARG_KV_UNIFIED": "1",
        "LLAMA_ARG_CACHE_RAM": str(_PROMPT_CACHE_MEBIBYTES),
        "LLAMA_ARG_LOG_VERBOSITY": _WARNINGS,
    }
    arguments = {
        "-m": launch.model.path,
        "--alias": launch.model.name,
        "--host": _HOST,
        "--port": address.port,
        "-c": launch.model.context_tokens,
        "-np": launch.slots,
        "-t": launch.threads,
    }
    if launch.sleeps_after_seconds is not None:
        arguments["--sleep-idle-seconds"] = launch.sleeps_after_seconds
    flat = [str(part) for pair in arguments.items() for part in pair]
    return await anyio.open_process(
        dying_with_us([str(launch.binary), *flat]),
        stdin=DEVNULL,
        stdout=log,
        stderr=STDOUT,
        env=inherited | wanted,
        start_new_session=True,
        pass_fds=(lock,),
    )


async def _ready(process: Process, address: Address, log: IO[bytes]) -> _Props:
    """Return what the server says of itself, once it has loaded the model."""
    headers = {"Authorization": f"Bearer {address.key}"}
    root = address.url.removesuffix("/v1")
    deadline = anyio.current_time() + _START_SECONDS
    async with httpx2.AsyncClient(headers=headers, timeout=5.0, trust_env=False) as client:
        while process.returncode is None and anyio.current_time() < deadline:
            try:
                if (await client.get(f"{root}/health")).status_code == 200:
                    return _Props.model_validate_json(
                        (await client.get(f"{root}/props")).raise_for_status().content
                    )
            except httpx2.TransportError:
                pass  # it does not listen yet
            except httpx2.HTTPStatusError as error:
                raise PortTaken(f"port {address.port} is answered by somebody else: {error}") from error
            except ValidationError as error:
                raise ServerFailed(
                    f"this llama-server does not say what it offers, so it may be too old: {error}"
                ) from error
            await anyio.sleep(_POLL_SECONDS)
    if process.returncode is None:
        raise ServerFailed(f"llama-server did not become ready within {_START_SECONDS:g} s")
    how = _how_it_ended(process.returncode, log)
    raise PortTaken(how) if _CANNOT_BIND in how else ServerFailed(how)


def _lease_of(launch: Launch, address: Address, pid: int, props: _Props) -> Lease:
    return Lease(
        model=launch.model.name,
        path=str(launch.model.path),
        url=address.url,
        key=address.key,
        slots=props.total_slots,
        context_tokens=props.default_generation_settings.n_ctx,
        pid=pid,
        owner_pid=os.getpid(),
        shared=launch.shared,
    )


async def _stop(process: Process) -> None:
    if process.returncode is None:
        process.terminate()
        with anyio.move_on_after(_GRACE_SECONDS):
            await process.wait()
    if process.returncode is None:
        process.kill()
        await process.wait()
    await process.aclose()


def _how_it_ended(code: int, log: IO[bytes]) -> str:
    how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
    size = log.seek(0, os.SEEK_END)
    log.seek(max(0, size - _TAIL_BYTES))
    said = [line for line in plain_text(log.read().decode("utf-8", "replace")).splitlines() if line.strip()]
    words = f"; its last words: {plain_text(' / '.join(said[-4:]), 600)}" if said else ""
    return f"llama-server {how}{words}"
