"""Starting the trainer in a process of its own, in the Python that has TRL, and reading what it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, cast

from pydantic import BaseModel, ConfigDict, JsonValue

from server.training.errors import OutputUnusable, SourceUnreadable, TrainerUnusable

__all__ = [
    "HARDWARE",
    "ExportCheck",
    "TrainOptions",
    "TrainReport",
    "Trainer",
    "check_export",
    "rows_file",
    "train",
]

Trainer = Literal["sft", "dpo", "grpo"]
_START = """\
import importlib.util as u, sys
s = u.spec_from_file_location("skillbank_trainer", sys.argv[1] + "/__init__.py",
                              submodule_search_locations=[sys.argv[1]])
sys.modules["skillbank_trainer"] = m = u.module_from_spec(s)
s.loader.exec_module(m)
import importlib
sys.exit(importlib.import_module("skillbank_trainer." + sys.argv[3]).main(sys.argv[2]))
"""
HARDWARE = (
    "Real models need a GPU: for all weights in bf16 with Adam count 16 bytes a parameter, so about 10 GB for"
    " 0.6 B, 26 GB for 1.7 B and 64 GB for 4 B, and activations beside; DPO holds the model twice."
    " On a CPU this trains only models of some million parameters in a sensible time."
)
"""Arithmetic, not measured here: 2 bytes weights, 2 gradients, 4 master copy, 8 Adam."""


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """What is trained, on what, and how."""

    trainer: Trainer
    model: Path
    """Folder of a model of the transformers library; nothing is downloaded."""
    output: Path
    steps: int = 100
    batch: int = 4
    """Rows at once; for grpo also the runs of one group, at least 2."""
    learning_rate: float = 1e-6
    """Source: AgentEvolver."""
    max_length: int = 8_192
    """Tokens of a row; longer ones are cut by TRL, left out for grpo."""
    beta: float = 0.1
    """Of DPO."""
    epsilon: float = 0.2
    """Clip of GRPO, below and above."""
    boost: float = 0.6
    """Upper clip of GRPO for positive tokens of runs that experience guided. Source: AgentEvolver."""
    iterations: int = 2
    """Updates of GRPO on one batch; at 1 no ratio ever leaves 1, and nothing is clipped."""
    max_grad_norm: float = 1.0
    seed: int = 0
    chat_template: Path | None = None

    def __post_init__(self) -> None:
        if min(self.steps, self.batch, self.max_length, self.iterations) < 1 or self.learning_rate <= 0:
            raise ValueError("steps, batch, max_length and iterations are at least 1, learning_rate above 0")
        if self.trainer == "grpo" and self.batch < 2:
            raise ValueError("grpo needs a batch of at least 2")


class TrainReport(BaseModel):
    """Answer of `train`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    trainer: Trainer
    rows: int
    steps: int
    losses: tuple[dict[str, JsonValue], ...]
    """By step: `{step, loss, grad_norm, …}` as TRL logs them."""
    output: str
    hardware: str = HARDWARE


class ExportCheck(BaseModel):
    """What reading an export as trainers do came to."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    loaded: dict[str, int]
    """Rows by file."""
    null_arguments: int
    """Arguments of calls that no run gave and reading put in."""
    rows: int
    """For GRPO, whose masks were compared."""
    tokens: int
    learned: int
    differences: int
    """Tokens, or marks of them, that are not the template's own."""
    template: str
    versions: str


def rows_file(data: Path, trainer: Trainer) -> Path:
    """Return the file of an export that a trainer learns from.

    Raises:
        SourceUnreadable: there is none; the message says what the export lacks.
    """
    if data.is_file():
        return data
    names = ("sft.train.jsonl", "sft-turns.train.jsonl") if trainer == "sft" else (f"{trainer}.train.jsonl",)
    for name in names:
        if (path := data / "trl" / name).is_file():
            return path
    lacks = {
        "sft": "no task of the training split came out right",
        "dpo": "no task of the training split has a right and a wrong run that fork at a turn of the model",
        "grpo": "no task of the training split has two scored runs that differ",
    }
    raise SourceUnreadable(
        f"{data} has no {names[0]}: {lacks[trainer]}, or it is no folder of `skillbank export training`"
    )


def train(
    rows: Path, options: TrainOptions, python: Path | None, listener: Callable[[str], None]
) -> TrainReport:
    """Train in a process of its own, and return what it said.

    Args:
        rows: a file of one row of JSON a line.
        options: what is trained and how.
        python: the interpreter that has torch and TRL; None: this one.
        listener: told what the process writes besides its report.

    Raises:
        SourceUnreadable: a line is no JSON object.
        OutputUnusable: the output folder is there and not empty.
        TrainerUnusable: the packages are missing or foreign, or training broke off.
    """
    _check(rows, options)
    with TemporaryDirectory(prefix="skillbank-train-") as folder:
        job = Path(folder) / "job.json"
        plain = {key: str(one) if isinstance(one, Path) else one for key, one in asdict(options).items()}
        job.write_text(json.dumps(plain | {"rows": str(rows.absolute())}), "utf-8")
        lines = _run([str(python or sys.executable), "-c", _START, _here(), str(job), "main"], listener)
    return _report(lines, options)


def check_export(
    data: Path, model: Path, python: Path | None, listener: Callable[[str], None]
) -> ExportCheck:
    """Read every file of an export as trainers do, and compare masks with a template's own marks.

    Args:
        data: folder of an export.
        model: new folder, in which a tiny random model is left to train on.
        python: the interpreter that has torch and TRL; None: this one.
        listener: told what the process writes besides its report.

    Raises:
        TrainerUnusable: the packages are missing or foreign, or a file cannot be read.
    """
    with TemporaryDirectory(prefix="skillbank-check-") as folder:
        job = Path(folder) / "job.json"
        job.write_text(json.dumps({"data": str(data.absolute()), "model": str(model.absolute())}), "utf-8")
        lines = _run([str(python or sys.executable), "-c", _START, _here(), str(job), "checking"], listener)
    return ExportCheck.model_validate(_last(lines)["done"])


def _here() -> str:
    return str(Path(__file__).with_name("trainer"))


def _check(rows: Path, options: TrainOptions) -> None:
    if not options.model.is_dir():
        raise TrainerUnusable(f"{options.model} is no folder: give a local model; nothing is downloaded")
    if options.output.exists() and (not options.output.is_dir() or any(options.output.iterdir())):
        raise OutputUnusable(f"{options.output} is there already: give a new folder by --output")
    wanted = {"sft": (("messages",), ("prompt", "completion")), "dpo": (("prompt", "chosen", "rejected"),)}
    shapes = wanted.get(options.trainer, (("prompt", "completion", "advantages", "trained", "guided"),))
    try:
        lines = rows.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SourceUnreadable(f"{rows} cannot be read: {error}") from error
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise SourceUnreadable(f"{rows}, line {number}: not JSON ({error}): export again") from error
        if not isinstance(row, dict) or not any(set(shape) <= row.keys() for shape in shapes):
            needed = " or ".join(", ".join(shape) for shape in shapes)
            raise SourceUnreadable(f"{rows}, line {number}: a row for {options.trainer} has {needed}")
    if not lines:
        raise SourceUnreadable(f"{rows} has no rows: export more")


def _run(command: list[str], listener: Callable[[str], None]) -> list[Mapping[str, JsonValue]]:
    """Return the lines of JSON that the trainer wrote; end it when this is interrupted."""
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
    found: list[Mapping[str, JsonValue]] = []
    rest: list[str] = []
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            env=environment,
        )
    except OSError as error:
        raise TrainerUnusable(f"{command[0]} cannot be started: {error.strerror or error}") from error
    with process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                said = _said(line)
                if said is None:
                    rest.append(line.rstrip())
                    listener(line.rstrip())
                else:
                    found.append(said)
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0 and not any("error" in one for one in found):
        raise TrainerUnusable(f"the trainer ended by {process.returncode}: {' | '.join(rest[-5:])}"[:2_000])
    return found


def _said(line: str) -> Mapping[str, JsonValue] | None:
    try:
        value = cast("JsonValue", json.loads(line))
    except ValueError:
        return None
    is_ours = isinstance(value, dict) and not value.keys().isdisjoint(("step", "done", "error"))
    return cast("Mapping[str, JsonValue]", value) if is_ours else None


def _last(lines: list[Mapping[str, JsonValue]]) -> Mapping[str, JsonValue]:
    for line in lines:
        if "error" in line:
            raise TrainerUnusable(str(line["error"]))
    done = next((line for line in lines if "done" in line), None)
    if done is None:
        raise TrainerUnusable("the trainer ended without a report")
    return done


def _report(lines: list[Mapping[str, JsonValue]], options: TrainOptions) -> TrainReport:
    done = _last(lines)
    return TrainReport(
        trainer=options.trainer,
        rows=int(str(done["rows"])),
        steps=int(str(done["steps"])),
        losses=tuple(dict(line) for line in lines if "step" in line),
        output=str(options.output),
    )
