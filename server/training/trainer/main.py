"""Carries out one job: reads rows, trains a local model by TRL, writes it, and says each step as JSON.

Never downloads: the model is a folder. A line on stdout is `{"step": …}` or, at the end, `{"done": …}` or
`{"error": …}`.
"""

# torch and TRL are only in the Python that this runs in.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, cast

from .versions import problem_of

__all__ = ["main"]

_KEPT = (
    "loss",
    "grad_norm",
    "learning_rate",
    "clip_ratio/region_mean",
    "rewards/accuracies",
    "mean_token_accuracy",
)


def main(job_file: str) -> int:
    """Carry out the job of a file; return 0, or 1 after a line that says what was wrong."""
    if (problem := problem_of()) is not None:
        return _failed(problem)
    os.environ.update(HF_HUB_OFFLINE="1", TRL_EXPERIMENTAL_SILENCE="1", TOKENIZERS_PARALLELISM="false")
    job = cast("dict[str, Any]", json.loads(Path(job_file).read_text("utf-8")))
    try:
        rows = [json.loads(line) for line in Path(job["rows"]).read_text("utf-8").splitlines()]
        trainer = _TRAINERS[job["trainer"]](job, rows)
        trainer.train(resume_from_checkpoint=None)
        trainer.save_model(job["output"])
        trainer.processing_class.save_pretrained(job["output"])
    except (ValueError, OSError, RuntimeError, KeyError) as error:
        return _failed(f"{type(error).__name__}: {error}")
    for entry in trainer.state.log_history:
        if "loss" in entry:
            _say({"step": entry["step"], **{key: entry[key] for key in _KEPT if key in entry}})
    _say({"done": job["output"], "steps": trainer.state.global_step, "rows": len(rows)})
    return 0


def _say(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def _failed(problem: str) -> int:
    _say({"error": problem})
    return 1


def _model_of(job: dict[str, Any]) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokeniser = AutoTokenizer.from_pretrained(job["model"], local_files_only=True)
    if job["chat_template"]:
        tokeniser.chat_template = Path(job["chat_template"]).read_text("utf-8")
    if not tokeniser.chat_template:
        raise ValueError(f"{job['model']} has no chat template: give one by --chat-template FILE")
    if tokeniser.pad_token is None:
        tokeniser.pad_token = tokeniser.eos_token
    return AutoModelForCausalLM.from_pretrained(job["model"], local_files_only=True), tokeniser


def _arguments(job: dict[str, Any]) -> dict[str, Any]:
    """Return what all of TRL's trainers are configured with."""
    import torch

    on_gpu = torch.cuda.is_available()
    return {
        "output_dir": job["output"],
        "max_steps": job["steps"],
        "per_device_train_batch_size": job["batch"],
        "learning_rate": job["learning_rate"],
        "lr_scheduler_type": "constant",
        "max_grad_norm": job["max_grad_norm"],
        "logging_steps": 1,
        "save_strategy": "no",
        "report_to": [],
        "seed": job["seed"],
        "use_cpu": not on_gpu,
        "bf16": on_gpu,
        "gradient_checkpointing": on_gpu,
        "disable_tqdm": True,
    }


def _sft(job: dict[str, Any], rows: list[dict[str, Any]]) -> Any:  # noqa: ANN401
    from datasets import load_dataset
    from trl import SFTConfig, SFTTrainer

    model, tokeniser = _model_of(job)
    is_whole = "messages" in rows[0]
    options = {"assistant_only_loss": True} if is_whole else {"completion_only_loss": True}
    arguments = SFTConfig(**_arguments(job), **options, max_length=job["max_length"])
    data = load_dataset("json", data_files=job["rows"], split="train")
    return SFTTrainer(model=model, args=arguments, train_dataset=data, processing_class=tokeniser)


def _dpo(job: dict[str, Any], rows: list[dict[str, Any]]) -> Any:  # noqa: ANN401
    from datasets import load_dataset
    from trl import DPOConfig, DPOTrainer

    del rows
    model, tokeniser = _model_of(job)
    reference, _ = _model_of(job)
    arguments = DPOConfig(**_arguments(job), beta=job["beta"], max_length=job["max_length"])
    data = load_dataset("json", data_files=job["rows"], split="train")
    return DPOTrainer(
        model=model, ref_model=reference, args=arguments, train_dataset=data, processing_class=tokeniser
    )


def _grpo(job: dict[str, Any], rows: list[dict[str, Any]]) -> Any:  # noqa: ANN401
    from datasets import Dataset
    from trl import GRPOConfig
    from trl.chat_template_utils import get_training_chat_template

    from .replay import ReplayTrainer, chunked, rollout_of
    from .tokens import tokenise

    model, tokeniser = _model_of(job)
    tokeniser.chat_template = get_training_chat_template(tokeniser) or tokeniser.chat_template
    runs = [(tokenise(row, tokeniser), bool(row["guided"])) for row in rows]
    fitting = [one for one in runs if len(one[0].prompt) + len(one[0].completion) <= job["max_length"]]
    if not fitting:
        raise ValueError(f"no run fits into {job['max_length']} tokens: raise --max-length")
    size = job["batch"]
    chunks = chunked(fitting, size)
    arguments = GRPOConfig(
        **_arguments(job),
        num_generations=size,
        num_iterations=job["iterations"],
        max_completion_length=job["max_length"],
        epsilon=job["epsilon"],
        beta=0.0,
        loss_type="dapo",
        shuffle_dataset=False,
    )
    trainer = ReplayTrainer(
        model=model,
        reward_funcs=_no_reward,
        args=arguments,
        train_dataset=Dataset.from_list([{"prompt": str(number)} for number in range(len(chunks))]),
        processing_class=tokeniser,
        rollout_func=rollout_of(chunks),
    )
    trainer.boost = job["boost"]
    return trainer


def _no_reward(prompts: list[str], **others: object) -> list[float]:
    """Return zeros: advantages are known, so what TRL would make of rewards is replaced."""
    del others
    return [0.0] * len(prompts)


_TRAINERS = {"sft": _sft, "dpo": _dpo, "grpo": _grpo}
