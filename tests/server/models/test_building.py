"""Building the runtime: what is refused at once, what an interruption leaves, and that two do not build."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import anyio
import pytest

from server.models.building import build_runtime
from server.models.errors import BuildFailed, NoSpace, NotFetched
from server.models.locks import hold_lock
from server.models.program import run_program
from server.models.runtime import Runtime, built_runtime
from server.models.step import Step

pytestmark = pytest.mark.anyio


def build_folders(host) -> list[str]:
    return [path.name for path in host.shelf.runtimes.iterdir() if path.name != ".lock"]


async def test_without_a_compiler_it_says_which_package_to_install(host, tmp_path, steps):
    bare = replace(host, environment={**host.environment, "PATH": str(tmp_path)})
    with pytest.raises(BuildFailed, match=r"needs a C\+\+ compiler.*apt install g\+\+"):
        await build_runtime(bare, steps)
    assert steps.told == []


async def test_a_step_that_fails_is_quoted_and_neither_it_nor_a_killed_build_leaves_anything(host, steps):
    left = host.shelf.runtimes / ".build-killed"
    left.mkdir(parents=True)
    (left / "llama-server").write_text("half of it")
    with pytest.raises(BuildFailed, match=r"install cmake and ninja failed: .*No matching distribution"):
        await build_runtime(host, steps)
    assert build_folders(host) == []
    assert host.runtime() is None


async def test_an_interrupted_build_leaves_nothing(host):
    with anyio.CancelScope() as scope:

        def interrupt(step: Step) -> None:
            if step.message.startswith("preparing the build"):
                scope.cancel()

        await build_runtime(host, interrupt)
    assert scope.cancelled_caught
    assert build_folders(host) == []


async def test_who_waits_for_another_build_uses_its_result(host, steps):
    host.shelf.runtimes.mkdir(parents=True)
    target = built_runtime(host.shelf)
    waiting = anyio.Event()

    def listen(step: Step) -> None:
        steps(step)
        waiting.set()

    async def build() -> None:
        assert await build_runtime(host, listen) == target

    with anyio.fail_after(30):
        async with (
            anyio.create_task_group() as group,
            hold_lock(host.shelf.runtimes / ".lock", steps, "unused"),
        ):
            group.start_soon(build)
            await waiting.wait()
            target.parent.mkdir()
            target.write_text("built")
    assert steps.messages == ["another skillbank is building llama-server: waiting for it"]


async def test_a_disk_that_is_too_full_is_found_out_first(host, steps):
    host.shelf.folder.write_text("a file where the folder should be")
    with pytest.raises(NoSpace, match="cannot be used"):
        await build_runtime(host, steps)


def _program(folder, name="llama-server"):
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


async def test_a_named_runtime_wins_over_one_on_the_path_and_that_over_a_built_one(host, tmp_path):
    assert host.runtime() is None
    built = _program(built_runtime(host.shelf).parent)
    assert host.runtime() == Runtime(built, "built")
    found = _program(tmp_path / "bin")
    on_path = replace(host, environment={"PATH": str(tmp_path / "bin")})
    assert on_path.runtime() == Runtime(found, "path")
    named = _program(tmp_path, "mine")
    assert replace(on_path, named_runtime=named).runtime() == Runtime(named, "named")


async def test_a_named_runtime_that_cannot_be_run_is_an_error(host, tmp_path):
    with pytest.raises(NotFetched, match=r"SKILLBANK_LLAMA_SERVER names .*/missing, which cannot be run"):
        replace(host, named_runtime=tmp_path / "missing").runtime()


async def test_a_program_that_is_not_there_says_so_in_its_last_words(host, tmp_path):
    ended = await run_program(["no-such-program"], environment=host.environment, folder=tmp_path)
    assert ended.exit_code == 1
    assert "FileNotFoundError" in ended.last_words()


async def test_a_cancelled_program_is_killed_with_its_children(host, tmp_path):
    pids: list[int] = []
    with anyio.fail_after(30), anyio.CancelScope() as scope:

        def started(line: str) -> None:
            pids.append(int(line))
            scope.cancel()

        script = "sleep 600 & echo $!; wait"
        await run_program(
            ["sh", "-c", script], environment=host.environment, folder=tmp_path, on_line=started
        )
    assert scope.cancelled_caught
    with anyio.fail_after(30):
        while _is_running(pids[0]):
            await anyio.sleep(0.01)


def _is_running(pid: int) -> bool:
    """Return whether a process is there and no zombie that nobody has waited for."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout
    return bool(state.strip()) and not state.startswith("Z")
