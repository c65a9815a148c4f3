"""What judging costs, and where it has to stop."""

import threading
from collections.abc import Callable

from evalagent.errors import BudgetSpent, UsageError
from evalagent.judging.prompting import JudgeRequest
from evalagent.judging.replies import Reply, Usage
from evalagent.records import JudgeUse

Price = Callable[[str, Usage], float | None]
"""(model, tokens) -> US dollars; None for a model without a known price."""

_CHARACTERS_A_TOKEN = 3.0
_USUAL_OUTPUT = 1_200
"""Tokens assumed for a call under way: a verdict with some thinking before it."""


class Meter:
    """Counts calls, tokens and cost of one run, from any number of threads, and stops it at its limits.

    A call under way is held against the cost limit with an estimate, so that calls made at once cannot all slip
    under it; the limit can be passed by no more than what the estimates were too low by.
    """

    def __init__(self, max_calls: int | None, max_cost_usd: float | None, price: Price) -> None:
        self._max_calls, self._max_cost, self._price = max_calls, max_cost_usd, price
        self._lock = threading.Lock()
        self._calls = self._cached = self._failed = 0
        self._tokens = Usage()
        self._cost: float | None = 0.0
        self._under_way = 0.0
        self._models: dict[str, None] = {}

    def reserve(self, request: JudgeRequest) -> float:
        """To be called before each call to a model; the result goes to `settle` or `release`. BudgetSpent when the
        limit is reached, UsageError where a cost limit is set and the model's price is not known."""
        characters = sum(map(len, request.system)) + len(request.user)
        estimate = self._price(request.model, Usage(int(characters / _CHARACTERS_A_TOKEN), _USUAL_OUTPUT))
        if self._max_cost is not None and estimate is None:
            raise UsageError(
                f"the price of {request.model} is not known, so the limit cannot be kept: add it to the suite's"
                " `prices:`, or limit the calls with `max_calls`",
                key="judge.max_cost_usd",
            )
        with self._lock:
            if self._max_calls is not None and self._calls >= self._max_calls:
                raise BudgetSpent(f"the judge's limit of {self._max_calls} calls is reached; raise `judge.max_calls`")
            if (
                self._max_cost is not None
                and (self._cost or 0.0) + self._under_way + (estimate or 0.0) > self._max_cost
            ):
                raise BudgetSpent(
                    f"the judge has spent {self._cost or 0.0:.4f} of {self._max_cost:g} USD and the next call would"
                    " pass the limit; raise `judge.max_cost_usd`"
                )
            self._calls += 1
            self._models.setdefault(request.model)
            self._under_way += estimate or 0.0
        return estimate or 0.0

    def settle(self, reserved: float, request: JudgeRequest, reply: Reply) -> None:
        """The call came back: what it really took."""
        used = reply.usage
        cost = self._price(request.model, used)
        with self._lock:
            self._under_way -= reserved
            old = self._tokens
            self._tokens = Usage(
                old.input + used.input,
                old.output + used.output,
                old.cache_read + used.cache_read,
                old.cache_write + used.cache_write,
            )
            self._cost = None if self._cost is None or cost is None else self._cost + cost

    def release(self, reserved: float) -> None:
        """The call failed; what it cost is not known, and failed calls are not billed."""
        with self._lock:
            self._under_way -= reserved
            self._failed += 1

    def from_cache(self, request: JudgeRequest) -> None:
        """An answer was there already."""
        with self._lock:
            self._cached += 1
            self._models.setdefault(request.model)

    def use(self, name: str) -> JudgeUse:
        """The sums so far. Input tokens hold those read from and written to the prompt cache."""
        with self._lock:
            tokens = self._tokens
            return JudgeUse(
                name=name,
                models=tuple(sorted(self._models)),
                calls=self._calls,
                cached=self._cached,
                failed=self._failed,
                input_tokens=tokens.input + tokens.cache_read + tokens.cache_write,
                output_tokens=tokens.output,
                cost_usd=None if self._cost is None else round(self._cost, 9),
            )
