"""Training for real: torch and TRL in a Python of their own, a tiny random model, sums by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import platformdirs
import pytest

from catalog.canonical import digest
from server.training.errors import TrainerUnusable
from server.training.export import ExportOptions, export_episodes
from server.training.formats import verl_sft_rows
from server.training.from_drives import episodes_of_drive
from server.training.from_traces import episodes_of
from server.training.launching import Trainer, TrainOptions, check_export, rows_file, train
from tests.training.runs import EXPERIENCE, drive, seen, snapshot

pytestmark = pytest.mark.real_training
PACKAGES = (
    "torch==2.13.0",
    "trl==1.16.0",
    "transformers==5.24.0",
    "datasets==5.2.0",
    "accelerate==1.15.0",
    "jinja2",
)
HERE = Path(__file__).parent
TINY = HERE.parents[1] / "server" / "training" / "trainer" / "tiny_model.py"


@pytest.fixture(scope="session")
def python() -> Path:
    """Return a Python that has the trainer's packages; made once, and kept."""
    if given := os.environ.get("SKILLBANK_TRAIN_PYTHON"):
        return Path(given)
    name = digest([*PACKAGES, sys.version]).removeprefix("sha256:")[:12]
    folder = platformdirs.user_cache_path("skillbank") / "training" / name
    if not (folder / "complete").exists():
        _refuse_gpu_build()
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        pip = [folder / "bin" / "python", "-m", "pip", "install", "-q", *PACKAGES]
        done = subprocess.run(pip, capture_output=True, text=True, timeout=900, check=False)
        if done.returncode != 0:
            pytest.skip(f"torch and TRL cannot be installed here: {done.stderr.strip()[-300:]}")
        (folder / "complete").touch()
    return folder / "bin" / "python"


def _refuse_gpu_build() -> None:
    """Skip where pip offers only the build of torch that brings gigabytes for a GPU."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps", "--ignore-installed", "-q"]
    asked = subprocess.run(
        [*command, "--report", "-", PACKAGES[0]], capture_output=True, text=True, timeout=600, check=False
    )
    if asked.returncode != 0:
        pytest.skip(f"pip has no {PACKAGES[0]} here: {asked.stderr.strip()[-300:]}")
    needs = json.loads(asked.stdout)["install"][0]["metadata"].get("requires_dist", [])
    if any(need.startswith(("nvidia", "cuda")) for need in needs):
        pytest.skip("pip offers torch only for GPUs here: give it a place with CPU builds (PIP_FIND_LINKS)")


@pytest.fixture(scope="session")
def model(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a tiny random model."""
    folder = tmp_path_factory.mktemp("model")
    subprocess.run([python, TINY, folder], check=True, capture_output=True, timeout=120)
    return folder


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an export with runs and drives, half of the latter guided."""
    folder = tmp_path_factory.mktemp("data")
    episodes = episodes_of(seen(), snapshot())
    for right in (True, False):
        for guided in (True, False):
            episodes += episodes_of_drive(drive(right=right, guided=guided), "drive.json")
    exported = export_episodes(episodes, ExportOptions(test_share=0.0), lambda value: value)
    for path, content in exported.files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


def trained(trainer: Trainer, python: Path, model: Path, data: Path, output: Path, steps: int) -> Any:
    options = TrainOptions(
        trainer,
        model,
        output,
        steps,
        batch=10 if trainer == "grpo" else 4,
        learning_rate=2e-2,
        max_grad_norm=1e9,
        boost=0.6,
        max_length=4096,
    )
    return train(rows_file(data, trainer), options, python, print)


def by_hand(trainer: Trainer, python: Path, model: Path, data: Path, *old: Path) -> Any:
    command = [python, HERE / "by_hand.py", trainer, model, data / "trl" / f"{trainer}.train.jsonl", *old]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("trainer", ["sft", "dpo"])
def test_loss_and_gradient_are_those_of_the_models_own_turns(trainer, python, model, data, tmp_path):
    report = trained(trainer, python, model, data, tmp_path / "out", 1)
    hand = by_hand(trainer, python, model, data)
    first = report.losses[0]
    assert first["loss"] == pytest.approx(hand["loss"], rel=1e-4)
    assert first["grad_norm"] == pytest.approx(hand["grad_norm"], rel=1e-4)
    assert all('sunny"}\n</tool_response>' not in said and EXPERIENCE not in said for said in hand["learned"])
    assert (tmp_path / "out" / "model.safetensors").is_file()


def test_replay_learns_each_token_by_its_advantage_and_clips_guided_runs_later(python, model, data, tmp_path):
    one = trained("grpo", python, model, data, tmp_path / "one", 1)
    two = trained("grpo", python, model, data, tmp_path / "two", 2)
    first = by_hand("grpo", python, model, data)
    second = by_hand("grpo", python, tmp_path / "one", data, model)
    assert one.losses[0]["loss"] == pytest.approx(first["loss"], rel=1e-4)
    assert one.losses[0]["grad_norm"] == pytest.approx(first["grad_norm"], rel=1e-3)
    assert two.losses[1]["loss"] == pytest.approx(second["loss"], rel=1e-3)
    assert two.losses[1]["grad_norm"] == pytest.approx(second["grad_norm"], rel=1e-2)
    assert two.losses[1]["clip_ratio/region_mean"] > 0


def test_masks_are_those_of_the_template_token_by_token(python, data, tmp_path):
    told = check_export(data, tmp_path / "model", python, print)
    assert told.rows == 10
    assert told.differences == 0
    assert told.learned > 500
    assert told.null_arguments == 0
    assert told.loaded == {
        path.relative_to(data).as_posix(): len(path.read_bytes().splitlines())
        for path in data.rglob("*.jsonl")
    }


def test_verl_files_are_read_back_as_they_were_written(python, tmp_path):
    rows = tmp_path / "rows.json"
    rows.write_text(json.dumps(verl_sft_rows(episodes_of(seen(("Paris",)), snapshot()))), "utf-8")
    command = [python, HERE / "verl_files.py", rows]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == [{"city": "Paris"}, {"seat": 4, "name": "Ann"}]


def test_a_python_without_the_packages_is_told_what_it_lacks(model, data, tmp_path):
    options = TrainOptions("sft", model, tmp_path / "out", 1)
    with pytest.raises(TrainerUnusable, match="torch is not installed: pip install 'skillbank"):
        train(rows_file(data, "sft"), options, None, print)
