"""A recorded run as tokens of a model: what was said, its loss mask, and an advantage for each token.

A message is rendered by the model's own chat template, after all that stood before it. What a turn of the
model adds after the prompt to generate is its own; all else was told to it. A template that rewrites earlier
messages (dropping thoughts, say) is refused: a turn would not stand after what it was said after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["TemplateRewrites", "Tokenised", "tokenise"]

Message = Mapping[str, Any]


class Tokeniser(Protocol):
    """What is needed of a tokenizer of the transformers library."""

    eos_token: str | None

    def apply_chat_template(self, conversation: Sequence[Message], **options: object) -> Any:  # noqa: ANN401
        """Return the text of a conversation."""
        ...

    def encode(self, text: str, *, add_special_tokens: bool) -> list[int]:
        """Return the tokens of a text."""
        ...


class TemplateRewrites(ValueError):  # noqa: N818
    """A later message changes how an earlier one is rendered."""


@dataclass(frozen=True)
class Tokenised:
    """Tokens of a prompt and of what followed; the other lists have an entry for each of the latter."""

    prompt: list[int]
    completion: list[int]
    mask: list[int]
    """1: the model said it and it is learned."""
    advantages: list[float]


def tokenise(row: Mapping[str, Any], tokeniser: Tokeniser) -> Tokenised:
    """Return a row of `grpo.jsonl` as tokens.

    Raises:
        TemplateRewrites: the template does not leave earlier messages as they are.
    """
    before, tools = list(row["prompt"]), row["tools"] or None
    told = _rendered(before, tools, tokeniser, opens=True)
    found = Tokenised(tokeniser.encode(told, add_special_tokens=False), [], [], [])
    for place, message in enumerate(row["completion"]):
        if message["role"] == "assistant":
            opened = _rendered(before, tools, tokeniser, opens=True)
            _add(found, _rest(opened, told, place), tokeniser, 0, 0.0)
            told = _rendered([*before, message], tools, tokeniser, opens=False)
            said, closing = _split(_rest(told, opened, place), tokeniser)
            learned = int(bool(row["trained"][place]))
            _add(found, said, tokeniser, learned, row["advantages"][place] * learned)
            told = told[: len(told) - len(closing)]
        before.append(message)
    return found


def _split(text: str, tokeniser: Tokeniser) -> tuple[str, str]:
    """Return what a model would have said, and what the template puts after its end token."""
    end = tokeniser.eos_token
    if not end or end not in text:
        return text, ""
    at = text.rindex(end) + len(end)
    return text[:at], text[at:]


def _rendered(messages: list[Message], tools: object, tokeniser: Tokeniser, *, opens: bool) -> str:
    return str(
        tokeniser.apply_chat_template(messages, tools=tools, tokenize=False, add_generation_prompt=opens)
    )


def _rest(now: str, told: str, place: int) -> str:
    if not now.startswith(told):
        raise TemplateRewrites(
            f"message {place} of a completion changes how the ones before it are rendered:"
            " use a chat template for training, which leaves them as they are"
        )
    return now[len(told) :]


def _add(found: Tokenised, text: str, tokeniser: Tokeniser, learned: int, advantage: float) -> None:
    tokens = tokeniser.encode(text, add_special_tokens=False) if text else []
    found.completion.extend(tokens)
    found.mask.extend([learned] * len(tokens))
    found.advantages.extend([advantage] * len(tokens))
