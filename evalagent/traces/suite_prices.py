"""A suite's own table of prices, read from its YAML."""

import difflib
import math

from evalagent.errors import UsageError
from evalagent.suites.documents import read_yaml
from evalagent.traces.price_tables import SIDES


def parse_prices(text: str, file: str) -> dict[str, dict[str, float]]:
    """A suite's own table, `model: {input, output, cache_read?, cache_write?}` in US dollars per million tokens;
    UsageError with file, line and key for the first thing in it that is none."""
    document = read_yaml(text, file)
    if not isinstance(document.value, dict):
        raise UsageError("expected model names with their prices", file=file, line=1)
    for model, said in document.value.items():
        if not isinstance(said, dict) or not {"input", "output"} <= said.keys():
            message = "expected `{input: …, output: …}` in dollars per million tokens"
            raise UsageError(message, file=file, line=document.line_of((model,)), key=str(model))
        for side, amount in said.items():
            line, key = document.line_of((model, side)), f"{model}.{side}"
            if side not in SIDES:
                near = difflib.get_close_matches(str(side), SIDES, 1) or SIDES
                message = f"unknown key; did you mean {' or '.join(f'`{name}`' for name in near)}?"
                raise UsageError(message, file=file, line=line, key=key)
            number = isinstance(amount, int | float) and not isinstance(amount, bool)
            if not number or not math.isfinite(amount) or amount < 0:
                message = f"expected dollars per million tokens (got {str(amount)[:60]!r})"
                raise UsageError(message, file=file, line=line, key=key)
    return {str(model): dict(said) for model, said in document.value.items()}
