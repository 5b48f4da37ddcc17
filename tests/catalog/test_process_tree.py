"""Trees of real processes: found whole, ended whole, and nobody else's touched."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from catalog.child_process import LastWords, open_process
from catalog.config import Config, ServerSpec
from catalog.connections import open_connections
from catalog.process_tree import MARK_VARIABLE, ProcessTree, end_orphans, new_mark
from catalog.result import CallSuccess
from catalog.testing.defects import defect_command, read_log
from catalog.testing.endurance import living
from catalog.tools import ToolId

pytestmark = pytest.mark.anyio

CHAIN = """
import os, signal, subprocess, sys
depth, how = int(sys.argv[1]), sys.argv[2]
if "deaf" in how:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(os.getpid(), flush=True)
if depth:
    again = [sys.executable, __file__, str(depth - 1), how]
    subprocess.Popen(again, start_new_session="session" in how, env={} if "cleared" in how else None)
    if "leaves" in how:
        sys.exit()
signal.pause()
"""
DEPTH = 3

KILLED = """
import os, subprocess, sys
from catalog.process_tree import MARK_VARIABLE, new_mark
environment = {**os.environ, MARK_VARIABLE: new_mark()}
subprocess.Popen([sys.executable, *sys.argv[1:]], env=environment, start_new_session=True)
sys.stdin.read()
"""


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    script = tmp_path / "chain.py"
    script.write_text(CHAIN)
    return script


@pytest.fixture
def bystander() -> Iterator[int]:
    """A process of nobody's, that has to be left alone."""
    process = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"])
    yield process.pid
    process.kill()
    process.wait()


def pids(process: subprocess.Popen[str], count: int = DEPTH + 1) -> list[int]:
    assert process.stdout is not None
    return [int(process.stdout.readline()) for _ in range(count)]


@pytest.mark.parametrize(
    "how",
    ["plain", "session", "deaf", "deaf session", "cleared", "cleared session", "leaves", "leaves session"],
)
async def test_a_tree_is_ended_whole_however_its_branches_hide(chain: Path, how: str, bystander: int) -> None:
    mark = new_mark()
    process = subprocess.Popen(
        [sys.executable, chain, str(DEPTH), how],
        env={**os.environ, MARK_VARIABLE: mark},
        start_new_session=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    tree = ProcessTree(process.pid, mark)
    with process:
        members = pids(process)
        await tree.end()
    assert living(members) == []
    assert not tree.is_alive()
    assert living([bystander]) == [bystander]


@pytest.mark.parametrize("how", ["plain", "deaf session", "leaves session"])
async def test_what_a_killed_owner_left_is_ended_by_whoever_starts_next(
    chain: Path, how: str, bystander: int
) -> None:
    arguments = [sys.executable, "-c", KILLED, str(chain), str(DEPTH), how]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (
        subprocess.Popen(arguments, **pipes) as killed,
        subprocess.Popen([*arguments[:-1], "plain"], **pipes) as running,
    ):
        left, kept = pids(killed), pids(running)
        before = living(left)
        await end_orphans()
        assert (living(left), living(kept)) == (before, kept)
        killed.kill()
        killed.wait()
        assert await end_orphans() >= len(before) > 0
        assert (living(left), living(kept), living([bystander])) == ([], kept, [bystander])
        running.kill()
        running.wait()
        await end_orphans()
        assert living(kept) == []


async def test_marks_of_another_namespace_or_of_no_sense_are_left_alone(chain: Path) -> None:
    for mark in ("1:1:1:feed", "nonsense", "", "9:8"):
        with subprocess.Popen(
            [sys.executable, chain, "0", "plain"],
            env={**os.environ, MARK_VARIABLE: mark},
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            (pid,) = pids(process, 1)
            await end_orphans()
            assert living([pid]) == [pid]
            process.kill()


def shell(command: str, *args: str) -> ServerSpec:
    return ServerSpec("odd", command="sh", args=("-c", f"{shlex.join([command, *args])}; true"))


def npx(command: str, *args: str) -> ServerSpec:
    return ServerSpec("odd", command="npx", args=("--offline", "-c", shlex.join([command, *args])))


WRAPPED = """
import subprocess, sys
sys.exit(subprocess.run(sys.argv[1:]).returncode)
"""


def runner(command: str, *args: str) -> ServerSpec:
    """Start as `uvx` does: a program that starts the server and waits for it."""
    return ServerSpec("odd", command=sys.executable, args=("-c", WRAPPED, command, *args))


@pytest.mark.parametrize("defect", ["breeds", "escapes"])
@pytest.mark.parametrize("wrapper", [shell, npx, runner])
async def test_a_server_behind_a_wrapper_leaves_nothing_behind(wrapper, defect: str, tmp_path: Path) -> None:
    if wrapper is npx and shutil.which("npx") is None:
        pytest.skip("npx is not installed")
    log = tmp_path / "log"
    spec = wrapper(*flat(defect_command(defect, log)))
    with anyio.fail_after(60):
        async with open_connections(Config({"odd": spec}), eras={"odd": "legacy"}) as connections:
            assert isinstance(await connections.call(ToolId("odd", "good"), {}), CallSuccess)
            entries = read_log(log)
            members = [entry[key] for entry in entries for key in ("started", "bred") if key in entry]
            assert living(members) == members
    assert (len(members), living(members)) == (2, [])


def flat(command: tuple[str, tuple[str, ...]]) -> list[str]:
    return [command[0], *command[1]]


USES_AND_DIES = """
import os, signal, sys, anyio
from catalog.child_process import LastWords, open_process
from catalog.config import Config, ServerSpec
from catalog.connections import open_connections

async def main():
    spec = ServerSpec("odd", command=sys.argv[1], args=tuple(sys.argv[2:]))
    async with open_connections(Config({"odd": spec}), eras={"odd": "legacy"}) as connections:
        await connections.snapshot()
        os.kill(os.getpid(), signal.SIGKILL)

anyio.run(main)
"""


@pytest.mark.parametrize("defect", ["breeds", "escapes", "stubborn"])
async def test_a_fresh_start_ends_what_our_own_killed_process_left(defect: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    arguments = [sys.executable, "-c", USES_AND_DIES, *flat(defect_command(defect, log))]
    assert subprocess.run(arguments, check=False).returncode == -signal.SIGKILL
    left = [entry[key] for entry in read_log(log) for key in ("started", "bred") if key in entry]
    stubborn = [left[0]] if defect == "stubborn" else left[1:]
    assert living(stubborn) == stubborn
    async with open_connections(Config({})):
        pass
    assert living(left) == []


async def test_a_start_that_is_given_up_half_way_leaves_nobody() -> None:
    """A cancellation arrives while the process is being started: it runs already, nobody has it yet."""
    word = f"given-up-{uuid.uuid4().hex}"
    body = f'"$1" -c "import time; time.sleep(600)" {word} & "$1" -c "import time; time.sleep(600)" "$0"'
    spec = ServerSpec("given-up", command="sh", args=("-c", body, word, sys.executable))

    async with anyio.create_task_group() as group:

        async def give_up_at_once() -> None:
            while not told(word):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()

        group.start_soon(give_up_at_once)
        async with open_process(spec, LastWords(), 1_000_000):
            await anyio.sleep_forever()

    assert told(word) == []


def told(word: str) -> list[str]:
    """Return the command lines of all processes that hold a word."""
    lines: list[str] = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has just ended
            lines.append(place.read_text(errors="replace"))
    return [line for line in lines if word in line]
