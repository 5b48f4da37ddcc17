"""What a completion cost, where the provider's list price is known; the table is `prices.json`."""

from __future__ import annotations

import functools
import re
from importlib import resources

from pydantic import BaseModel, ConfigDict

from server.backends.backend import Usage

__all__ = ["PriceList", "cost_usd", "price_list"]

_DATED = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2})$")
_MILLION = 1_000_000


class _Price(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    input: float
    """Dollars per million tokens, as all of them."""
    output: float
    cached: float
    written: float | None = None
    """Of tokens that are put into a cache; None: as input."""
    up_to_input_tokens: int | None = None
    """A longer prompt has another price, which is not kept."""


class PriceList(BaseModel):
    """Prices by provider and model, with where and when they were read."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    read_on: str
    sources: dict[str, str]
    prices: dict[str, dict[str, _Price]]


@functools.cache
def price_list() -> PriceList:
    """Return the shipped table."""
    text = resources.files("server.backends").joinpath("prices.json").read_text("utf-8")
    return PriceList.model_validate_json(text)


def cost_usd(kind: str, model: str, usage: Usage, written_tokens: int = 0) -> float | None:
    """Return what tokens cost; None where the price of the model, or the count, is not known.

    Args:
        kind: of the provider, as configured.
        model: as the provider names it; a date at its end is no part of its name.
        usage: of the request.
        written_tokens: part of the input that was put into a cache.
    """
    price = price_list().prices.get(kind, {}).get(_DATED.sub("", model))
    if price is None or usage.is_estimated:
        return None
    if price.up_to_input_tokens is not None and usage.input_tokens > price.up_to_input_tokens:
        return None
    plain = max(0, usage.input_tokens - usage.cached_tokens - written_tokens)
    written = price.input if price.written is None else price.written
    dollars = (
        plain * price.input
        + usage.cached_tokens * price.cached
        + written_tokens * written
        + usage.output_tokens * price.output
    )
    return dollars / _MILLION
