"""Answers requests of the environment service, a JSON object a line, in another package's interpreter.

`python loop.py MODULE [ARGUMENT...]`: the module, beside this one, has `open_world(*arguments)`, whose
methods are the operations. What the world prints goes to standard error, never between the answers.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from typing import Any

_OPERATIONS = ("tasks", "reset", "call", "submit", "score")


def main() -> None:
    """Answer until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    world: Any = importlib.import_module(sys.argv[1]).open_world(*sys.argv[2:])
    for line in sys.stdin:
        request: dict[str, Any] = json.loads(line)
        answer = {"id": request["id"], **_answered(world, request)}
        answers.write(json.dumps(answer, default=str) + "\n")
        answers.flush()


def _answered(world: Any, request: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401
    operation = request["op"]
    if operation not in _OPERATIONS:
        return {"error": {"kind": "unknown_operation", "message": f"no operation {operation!r}"}}
    try:
        return {"ok": getattr(world, operation)(**request["given"])}
    except LookupError as error:
        return {"error": {"kind": "not_found", "message": str(error).strip("'\"")}}
    except Exception as error:
        return {"error": {"kind": "world", "message": f"{type(error).__name__}: {error}"}}


if __name__ == "__main__":
    main()
