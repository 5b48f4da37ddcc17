"""A program for OpenEnv's interpreter: plays the reference of a task through its client, whole and damaged.

`python playing.py URL TASK [SEED]` prints the two rewards as JSON. Damaged is the reference without its
last call.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from openenv.core.generic_client import GenericEnvClient


async def _played(url: str, reset: dict[str, Any], damaged: bool) -> float | None:
    async with GenericEnvClient(base_url=url) as client:
        await client.reset(**reset)
        reference = (await client.state())["reference"]
        turns: list[list[dict[str, Any]]] = reference["turns"]
        last = max(number for number, turn in enumerate(turns) if turn)
        for number, turn in enumerate(turns):
            result = None
            for call in turn[:-1] if damaged and number == last else turn:
                result = await client.step({"type": "call_tool", **call})
            if result is None or not result.done:
                result = await client.step({"type": "submit", "answer": reference.get("answer")})
        return result.reward if result.done else None


async def _main(url: str, task: str, *seed: str) -> None:
    reset = {"task_id": task, **({"seed": int(seed[0])} if seed else {})}
    print(json.dumps([await _played(url, reset, damaged) for damaged in (False, True)]))


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
