"""Tables of prices: the vendors' public lists, which come with the program, and one entry of a suite's own.

`list_prices.json` holds the lists: by vendor the page they are from, the date when they were last seen there, and for
each model US dollars per million tokens, standard tier, of the vendor's own API. `over` holds the prices of a call
whose prompt has more than so many tokens, for all of its tokens. A cache write is priced as one for five minutes. A
model that is null there is known to cost something else than its name suggests, and nobody checked what.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import orjson

from evalagent.model import Json

SIDES = ("input", "output", "cache_read", "cache_write")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens; a cache price that is None is the input price."""

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    over_tokens: int | None = None
    over: "Price | None" = None
    """The prices of a call whose prompt has more than `over_tokens` tokens, cached ones included."""


@dataclass(frozen=True, slots=True)
class ListPrices:
    """The vendors' lists. `as_of`: the latest date (YYYY-MM-DD) of any of them; `dates`: that of each model."""

    prices: Mapping[str, Price | None]
    dates: Mapping[str, str]
    as_of: str


@cache
def list_prices() -> ListPrices:
    """The lists that come with the program."""
    told = orjson.loads((files("evalagent.traces") / "list_prices.json").read_bytes())
    prices: dict[str, Price | None] = {}
    dates: dict[str, str] = {}
    for one in told["lists"]:
        for model, said in one["models"].items():
            prices[model] = _price(said) if said else None
            dates[model] = one["as_of"]
    return ListPrices(prices, dates, max(dates.values()))


def own_price(said: Json) -> Price | None:
    """The price in one entry of a suite's table."""
    return _price(said) if isinstance(said, Mapping) and {"input", "output"} <= said.keys() else None


def _price(said: Mapping[str, Json]) -> Price:
    over = said.get("over")
    return Price(
        said["input"],
        said["output"],
        said.get("cache_read"),
        said.get("cache_write"),
        over["tokens"] if over else None,
        _price(over) if over else None,
    )
