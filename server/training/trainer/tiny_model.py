"""A random model of some ten thousand parameters with a byte-level tokenizer and a real chat template.

Only to try trainers and data on. Needs torch and TRL: it is run in the trainer's Python.
"""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import sys
from pathlib import Path

import torch
import trl
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

__all__ = ["make"]

_SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def make(folder: Path) -> None:
    """Write model and tokenizer into a folder."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate([*_SPECIAL, *alphabet])}
    inner = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens(_SPECIAL)
    tokeniser = PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    templates = Path(str(trl.__file__)).with_name("chat_templates")
    tokeniser.chat_template = (templates / "qwen3.jinja").read_text("utf-8")
    torch.manual_seed(7)
    config = Qwen3Config(
        vocab_size=len(vocabulary),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        eos_token_id=vocabulary["<|im_end|>"],
        pad_token_id=vocabulary["<|endoftext|>"],
    )
    Qwen3ForCausalLM(config).save_pretrained(folder)
    tokeniser.save_pretrained(folder)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
