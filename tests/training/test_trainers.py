"""Every exported file in its trainer: a tiny random model, loss and gradient as computed by hand."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from runs import drive, seen, snapshot

from server.training.errors import TrainerUnusable
from server.training.export import ExportOptions, export_episodes
from server.training.from_drives import episodes_of_drive
from server.training.from_traces import episodes_of
from server.training.launching import TrainOptions, train

pytestmark = pytest.mark.training

HERE = Path(__file__).parent
TOKENS = HERE.parents[1] / "server" / "training" / "trainer" / "tokens.py"


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """Return a folder with the export of traces and of drives, one of them guided."""
    episodes = episodes_of(seen(("Paris", "Rome")), snapshot())
    for report in (drive(right=True, guided=True), drive(right=False, guided=False)):
        episodes += episodes_of_drive(report, "d.json")
    exported = export_episodes(episodes, ExportOptions(test_share=0), lambda value: value)
    for path, content in exported.files.items():
        (tmp_path / "export" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "export" / path).write_bytes(content)
    return tmp_path / "export" / "trl"


def said_by(python: Path, script: str, *arguments: object) -> Any:
    command = [str(python), str(HERE / script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-1500:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("trainer", ["sft", "dpo", "grpo"])
def test_loss_and_gradient_of_the_first_update_are_those_by_hand(
    trainer: Any, export: Path, tiny_model: Path, trainer_python: Path, tmp_path: Path
):
    rows = export / f"{trainer}.train.jsonl"
    count = len(rows.read_text().splitlines())
    by_hand = said_by(trainer_python, "by_hand.py", trainer, tiny_model, rows)
    options = TrainOptions(
        trainer=trainer, model=tiny_model, output=tmp_path / "out", steps=3, batch=count, learning_rate=1e-3
    )
    report = train(rows, options, trainer_python, print)
    first = report.losses[0]
    assert first["loss"] == pytest.approx(by_hand["loss"], abs=2e-4)
    assert first["grad_norm"] == pytest.approx(by_hand["grad_norm"], rel=2e-3)
    assert (report.rows, report.steps, len(report.losses)) == (count, 3, 3)
    assert (tmp_path / "out" / "model.safetensors").stat().st_size > 0


def test_every_token_is_masked_as_a_real_chat_template_says(
    export: Path, tiny_model: Path, trainer_python: Path
):
    files = [export / f"{name}.train.jsonl" for name in ("grpo", "sft")]
    counted = said_by(trainer_python, "masks.py", tiny_model, *files, TOKENS)
    assert 0 < counted["learned"] < counted["tokens"] / 2


def test_files_for_verl_read_back_without_foreign_fields(
    trainer_python: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    [packages] = trainer_python.parents[1].glob("lib/python*/site-packages")
    monkeypatch.setattr(sys, "path", [*sys.path, str(packages)])  # for pyarrow alone
    options = ExportOptions(formats=("verl",), test_share=0)
    exported = export_episodes(episodes_of(seen(), snapshot()), options, lambda value: value)
    for path, content in exported.files.items():
        (tmp_path / Path(path).name).write_bytes(content)
    script = (
        "import json, sys; from datasets import load_dataset;"
        "print(json.dumps([list(load_dataset('parquet', data_files=f, split='train',"
        " cache_dir=sys.argv[3])) for f in sys.argv[1:3]]))"
    )
    files = [str(tmp_path / f"{name}.train.parquet") for name in ("rl", "sft")]
    command = [str(trainer_python), "-c", script, *files, str(tmp_path / "cache")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-1500:]
    tasks, conversations = json.loads(done.stdout.splitlines()[-1])
    assert len(tasks) == len(conversations) == 3
    assert set(tasks[0]) == {"data_source", "prompt", "ability", "reward_model", "extra_info"}
    assert [one["extra_info"]["index"] for one in tasks] == [0, 1, 2]
    calls = [m["tool_calls"][0]["function"] for m in conversations[0]["messages"] if m["tool_calls"]]
    assert [json.loads(c["arguments"]) for c in calls] == [{"city": "Paris"}, {"seat": 4, "name": "Ann"}]
    assert len(json.loads(conversations[0]["tools"])) == 2


def test_a_folder_that_is_no_model_is_refused_in_a_sentence(
    export: Path, trainer_python: Path, tmp_path: Path
):
    (tmp_path / "model").mkdir()
    options = TrainOptions("sft", tmp_path / "model", tmp_path / "out", steps=1)
    with pytest.raises(TrainerUnusable, match=r"model"):
        train(export / "sft.train.jsonl", options, trainer_python, print)
