"""Gets the trainer's packages into a Python of their own, once, and makes a tiny model there."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import platformdirs
import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # modules of this folder; it is no package

INSTALL_SECONDS = 900


def _needed() -> list[str]:
    """Return what `skillbank[train]` asks for, each at the release that it was tried with."""
    project = tomllib.loads((HERE.parents[1] / "pyproject.toml").read_text("utf-8"))
    tried = {
        "torch": "==2.13.0",
        "trl": "==1.16.0",
        "transformers": "==5.24.0",
        "datasets": "==5.2.0",
        "accelerate": "==1.15.0",
    }
    listed: list[str] = project["project"]["optional-dependencies"]["train"]
    return [one + "," + tried[name] if (name := one.partition(">")[0]) in tried else one for one in listed]


@pytest.fixture(scope="session")
def trainer_python() -> Path:
    """Return the Python that has torch and TRL."""
    folder = platformdirs.user_cache_path("skillbank") / "training-1.16.0"
    python = folder / "bin" / "python"
    complete = folder / "complete"
    if not complete.exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=120)
        command = [str(python), "-m", "pip", "install", "-q", *_needed()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
        if done.returncode:
            pytest.skip(f"pip does not give the trainer's packages: {done.stderr.strip()[-300:]}")
        complete.touch()
    return python


@pytest.fixture(scope="session")
def tiny_model(trainer_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a random model of some thousand parameters."""
    folder = tmp_path_factory.mktemp("tiny") / "model"
    command = [str(trainer_python), str(HERE / "tiny_model.py"), str(folder)]
    subprocess.run(command, check=True, timeout=120, capture_output=True)
    return folder
