"""Tier two: the whole of CPython in a clean process per call, confined by Landlock, seccomp and rlimits.

The process is started with an empty environment and execs a fresh interpreter, so that nothing of
this one, its memory included, is inherited.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import cast

import anyio
import anyio.abc
from pydantic import JsonValue

from server.sandbox.confinement import missing_features
from server.sandbox.engine import (
    CodeOutcome,
    CodeRequest,
    Limits,
    Raised,
    Returned,
    SandboxUnavailable,
    Stopped,
    ToolRefused,
)

__all__ = ["ProcessEngine"]

_WORKER = Path(__file__).with_name("function_worker.py")
_START_SECONDS = 10.0
"""Given to the interpreter on top of the function's own time."""


class _OverBound(Exception):  # noqa: N818
    """The worker sent more than it may."""


class ProcessEngine:
    """Runs each call in a process of its own.

    Args:
        missing: what this machine lacks for it, as `missing_features` says.
    """

    name = "process"

    def __init__(self, missing: Sequence[str] | None = None) -> None:
        self._missing = tuple(missing_features(system_calls=True) if missing is None else missing)

    @property
    def is_there(self) -> bool:
        """Always: it is the interpreter that runs this."""
        return True

    @property
    def version(self) -> str:
        """Language version: what a function means changes with it and no sooner."""
        return f"cpython {sys.version_info.major}.{sys.version_info.minor}"

    async def run(self, request: CodeRequest) -> CodeOutcome:
        """Return what came of one call.

        Raises:
            SandboxUnavailable: this machine lacks Landlock or seccomp.
        """
        if self._missing:
            needed = ", ".join(self._missing)
            raise SandboxUnavailable(f"the process tier cannot confine code here: it needs {needed}")
        started = anyio.current_time()
        async with AsyncExitStack() as stack:
            worker = await stack.enter_async_context(await _start(request.limits))
            stack.callback(_end, worker)
            outcome = await _within_time(worker, request)
        return _timed(outcome, anyio.current_time() - started)


async def _start(limits: Limits) -> anyio.abc.Process:
    command = [sys.executable, "-P", "-s", "-S", str(_WORKER)]
    cpu_seconds = math.ceil(limits.seconds) + 1
    return await anyio.open_process(
        [*command, str(limits.memory_bytes), str(cpu_seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"PYTHONHASHSEED": "0"},
        cwd="/",
    )


def _end(worker: anyio.abc.Process) -> None:
    if worker.returncode is None:
        worker.kill()


async def _within_time(worker: anyio.abc.Process, request: CodeRequest) -> CodeOutcome:
    with anyio.move_on_after(_START_SECONDS) as own:
        try:
            return await _conversation(worker, request, own)
        except _OverBound as error:
            return Stopped("output", str(error), 0.0)
        except (anyio.BrokenResourceError, anyio.EndOfStream):
            return await _died(worker, request.limits)
    return _too_long(request.limits)


def _too_long(limits: Limits) -> Stopped:
    return Stopped("seconds", f"it ran longer than {limits.seconds:g} s", 0.0)


async def _died(worker: anyio.abc.Process, limits: Limits) -> Stopped:
    """Return why a worker has ended without an answer."""
    code = await worker.wait()
    if code in (-24, -9):  # SIGXCPU, and the SIGKILL that follows it
        return _too_long(limits)
    return Stopped("crash", f"its process ended with {'signal' if code < 0 else 'status'} {abs(code)}", 0.0)


async def _conversation(
    worker: anyio.abc.Process, request: CodeRequest, own: anyio.CancelScope
) -> CodeOutcome:
    """Return what the function came to; its time runs once it is confined, and not while a tool is called."""
    lines = _Lines(worker, request.limits.output_bytes)
    tools: list[JsonValue] = [*sorted(request.tools)]
    first = {"source": request.source, "entry": request.entry, "tools": tools}
    await lines.send({**first, "arguments": dict(request.arguments)})
    if "confined" not in await lines.receive():
        raise SandboxUnavailable("the process tier could not confine its worker")
    own.deadline = anyio.current_time() + request.limits.seconds
    for _ in range(request.limits.calls + 1):
        message = await lines.receive()
        if "call" not in message:
            return _outcome(message)
        left, own.deadline = own.deadline - anyio.current_time(), math.inf
        answer = await _answered(message, request)
        own.deadline = anyio.current_time() + left
        await lines.send(answer)
    return Stopped("output", f"it called more than {request.limits.calls} tools", 0.0)


async def _answered(message: Mapping[str, JsonValue], request: CodeRequest) -> dict[str, JsonValue]:
    name, arguments = message.get("call"), message.get("arguments")
    tool = request.tools.get(name) if isinstance(name, str) else None
    if tool is None or not isinstance(arguments, dict):
        return {"error": f"no tool {name!r} was granted"}
    try:
        return {"output": await tool(arguments)}
    except ToolRefused as error:
        return {"error": str(error)}


def _outcome(message: Mapping[str, JsonValue]) -> CodeOutcome:
    if "returned" in message:
        return Returned(message["returned"], 0.0)
    kind, said = str(message.get("raised")), str(message.get("message") or "")
    if kind == "MemoryError":
        return Stopped("memory", "it used more memory than it may", 0.0)
    missing = kind in ("ModuleNotFoundError", "SyntaxError")
    return Raised(kind[:100], said[:500], 0.0, is_unsupported=missing)


def _timed(outcome: CodeOutcome, seconds: float) -> CodeOutcome:
    match outcome:
        case Returned():
            return Returned(outcome.value, seconds)
        case Raised():
            return Raised(outcome.kind, outcome.message, seconds, outcome.is_unsupported)
        case Stopped():
            return Stopped(outcome.bound, outcome.message, seconds)


class _Lines:
    """JSON values from and to a worker, one a line; nothing it sends is believed to be well formed."""

    def __init__(self, worker: anyio.abc.Process, most_bytes: int) -> None:
        if worker.stdin is None or worker.stdout is None:
            raise ValueError("the worker has no pipes")
        self._in, self._out = worker.stdin, worker.stdout
        self._most, self._left = most_bytes, most_bytes
        self._waiting = bytearray()

    async def send(self, value: JsonValue) -> None:
        await self._in.send(json.dumps(value).encode() + b"\n")

    async def receive(self) -> dict[str, JsonValue]:
        while b"\n" not in self._waiting:
            got = await self._out.receive(65536)
            self._left -= len(got)
            if self._left < 0:
                raise _OverBound(f"it gave more than {self._most} bytes")
            self._waiting += got
        line, _, rest = self._waiting.partition(b"\n")
        self._waiting = bytearray(rest)
        return _parsed(bytes(line))


def _parsed(line: bytes) -> dict[str, JsonValue]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return cast("dict[str, JsonValue]", value)
    return {"raised": "ValueError", "message": "its answer is no JSON"}
