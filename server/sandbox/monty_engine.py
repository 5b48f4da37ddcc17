"""Tier one: Monty, an interpreter without a way out, in a worker process that Landlock confines.

A worker serves one call and is thrown away. The clock stands still and chance is seeded, so that a
pure function gives the same for the same. Values cross the border as JSON text only, which the last
expression makes text whatever the code has made of its names: deep values of strangers are never
built here. The library's blocking interface is used, from threads: its other one has ended whole
processes with SIGABRT when they exit.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import importlib.util
import json
import shlex
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.from_thread
from anyio import to_thread
from pydantic import JsonValue

from server.sandbox.confinement import missing_features
from server.sandbox.engine import (
    CodeOutcome,
    CodeRequest,
    GrantedTool,
    Raised,
    Returned,
    SandboxUnavailable,
    Stopped,
    ToolRefused,
)

if TYPE_CHECKING:  # loaded when code is run: most starts run none
    from pydantic_monty import (
        ExternalResult,
        FunctionSnapshot,
        Monty,
        MontyCrashedError,
        MontyError,
        MontySession,
        OSPolicy,
        ResourceLimits,
        SyncSnapshot,
    )

__all__ = ["MontyEngine"]

_LAUNCHER = Path(__file__).with_name("monty_launcher.py")
_STILL = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
_MOST_LOOKUPS = 1000
_MOST_MESSAGE = 500
_LACKING = frozenset({"ModuleNotFoundError", "ImportError", "NotImplementedError", "SyntaxError"})

_TOOL = """
def {name}(**arguments):
    return skillbank_json.loads(skillbank_call({name!r}, skillbank_json.dumps(arguments)))
"""
_LAST = """
import json as skillbank_json
{tools}
f"{{skillbank_json.dumps({entry}(**skillbank_json.loads(skillbank_arguments)))}}"
"""


class MontyEngine:
    """Runs each call in a worker of its own; `aclose` ends those that wait for one.

    Args:
        missing: what this machine lacks for it, as `missing_features` says.
    """

    name = "monty"

    def __init__(self, missing: Sequence[str] | None = None) -> None:
        self._missing = tuple(missing_features(system_calls=False) if missing is None else missing)
        self._stack = ExitStack()
        self._pool: Monty | None = None
        self._lock = anyio.Lock()

    @property
    def is_there(self) -> bool:
        """Whether Monty is installed."""
        return importlib.util.find_spec("pydantic_monty") is not None

    @property
    def version(self) -> str:
        """Version of the interpreter, or what it would be."""
        try:
            return f"pydantic-monty {importlib.metadata.version('pydantic-monty')}"
        except importlib.metadata.PackageNotFoundError:
            return "pydantic-monty (not installed)"

    async def run(self, request: CodeRequest) -> CodeOutcome:
        """Return what came of one call. Cancelling waits until the code has ended by its own bounds.

        Raises:
            SandboxUnavailable: Monty is not installed, or this machine lacks Landlock.
        """
        pool = await self._opened()
        return await to_thread.run_sync(_run, pool, request)

    async def aclose(self) -> None:
        """End the workers."""
        async with self._lock:
            self._pool = None
            await to_thread.run_sync(self._stack.close)

    async def _opened(self) -> Monty:
        async with self._lock:
            if self._pool is None:
                self._pool = await to_thread.run_sync(self._open)
            return self._pool

    def _open(self) -> Monty:
        if not self.is_there:
            raise SandboxUnavailable("Monty is not installed: `pip install 'skillbank[code]'`")
        if self._missing:
            raise SandboxUnavailable(
                f"Monty's worker cannot be confined here: it needs {', '.join(self._missing)}"
            )
        import pydantic_monty

        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="skillbank-monty-"))
        pool: Monty = pydantic_monty.Monty(
            binary_path=_launcher(Path(folder)),
            min_processes=1,
            max_processes=8,
            max_checkouts_per_worker=1,
            request_timeout=60.0,
        )
        return self._stack.enter_context(pool)


def _launcher(folder: Path) -> Path:
    """Write the program that is started as worker: a confined Monty with an empty environment."""
    # The library has no public name for it.
    from pydantic_monty._binary import find_monty_binary  # pyright: ignore[reportPrivateImportUsage]

    binary = str(Path(find_monty_binary()).resolve())
    command = ["env", "-i", sys.executable, "-I", "-S", str(_LAUNCHER), binary]
    program = folder / "monty"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
    program.chmod(0o700)
    return program


def _run(pool: Monty, request: CodeRequest) -> CodeOutcome:
    import pydantic_monty

    started, limits = time.perf_counter(), request.limits

    def seconds() -> float:
        return time.perf_counter() - started

    bounds: ResourceLimits = {
        "max_feed_duration_secs": limits.seconds,
        "max_memory": limits.memory_bytes,
        "max_suspensions": _MOST_LOOKUPS,
        "max_total_sleep_secs": 0.0,
    }
    still: OSPolicy = {"datetime": _STILL, "sleep": "zero", "random_start": {"seed": 0}}
    try:
        with pool.checkout(limits=bounds, os_policy=still) as session:
            text = _conversation(session, request)
        return _returned(text, limits.output_bytes, seconds())
    except _TooMuch as error:
        return Stopped("output", str(error), seconds())
    except pydantic_monty.MontyCrashedError as error:
        return _crashed(error, limits.seconds, seconds())
    except pydantic_monty.MontyError as error:
        return _raised(error, limits.seconds, seconds())


class _TooMuch(Exception):  # noqa: N818
    """The code sent more to the host than it may."""


def _conversation(session: MontySession, request: CodeRequest) -> object:
    """Return what the last expression gave, every call of a tool answered on the way."""
    import pydantic_monty

    tools = "".join(_TOOL.format(name=name) for name in sorted(request.tools))
    code = f"{request.source}\n{_LAST.format(tools=tools, entry=request.entry)}"
    given = {"skillbank_arguments": json.dumps(dict(request.arguments))}
    state: SyncSnapshot = session.feed_start(code, inputs=given, external_lookup={}, print_callback=_unheard)
    calls = sent = 0
    while not isinstance(state, pydantic_monty.MontyComplete):
        if isinstance(state, pydantic_monty.NameLookupSnapshot):
            state = state.resume()
        elif isinstance(state, pydantic_monty.FutureSnapshot):
            raise _TooMuch("it waits for what was never begun")
        elif state.is_os_function:
            state = state.resume_not_handled()
        elif state.function_name != "skillbank_call" or not request.tools:
            state = state.resume({"exception": NameError(f"name {state.function_name!r} is not defined")})
        else:
            name, text = _called(state)
            calls, sent = calls + 1, sent + len(text)
            if calls > request.limits.calls or sent > request.limits.output_bytes:
                raise _TooMuch(f"it made more than {request.limits.calls} calls, or larger ones than it may")
            state = state.resume(_answer(name, text, request.tools))
    return state.output


def _unheard(stream: str, text: str) -> None:
    """Drop what the code prints."""


def _called(state: FunctionSnapshot) -> tuple[str, str]:
    match state.args:
        case (str(name), str(text)):
            return name, text
        case _:
            return "", "null"


def _answer(name: str, text: str, tools: Mapping[str, GrantedTool]) -> ExternalResult:
    tool = tools.get(name)
    arguments = _parsed(text)
    if tool is None or not isinstance(arguments, dict):
        return {"exception": RuntimeError(f"no tool {name!r} was granted")}

    async def call() -> JsonValue:
        return await tool(arguments)

    try:
        return {"return_value": json.dumps(anyio.from_thread.run(call))}
    except ToolRefused as error:
        return {"exception": RuntimeError(str(error))}


def _returned(text: object, most_bytes: int, seconds: float) -> CodeOutcome:
    if not isinstance(text, str):
        return Raised("TypeError", "it returned nothing that is JSON", seconds)
    if len(text.encode(errors="replace")) > most_bytes:
        return Stopped("output", f"it gave more than {most_bytes} bytes", seconds)
    value = _parsed(text)
    if value is _NOTHING:
        return Raised(
            "ValueError", "its value is no JSON (a number that is not finite, or nested too deep)", seconds
        )
    return Returned(value, seconds)


_NOTHING: Any = object()


def _parsed(text: str) -> JsonValue:
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return _NOTHING


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is not allowed")


def _crashed(error: MontyCrashedError, most_seconds: float, seconds: float) -> Stopped:
    said = str(error)[:_MOST_MESSAGE]
    if error.timed_out:
        return Stopped("seconds", f"it ran longer than {most_seconds:g} s", seconds)
    return Stopped("memory" if "memory" in said else "crash", said, seconds)


def _raised(error: MontyError, most_seconds: float, seconds: float) -> CodeOutcome:
    """Return what an error of the engine says of the code; its text is `Kind: message`."""
    import pydantic_monty

    kind, _, message = str(error).partition(": ")
    if isinstance(error, pydantic_monty.MontySyntaxError):
        return Raised("SyntaxError", str(error)[:_MOST_MESSAGE], seconds, is_unsupported=True)
    if kind == "TimeoutError" and "limit exceeded" in message:
        return Stopped("seconds", f"it ran longer than {most_seconds:g} s", seconds)
    if kind == "MemoryError":
        return Stopped("memory", message[:_MOST_MESSAGE], seconds)
    return Raised(kind[:100], message[:_MOST_MESSAGE], seconds, is_unsupported=kind in _LACKING)
