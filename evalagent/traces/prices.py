"""What a model's call cost: its tokens by a price list.

A suite's own prices come first, then the vendors' public lists with their dates (`price_tables`). A model that neither
knows has no price, and its cost is None, never 0.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from evalagent.model import Json, Tokens
from evalagent.traces.price_tables import Price, list_prices, own_price

_ROUTES = re.compile(
    r"^(?:models|publishers|anthropic|openai|openai-responses|responses|azure|azure[-_]ai(?:[-_]foundry)?|azure-openai|"
    r"google|gemini|google[-_](?:gla|vertex|vertexai|genai)|vertex(?:[-_]?ai)?(?:_beta)?|bedrock(?:[-_]converse)?|"
    r"converse|invoke|aws|amazon|openrouter|litellm|litellm_proxy|gateway|github|projects/[^/]+/locations/[^/]+)[/:]"
)
"""Prefixes of routers and clients that lead to the vendor's own model; behind any other may stand another one."""
_ARN = re.compile(r"^arn:aws[a-z-]*:bedrock:[a-z0-9-]*:[0-9]*:(?:foundation-model|inference-profile)/")
_REGION = re.compile(r"^(?:(?:us|eu|apac|jp|au|ca|sa|me|af|us-gov|global)\.)?(?:anthropic|openai)\.")
_ENDINGS = re.compile(
    r"(?:[-@]\d{4}-\d{2}-\d{2}|[-@]20\d{6}|[-@]latest|@default|@\d{3}|:0|\[1m\]|(?<=\d)-v\d(?::\d)?(?::\d{1,4}k)?)$"
)
"""Dates, versions of an API, lengths of its context: what stands behind a model's name and leaves its price alone."""
_SECOND = re.compile(r"(claude-[a-z0-9-]+)-v\d$")
_NUMBERED = re.compile(r"(gemini-[a-z0-9.-]+)-00\d$")
_DOTTED = re.compile(r"(?<=\d)\.(?=\d)")
_ALIASES = {
    "claude-opus-4-0": "claude-opus-4",
    "claude-sonnet-4-0": "claude-sonnet-4",
    "gpt-35-turbo": "gpt-3.5-turbo",
    "gpt-35-turbo-0125": "gpt-3.5-turbo",
    "gpt-3.5-turbo-0125": "gpt-3.5-turbo",
    "gpt-4-0613": "gpt-4",
    "gpt-4-0314": "gpt-4",
}
_NAMES = re.compile(r"claude-(\d(?:-\d)?)-(opus|sonnet|haiku)$")
_LONGEST = 300
_INCLUSIVE = frozenset(
    {"anthropic_sdk", "genai", "langsmith", "mlflow", "openinference", "openllmetry", "pydantic_ai", "vercel"}
)
_FROM_BEDROCK = frozenset({"genai", "openllmetry"})


def price_of(model: str | None, prices: Mapping[str, Json] | None = None) -> Price | None:
    """The price of a model by its name as reported, None if there is none.

    Own `prices` (model -> {input, output, cache_read?, cache_write?} in dollars per million tokens) come first, by any
    form of the name from the whole to the bare; a public price only by a name that is wholly understood.
    """
    if not model or len(model) > _LONGEST:
        return None
    forms = names_of(model)
    if prices:
        for name in (*forms, forms[-1].rpartition("/")[2]):
            if name in prices:
                return own_price(prices[name])
    known = list_prices().prices
    return next((known[name] for name in forms if name in known), None)


@lru_cache(maxsize=4096)
def names_of(model: str) -> tuple[str, ...]:
    """The forms of a model's name, from the one reported to the one without router, provider, region, date, version."""
    name = model.strip().lower()
    forms = [model, name]

    def cut(pattern: re.Pattern[str], by: str) -> None:
        nonlocal name
        for _ in range(6):
            shorter = pattern.sub(by, name, count=1) if pattern.search(name) else name
            if shorter == name or not shorter:
                break
            name = shorter
            forms.append(name)

    for leading in (_ARN, _ROUTES, _REGION):
        cut(leading, "")
    if name.startswith("claude-"):
        cut(_DOTTED, "-")
    cut(_ENDINGS, "")
    cut(_SECOND, r"\1")
    cut(_NUMBERED, r"\1")
    if name in _ALIASES:
        forms.append(_ALIASES[name])
    elif name.startswith("claude-"):
        turned = _NAMES.sub(r"claude-\2-\1", name) if name[7:8] >= "4" else name
        forms.append(turned)
    return tuple(dict.fromkeys(forms))


def _counts_apart(model: str, dialect: str) -> bool:
    if "claude" not in model:
        return False
    return dialect not in _INCLUSIVE or ("anthropic." in model and dialect in _FROM_BEDROCK)


def cost_of(
    tokens: Tokens | None, model: str | None, dialect: str, prices: Mapping[str, Json] | None = None
) -> float | None:
    """US dollars of one call; None where model, price or tokens are not known.

    Whether reported input tokens include the cached ones differs: they do by the GenAI convention; they do not where
    the cached ones are more than the input, nor for Anthropic's models in dialects that hand on what Anthropic counts
    (tried with anthropic 2.14 under OpenInference 3.1, OpenLLMetry 0.62, genai 1.3b0, MLflow 3.17 and LangSmith 0.15:
    included; under Langfuse 5.0, Claude Code, Strands, and Bedrock under OpenLLMetry and genai: not).
    """
    price = price_of(model, prices)
    if price is None or tokens is None or tokens.input is None or tokens.output is None:
        return None
    read, write = tokens.cache_read or 0, tokens.cache_write or 0
    exclusive = read + write > tokens.input or _counts_apart((model or "").lower(), dialect)
    plain = tokens.input if exclusive else tokens.input - read - write
    if price.over is not None and price.over_tokens is not None and plain + read + write > price.over_tokens:
        price = price.over
    total = (
        plain * price.input
        + read * (price.input if price.cache_read is None else price.cache_read)
        + write * (price.input if price.cache_write is None else price.cache_write)
        + tokens.output * price.output
    )
    return round(total / 1_000_000, 9)
