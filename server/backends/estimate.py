"""How many tokens a text has, where nobody is asked: three bytes a token, which errs to too many."""

from __future__ import annotations

from collections.abc import Iterable

from server.backends.backend import Request, Usage

__all__ = ["estimate_tokens", "estimated_usage"]

_BYTES_PER_TOKEN = 3


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has for a current model."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN)


def estimated_usage(request: Request, texts: Iterable[str], *, prompts: int = 1) -> Usage:
    """Return the usage of answers for which none was reported.

    Args:
        request: what was asked.
        texts: what was answered.
        prompts: how often the prompt was read.
    """
    prompt = sum(estimate_tokens(message.text) for message in request.messages)
    return Usage(
        input_tokens=prompt * prompts,
        output_tokens=sum(estimate_tokens(text) for text in texts),
        is_estimated=True,
    )
