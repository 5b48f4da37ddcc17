"""Loss and gradient by hand, and the tokens that are learned: run in the trainer's Python.

    python by_hand.py sft|dpo|grpo MODEL ROWS [OLD]

OLD is the model whose probabilities a second update of grpo is relative to. Prints one JSON object:
{loss, grad_norm, learned}. Nothing of ours and no trainer is used; what a model says is found in the
rendered text by the marks of the Qwen format alone.
"""

import json
import re
import sys
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812
import trl
from transformers import AutoModelForCausalLM, AutoTokenizer

_TURN = re.compile(r"<\|im_start\|>assistant\n(.*?<\|im_end\|>)(\n?)", re.DOTALL)
EPSILON, BOOST, BETA = 0.2, 0.6, 0.1


def rendered(tokeniser, messages, tools):
    return tokeniser.apply_chat_template(messages, tools=tools or None, tokenize=False)


def pieces(tokeniser, text, *, newline):
    """Return all tokens, and for each the number of the model's turn that it is in, or None."""
    ids, turns, end = [], [], 0
    for number, match in enumerate(_TURN.finditer(text)):
        stop = match.end(2) if newline else match.end(1)
        for part, turn in ((text[end : match.start(1)], None), (text[match.start(1) : stop], number)):
            tokens = tokeniser.encode(part, add_special_tokens=False)
            ids += tokens
            turns += [turn] * len(tokens)
        end = stop
    return ids, turns


def log_probabilities(model, ids):
    logits = model(torch.tensor([ids])).logits[0, :-1]
    return F.log_softmax(logits, -1).gather(1, torch.tensor(ids[1:])[:, None])[:, 0]


def sft(model, tokeniser, rows):
    total, count, learned = 0.0, 0, []
    for row in rows:
        ids, turns = pieces(tokeniser, rendered(tokeniser, row["messages"], row["tools"]), newline=True)
        mask = torch.tensor([turn is not None for turn in turns[1:]])
        total = total - log_probabilities(model, ids)[mask].sum()
        count += int(mask.sum())
        learned.append(tokeniser.decode([i for i, turn in zip(ids, turns, strict=True) if turn is not None]))
    return total / count, learned


def grpo(model, tokeniser, rows, old):
    total, count, learned = 0.0, 0, []
    for row in rows:
        whole = [*row["prompt"], *row["completion"]]
        ids, turns = pieces(tokeniser, rendered(tokeniser, whole, row["tools"]), newline=False)
        said = [i for i, one in enumerate(row["completion"]) if one["role"] == "assistant"]
        credit = [row["advantages"][said[t]] if t is not None else 0.0 for t in turns[1:]]
        mask = torch.tensor([t is not None and row["trained"][said[t]] for t in turns[1:]]).float()
        found = log_probabilities(model, ids)
        before = found if old is None else log_probabilities(old, ids)
        ratio = torch.exp(found - before.detach())
        advantage = torch.tensor(credit)
        upper = torch.where((advantage > 0) & bool(row["guided"]), 1 + BOOST, 1 + EPSILON)
        clipped = torch.minimum(torch.maximum(ratio, torch.tensor(1 - EPSILON)), upper)
        total = total - (torch.minimum(ratio * advantage, clipped * advantage) * mask).sum()
        count += int(mask.sum())
        learned.append(tokeniser.decode([i for i, t in zip(ids, turns, strict=True) if t is not None]))
    return total / count, learned


def dpo(model, tokeniser, rows):
    """At the first update the model is its own reference: the loss is log 2."""
    total, learned = 0.0, []
    for row in rows:
        sums = []
        for said in (row["chosen"], row["rejected"]):
            text = rendered(tokeniser, [*row["prompt"], *said], row["tools"])
            ids, turns = pieces(tokeniser, text, newline=True)
            last = max(t for t in turns if t is not None)
            mask = torch.tensor([t == last for t in turns[1:]])
            sums.append(log_probabilities(model, ids)[mask].sum())
            learned.append(tokeniser.decode([i for i, t in zip(ids, turns, strict=True) if t == last]))
        difference = (sums[0] - sums[0].detach()) - (sums[1] - sums[1].detach())
        total = total - F.logsigmoid(BETA * difference)
    return total / len(rows), learned


def main():
    kind, folder, file, *olds = sys.argv[1:]
    tokeniser = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    templates = Path(trl.__file__).with_name("chat_templates")
    tokeniser.chat_template = (templates / "qwen3_training.jinja").read_text("utf-8")
    model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True)
    model.train()
    rows = [json.loads(line) for line in Path(file).read_text("utf-8").splitlines()]
    if kind == "grpo":
        old = AutoModelForCausalLM.from_pretrained(olds[0], local_files_only=True) if olds else None
        loss, learned = grpo(model, tokeniser, rows, old)
    else:
        loss, learned = {"sft": sft, "dpo": dpo}[kind](model, tokeniser, rows)
    loss.backward()
    squares = [(one.grad**2).sum() for one in model.parameters() if one.grad is not None]
    norm = torch.sqrt(torch.stack(squares).sum())
    print(json.dumps({"loss": loss.item(), "grad_norm": norm.item(), "learned": learned}))


if __name__ == "__main__":
    main()
