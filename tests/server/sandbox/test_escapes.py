"""No attempt gets out of any tier, and each of those that could does where nothing confines it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest

from server.sandbox.confinement import missing_features
from server.sandbox.engine import CodeOutcome, CodeRequest, Limits, Returned, Stopped
from server.sandbox.sandbox import open_sandbox
from tests.server.sandbox.attempts import ABUSES, ATTEMPTS, REACHES

SKILLBANK_HOST_CANARY = True
TOKEN = "canary-5c1f"
LIMITS = Limits(seconds=2.0, memory_bytes=128 << 20, output_bytes=1 << 20)

pytestmark = pytest.mark.skipif(
    bool(missing_features(system_calls=True)),
    reason=f"this machine cannot confine code: it lacks {', '.join(missing_features(system_calls=True))}",
)


@dataclass
class World:
    """What an attempt tries to reach."""

    secret: Path
    marker: Path
    listener: socket.socket
    arguments: dict[str, str | int] = field(default_factory=dict)

    def was_reached(self) -> list[str]:
        found = ["the marker"] if self.marker.exists() or self.marker.is_symlink() else []
        found += [] if self.secret.exists() and self.secret.read_text() == TOKEN else ["the secret file"]
        try:
            self.listener.accept()[0].close()
        except BlockingIOError:
            return found
        return [*found, "the listener"]


@contextmanager
def a_world(folder: Path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        world = World(folder / "secret", folder / "marker", listener)
        world.secret.write_text(TOKEN)
        world.arguments = {
            "secret": str(world.secret),
            "marker": str(world.marker),
            "port": listener.getsockname()[1],
            "parent": os.getpid(),
        }
        yield world


async def _outcome(tier: str, source: str, arguments: dict[str, str | int]) -> CodeOutcome:
    with anyio.fail_after(60):
        async with open_sandbox() as sandbox:
            engine = sandbox.engines[tier]
            outcome = await engine.run(CodeRequest(source, "attempt", arguments, limits=LIMITS))
            well = await engine.run(CodeRequest("def f(n):\n    return n + 1\n", "f", {"n": 1}))
    assert isinstance(well, Returned), "the engine works after it"
    assert well.value == 2
    return outcome


def test_there_are_forty_two_attempts():
    assert len(ATTEMPTS) == 42
    assert set(ATTEMPTS) >= REACHES


@pytest.mark.anyio
@pytest.mark.parametrize("name", ATTEMPTS)
@pytest.mark.parametrize("tier", ["monty", "process"])
async def test_an_attempt_is_contained(tier, name, tmp_path, monkeypatch):
    monkeypatch.setenv("SKILLBANK_CANARY", TOKEN)
    with a_world(tmp_path) as world:
        outcome = await _outcome(tier, ATTEMPTS[name], world.arguments)
        assert world.was_reached() == []
    told = str(outcome)
    assert "ESCAPED" not in told
    assert TOKEN not in told
    assert len(told) < 4_000
    if name in ABUSES and name != "patient_pattern":
        assert isinstance(outcome, Stopped) or not isinstance(outcome, Returned), told


@pytest.mark.parametrize("name", sorted(REACHES))
def test_the_attempt_gets_out_where_nothing_confines_it(name, tmp_path):
    with a_world(tmp_path) as world:
        code = f"{ATTEMPTS[name]}\nprint(attempt(**{world.arguments!r}))"
        environment = {"PATH": os.environ["PATH"], "SKILLBANK_CANARY": TOKEN}
        command = [sys.executable, "-I", "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
        assert "ESCAPED" in done.stdout or world.was_reached(), done.stderr
