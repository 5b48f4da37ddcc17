"""Room for thought: hosted models count what they think as output, before what they answer."""

from __future__ import annotations

__all__ = ["THINKING_TOKENS", "output_limit"]

THINKING_TOKENS = 4_096


def output_limit(answer_tokens: int) -> int:
    """Return the limit of output that leaves an answer its tokens after some thought."""
    return answer_tokens + THINKING_TOKENS
