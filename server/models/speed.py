"""How fast a local model reads and writes on this machine, measured by one request to its server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import httpx2
from pydantic import BaseModel, ValidationError

from server.models.errors import ServerFailed

__all__ = ["Speed", "measure_speed"]

_PROMPT: Final = "Name one tool, and say in a sentence what it is good for. " + " ".join(
    f"Tool {number} reads file {number} and returns its words." for number in range(20)
)
_ANSWER_TOKENS: Final = 32
_TIMEOUT_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True)
class Speed:
    """Tokens per second, prompt cache left out."""

    prompt: float
    generation: float


class _Timings(BaseModel):
    prompt_per_second: float
    predicted_per_second: float


class _Answer(BaseModel):
    timings: _Timings


async def measure_speed(base_url: str, key: str) -> Speed:
    """Return how fast a llama-server is, at its present load.

    Args:
        base_url: of its OpenAI-compatible API.
        key: with which it answers.

    Raises:
        ServerFailed: it does not answer, or does not say how long it took.
    """
    body = {
        "messages": [{"role": "user", "content": _PROMPT}],
        "max_tokens": _ANSWER_TOKENS,
        "temperature": 0,
        "cache_prompt": False,
    }
    headers = {"Authorization": f"Bearer {key}"}
    try:
        async with httpx2.AsyncClient(timeout=_TIMEOUT_SECONDS, trust_env=False) as client:
            response = await client.post(f"{base_url}/chat/completions", json=body, headers=headers)
            answer = _Answer.model_validate_json(response.raise_for_status().content)
    except (httpx2.HTTPError, ValidationError) as error:
        raise ServerFailed(f"{base_url}: its speed cannot be measured: {error}") from error
    return Speed(answer.timings.prompt_per_second, answer.timings.predicted_per_second)
