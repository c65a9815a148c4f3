"""Public list prices of models, and what a call cost by them.

US dollars per million tokens, standard tier, as published by the vendors up to `AS_OF`. A model that is not here (every
newer one) has no price: its cost is None, never 0, until `prices:` in the suite names it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from evalagent.model import Json, Tokens

AS_OF = "2026-03-21"


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens; a cache price that is None is the input price."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None


def _claude(input_price: float, output_price: float) -> Price:
    return Price(input_price, output_price, input_price * 0.1, input_price * 1.25)


PRICES: Mapping[str, Price] = {
    "claude-3-haiku": Price(0.25, 1.25, 0.03, 0.30),
    "claude-3-opus": _claude(15, 75),
    "claude-3-5-haiku": _claude(0.8, 4),
    "claude-3-5-sonnet": _claude(3, 15),
    "claude-3-7-sonnet": _claude(3, 15),
    "claude-haiku-4-5": _claude(1, 5),
    "claude-sonnet-4": _claude(3, 15),
    "claude-sonnet-4-5": _claude(3, 15),
    "claude-sonnet-4-6": _claude(3, 15),
    "claude-opus-4": _claude(15, 75),
    "claude-opus-4-1": _claude(15, 75),
    "claude-opus-4-5": _claude(5, 25),
    "claude-opus-4-6": _claude(5, 25),
    "gpt-3.5-turbo": Price(0.5, 1.5),
    "gpt-4": Price(30, 60),
    "gpt-4-turbo": Price(10, 30),
    "gpt-4o": Price(2.5, 10, 1.25),
    "gpt-4o-mini": Price(0.15, 0.6, 0.075),
    "gpt-4.1": Price(2, 8, 0.5),
    "gpt-4.1-mini": Price(0.4, 1.6, 0.1),
    "gpt-4.1-nano": Price(0.1, 0.4, 0.025),
    "gpt-5": Price(1.25, 10, 0.125),
    "gpt-5-mini": Price(0.25, 2, 0.025),
    "gpt-5-nano": Price(0.05, 0.4, 0.005),
    "o1": Price(15, 60, 7.5),
    "o3": Price(2, 8, 0.5),
    "o3-mini": Price(1.1, 4.4, 0.55),
    "o4-mini": Price(1.1, 4.4, 0.275),
    "text-embedding-3-small": Price(0.02, 0.0),
    "text-embedding-3-large": Price(0.13, 0.0),
}
_DATE = re.compile(r"([-@]\d{4}-\d{2}-\d{2}|[-@]\d{8}|-latest|-0)$")
_VERSION = re.compile(r"-v\d+(:\d+)?$")
_INCLUSIVE = frozenset({"pydantic_ai", "vercel"})


def price_of(model: str | None, prices: Mapping[str, Json] | None = None) -> Price | None:
    """The price of a model by its name as reported; own `prices` (model -> {input, output, cache_read?, cache_write?}
    in dollars per million tokens) come first."""
    if not model:
        return None
    plain = bare_name(model)
    for name in (model, plain):
        own = (prices or {}).get(name)
        if isinstance(own, Price):
            return own
        if isinstance(own, Mapping):
            sides = [_amount(own.get(key)) for key in ("input", "output", "cache_read", "cache_write")]
            if sides[0] is not None and sides[1] is not None:
                return Price(sides[0], sides[1], sides[2], sides[3])
    return PRICES.get(plain)


def bare_name(model: str) -> str:
    """A model's name without provider, region, date and version."""
    name = model.strip().lower().rpartition("/")[2]
    for part in ("anthropic.", "openai."):
        if part in name:
            name = name.rpartition(part)[2]
    name = _VERSION.sub("", name)
    return _DATE.sub("", name)


def _amount(value: Json) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def cost_of(
    tokens: Tokens | None, model: str | None, dialect: str, prices: Mapping[str, Json] | None = None
) -> float | None:
    """US dollars of one call; None where model, price or tokens are not known.

    Whether reported input tokens include the cached ones differs: they do by the GenAI convention; they do not where
    the cached ones are more than the input, nor for Anthropic's models in all dialects but Pydantic AI and Vercel.
    """
    price = price_of(model, prices)
    if price is None or tokens is None or tokens.input is None or tokens.output is None:
        return None
    read, write = tokens.cache_read or 0, tokens.cache_write or 0
    exclusive = read + write > tokens.input or ("claude" in (model or "").lower() and dialect not in _INCLUSIVE)
    plain = tokens.input if exclusive else tokens.input - read - write
    total = (
        plain * price.input
        + read * (price.input if price.cache_read is None else price.cache_read)
        + write * (price.input if price.cache_write is None else price.cache_write)
        + tokens.output * price.output
    )
    return round(total / 1_000_000, 9)
