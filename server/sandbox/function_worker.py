"""Runs one function in a process of its own that the kernel has taken everything else from.

Run by path as `python -P -s -S function_worker.py MEMORY CPU_SECONDS` with an empty environment. Takes
one JSON line (`source`, `entry`, `arguments`, `tools`), answers with JSON lines: `{"confined": true}`
before any of the code runs, `{"call": …}` for each call of a granted tool, whose answer is the next
line it takes, and at last `{"returned": …}` or `{"raised": …}`. What it prints goes nowhere.
"""

from __future__ import annotations

import io
import json
import os
import random
import runpy
import sys
from collections.abc import Callable
from typing import Any

_here = os.path.dirname(os.path.abspath(__file__))
_confinement = runpy.run_path(os.path.join(_here, "confinement.py"))

_MOST_MESSAGE = 500


class _Channel:
    """The two pipes to the host, one JSON value a line."""

    def __init__(self) -> None:
        self._incoming = os.fdopen(os.dup(0), "rb", buffering=0)
        self._waiting = b""

    def take(self) -> dict[str, Any]:
        while b"\n" not in self._waiting:
            got = self._incoming.read(65536)
            if not got:
                os._exit(3)
            self._waiting += got
        line, self._waiting = self._waiting.split(b"\n", 1)
        return json.loads(line)

    def give(self, value: dict[str, Any]) -> None:
        text = (json.dumps(value, allow_nan=False) + "\n").encode()
        while text:
            text = text[os.write(1, text) :]


class _Nowhere(io.TextIOBase):
    def write(self, text: str) -> int:
        return len(text)


def _tool(name: str, channel: _Channel) -> Callable[..., Any]:
    def call(**arguments: object) -> object:
        channel.give({"call": name, "arguments": arguments})
        answer = channel.take()
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["output"]

    call.__name__ = name
    return call


def _answer(request: dict[str, Any], channel: _Channel) -> dict[str, Any]:
    scope: dict[str, Any] = {"__name__": "skill", **{name: _tool(name, channel) for name in request["tools"]}}
    try:
        exec(compile(request["source"], "<skill>", "exec"), scope)
        value = scope[request["entry"]](**request["arguments"])
        json.dumps(value, allow_nan=False)
        return {"returned": value}
    except BaseException as error:
        return {"raised": type(error).__name__, "message": str(error)[:_MOST_MESSAGE]}


def main() -> None:
    memory, cpu_seconds = int(sys.argv[1]), int(sys.argv[2])
    channel = _Channel()
    request = channel.take()
    sys.stdout = sys.stderr = _Nowhere()
    random.seed(0)
    _confinement["confine_resources"](memory, cpu_seconds)
    _confinement["confine_files"](readable=(os.path.dirname(os.__file__),))
    _confinement["confine_system_calls"]()
    channel.give({"confined": True})
    channel.give(_answer(request, channel))
    os._exit(0)


main()
