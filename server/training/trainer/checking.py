"""Reads every file of an export as trainers do, and compares our masks with a template's own, token by token.

A line on stdout is `{"done": …}` at the end, or `{"error": …}`.
"""

# datasets, transformers and TRL are only in the Python that this runs in.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

from .tokens import tokenise
from .versions import NEEDED, problem_of

__all__ = ["main"]

_TEMPLATE = "qwen3_training.jinja"


def main(job_file: str) -> int:
    """Carry out the job of a file (`data`, a folder, and `model`, where a tiny one is put); return 0 or 1."""
    if (problem := problem_of()) is not None:
        return _say({"error": problem}, 1)
    os.environ.update(HF_HUB_OFFLINE="1", TRL_EXPERIMENTAL_SILENCE="1", TOKENIZERS_PARALLELISM="false")
    job = cast("dict[str, str]", json.loads(Path(job_file).read_text("utf-8")))
    try:
        from .tiny_model import make

        make(Path(job["model"]))
        found = _files(Path(job["data"])) | _masks(Path(job["data"]), job["model"])
    except (ValueError, OSError, RuntimeError, KeyError) as error:
        return _say({"error": f"{type(error).__name__}: {error}"}, 1)
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in NEEDED)
    return _say({"done": {**found, "template": f"TRL's {_TEMPLATE}", "versions": versions}}, 0)


def _say(line: dict[str, Any], code: int) -> int:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()
    return code


def _files(data: Path) -> dict[str, Any]:
    """Return the rows that `datasets` reads of each file, and the arguments that reading made null."""
    from datasets import load_dataset

    loaded: dict[str, int] = {}
    nulls = 0
    for path in sorted([*data.glob("*.jsonl"), *data.glob("trl/*.jsonl"), *data.glob("verl/*.parquet")]):
        kind = "json" if path.suffix == ".jsonl" else "parquet"
        rows = cast("Any", load_dataset(kind, data_files=str(path), split="train"))
        loaded[path.relative_to(data).as_posix()] = len(rows)
        nulls += sum(value is None for row in rows for call in _calls(row) for value in _arguments(call))
    return {"loaded": loaded, "null_arguments": nulls}


def _calls(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name in ("messages", "prompt", "completion", "chosen", "rejected"):
        turns = row.get(name)
        for turn in turns if isinstance(turns, list) else ():
            yield from turn.get("tool_calls") or ()


def _arguments(call: dict[str, Any]) -> Iterable[object]:
    given = call["function"]["arguments"]
    return (json.loads(given) if isinstance(given, str) else given).values()


def _masks(data: Path, model: str) -> dict[str, int]:
    """Return how many tokens of the rows for GRPO are not, or are not marked, as the template has them."""
    import trl
    from transformers import AutoTokenizer

    tokeniser = cast("Any", AutoTokenizer.from_pretrained(model, local_files_only=True))
    templates = Path(str(trl.__file__)).with_name("chat_templates")
    tokeniser.chat_template = (templates / _TEMPLATE).read_text("utf-8")
    told = {"rows": 0, "tokens": 0, "learned": 0, "differences": 0}
    for path in sorted(data.glob("trl/grpo.*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            row = cast("dict[str, Any]", json.loads(line))
            for name, value in _compared(row, tokeniser).items():
                told[name] += value
    return told


def _compared(row: dict[str, Any], tokeniser: Any) -> dict[str, int]:  # noqa: ANN401
    """Return the counts of one row; a turn that is not to be learned is taken out of the template's marks."""
    found = tokenise(row, tokeniser)
    whole = tokeniser.apply_chat_template(
        [*row["prompt"], *row["completion"]],
        tools=row["tools"] or None,
        tokenize=True,
        return_dict=True,
        return_assistant_tokens_mask=True,
    )
    ids, marks = list(whole["input_ids"]), list(whole["assistant_masks"])
    end, newline = (
        tokeniser.convert_tokens_to_ids("<|im_end|>"),
        tokeniser.encode("\n", add_special_tokens=False),
    )
    for i, token in enumerate(ids):  # the template marks the line break after the end too
        if marks[i] and token == newline[0] and ids[i - 1] == end:
            marks[i] = 0
    _unmark(marks, row)
    mine, mask = [*found.prompt, *found.completion], [*[0] * len(found.prompt), *found.mask]
    differences = sum(a != b for a, b in zip(mine, ids, strict=False)) + sum(marks[len(mask) :])
    differences += sum(a != b for a, b in zip(mask, marks, strict=False))
    differences += sum(bool(a) and not m for a, m in zip(found.advantages, found.mask, strict=True))
    return {"rows": 1, "tokens": len(ids), "learned": sum(found.mask), "differences": differences}


def _unmark(marks: list[int], row: dict[str, Any]) -> None:
    """Take the marks of turns that are told but not learned away: the n-th run of marks is the n-th turn."""
    said = [False] * sum(turn["role"] == "assistant" for turn in row["prompt"]) + [
        bool(learned)
        for turn, learned in zip(row["completion"], row["trained"], strict=True)
        if turn["role"] == "assistant"
    ]
    starts = [i for i, mark in enumerate(marks) if mark and not (i and marks[i - 1])]
    for start, learned in zip(starts, said, strict=True):
        at = start
        while not learned and at < len(marks) and marks[at]:
            marks[at] = 0
            at += 1
