"""Compares our masks with those a trainer's template marks, and looks for nulls: run in the trainer's Python.

python masks.py MODEL DATA
"""

import importlib.util
import json
import sys
from pathlib import Path

import trl
from datasets import load_dataset
from transformers import AutoTokenizer

_TOKENS = Path(__file__).parents[2] / "server" / "training" / "trainer" / "tokens.py"


def main():
    model, data = sys.argv[1:]
    spec = importlib.util.spec_from_file_location("tokens_of_ours", _TOKENS)
    ours = importlib.util.module_from_spec(spec)
    sys.modules["tokens_of_ours"] = ours
    spec.loader.exec_module(ours)
    tokeniser = AutoTokenizer.from_pretrained(model, local_files_only=True)
    templates = Path(trl.__file__).with_name("chat_templates")
    tokeniser.chat_template = (templates / "qwen3_training.jinja").read_text("utf-8")
    file = str(Path(data) / "trl" / "grpo.train.jsonl")
    rows = [json.loads(line) for line in Path(file).read_text("utf-8").splitlines()]
    newline = tokeniser.encode("\n", add_special_tokens=False)
    differences = learned = 0
    for row in rows:
        found = ours.tokenise(row, tokeniser)
        whole = tokeniser.apply_chat_template(
            [*row["prompt"], *row["completion"]],
            tools=row["tools"] or None,
            tokenize=True,
            return_dict=True,
            return_assistant_tokens_mask=True,
        )
        ids, marks = whole["input_ids"], list(whole["assistant_masks"])
        end = tokeniser.convert_tokens_to_ids("<|im_end|>")
        for i, token in enumerate(ids):  # the template marks the line break after the end too
            if marks[i] and token == newline[0] and ids[i - 1] == end:
                marks[i] = 0
        mine = [*found.prompt, *found.completion]
        mask = [*[0] * len(found.prompt), *found.mask]
        differences += sum(a != b for a, b in zip(mine, ids, strict=False))
        differences += sum(a != b for a, b in zip(mask, marks, strict=False))
        differences += sum(marks[len(mask) :])
        differences += sum(bool(a) and not m for a, m in zip(found.advantages, found.mask, strict=True))
        learned += sum(found.mask)
    nulls = 0
    for name in ("sft", "dpo", "grpo"):
        loaded = load_dataset(
            "json", data_files=str(Path(data) / "trl" / f"{name}.train.jsonl"), split="train"
        )
        for row in loaded:
            for turn in row.get("messages") or [*row["prompt"], *(row.get("completion") or row["chosen"])]:
                for call in turn.get("tool_calls") or []:
                    nulls += sum(value is None for value in call["function"]["arguments"].values())
    report = {"rows": len(rows), "differences": differences, "learned": learned, "null_arguments": nulls}
    print(json.dumps(report))


if __name__ == "__main__":
    main()
