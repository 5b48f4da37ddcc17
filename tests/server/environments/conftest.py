"""A service over one scripted tool server in processes of its own, and how its clients talk to it."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from talking import Serve

from server.environments.definitions import Definition, of_task_file
from server.environments.limits import Limits
from server.environments.serving import serve_environments
from server.settings import read_settings

SCENARIO = {
    "tools": [
        {"name": "price", "answers": [{"total": 42.5}], "input_schema": {"type": "object"}},
        {"name": "count", "behaviour": "counter"},
        {"name": "send", "answers": ["sent"]},
    ]
}
TASKS = [
    {
        "id": "total",
        "task": "What is the total?",
        "servers": ["shop"],
        "inputs": {"item": "lamp"},
        "workflow": {"nodes": []},
        "assertions": ["output.total == `42.5`"],
        "answer": {"total": 42.5},
    },
    {
        "id": "volatile",
        "task": "What is the time?",
        "servers": ["shop"],
        "inputs": {},
        "workflow": {"nodes": []},
        "check": "judge",
    },
]


@pytest.fixture
def shop(tmp_path: Path) -> Definition:
    """A price that may be read, a counter of a resettable server, and a call that is neither."""
    scenario, config, tasks = (tmp_path / name for name in ("scenario.json", "config.json", "tasks.jsonl"))
    scenario.write_text(json.dumps(SCENARIO))
    launch = {"command": sys.executable, "args": ["-m", "catalog.testing", str(scenario)]}
    effects = {"shop": {"price": "read"}, "counted": {"*": "write"}}
    own = {"effects": effects, "reset": {"counted": "process"}}
    config.write_text(json.dumps({"mcpServers": {"shop": launch, "counted": launch}, "skillbank": own}))
    counted = {**TASKS[0], "id": "counted", "servers": ["counted"]}
    tasks.write_text("".join(json.dumps(task) + "\n" for task in (*TASKS, counted)))
    return of_task_file("shop", tasks, read_settings(config=config, store=tmp_path / "store.db"))


@pytest.fixture
def served(shop: Definition) -> Serve:
    """Serve it within some limits; yields the address."""

    @asynccontextmanager
    async def serving(**limits: Any) -> AsyncGenerator[str]:
        ready = anyio.Event()
        urls: list[str] = []

        def tell(url: str) -> None:
            urls.append(url)
            ready.set()

        async with anyio.create_task_group() as group:
            group.start_soon(serve_environments, {"shop": shop}, Limits(**limits), ("127.0.0.1", 0), tell)
            with anyio.fail_after(20):
                await ready.wait()
            try:
                yield urls[0]
            finally:
                group.cancel_scope.cancel()

    return serving
