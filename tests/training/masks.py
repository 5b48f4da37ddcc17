"""Compares our tokens of a run with those found by hand, and TRL's own mask: run in the trainer's Python.

    python masks.py MODEL GRPO_ROWS SFT_ROWS TOKENS_MODULE

Prints one JSON object: {tokens, learned}, counted over all rows; ends with an error at the first difference.
"""

import importlib.util
import json
import sys
from pathlib import Path

import trl
from by_hand import pieces, rendered
from transformers import AutoTokenizer


def read(file):
    return [json.loads(line) for line in Path(file).read_text("utf-8").splitlines()]


def check_grpo(row, tokeniser, tokenise):
    """Return how many tokens there are and how many are learned."""
    ours = tokenise(row, tokeniser)
    whole = [*row["prompt"], *row["completion"]]
    ids, turns = pieces(tokeniser, rendered(tokeniser, whole, row["tools"]), newline=False)
    said = [i for i, one in enumerate(row["completion"]) if one["role"] == "assistant"]
    mask = [int(turn is not None and row["trained"][said[turn]]) for turn in turns]
    credit = [row["advantages"][said[t]] if m else 0.0 for t, m in zip(turns, mask, strict=True)]
    start, stop = len(ours.prompt), len(ours.prompt) + len(ours.completion)
    assert ours.prompt + ours.completion == ids[:stop], "other tokens"
    assert ours.mask == mask[start:stop], "another mask"
    assert ours.advantages == credit[start:stop], "other advantages"
    assert not any(mask[:start] + mask[stop:]), "something learned is missing"
    return stop, sum(mask)


def check_sft(row, tokeniser):
    found = tokeniser.apply_chat_template(
        row["messages"], tools=row["tools"], return_dict=True, return_assistant_tokens_mask=True
    )
    ids, turns = pieces(tokeniser, rendered(tokeniser, row["messages"], row["tools"]), newline=True)
    assert found["input_ids"] == ids, "other tokens"
    assert found["assistant_masks"] == [int(turn is not None) for turn in turns], "another mask"
    return len(ids), sum(found["assistant_masks"])


def main():
    folder, grpo, sft, module = sys.argv[1:]
    spec = importlib.util.spec_from_file_location("tokens", module)
    tokens = sys.modules["tokens"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tokens)
    tokeniser = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    templates = Path(trl.__file__).with_name("chat_templates")
    tokeniser.chat_template = (templates / "qwen3_training.jinja").read_text("utf-8")
    counts = [check_grpo(row, tokeniser, tokens.tokenise) for row in read(grpo)]
    counts += [check_sft(row, tokeniser) for row in read(sft)]
    print(json.dumps({"tokens": sum(t for t, _ in counts), "learned": sum(m for _, m in counts)}))


if __name__ == "__main__":
    main()
