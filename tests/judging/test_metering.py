from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from evalagent.errors import BudgetSpent, UsageError
from evalagent.judging.deciding import decide
from evalagent.judging.metering import Meter
from evalagent.judging.prompting import request
from evalagent.judging.replies import Reply, Usage
from evalagent.judging.rubrics import builtin
from tests.judging.small_runs import refund

QUESTION = decide(refund(), (), 0.7).questions[-1]
REQUEST = request(QUESTION, builtin().fitting(QUESTION), "m")


def price(model: str, usage: Usage) -> float | None:
    return None if model == "unknown" else (usage.input + 5 * usage.output) / 1e6


def reply(usage: Usage) -> Reply:
    return Reply((), "end_turn", "m", usage)


def test_calls_tokens_and_cost_add_up() -> None:
    meter = Meter(None, None, price)
    for _ in range(3):
        meter.settle(meter.reserve(REQUEST), REQUEST, reply(Usage(1_000, 100, 50, 5)))
    meter.release(meter.reserve(REQUEST))
    meter.from_cache(REQUEST)
    use = meter.use("anthropic")
    assert (use.calls, use.cached, use.failed, use.models) == (4, 1, 1, ("m",))
    assert (use.input_tokens, use.output_tokens, use.cost_usd) == (3_165, 300, 0.0045)


def test_the_limit_of_calls_holds_under_threads() -> None:
    meter = Meter(50, None, price)

    def one(_: int) -> bool:
        try:
            meter.settle(meter.reserve(REQUEST), REQUEST, reply(Usage(1, 1)))
        except BudgetSpent:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(one, range(400))) == 50


def test_the_limit_of_cost_counts_what_is_under_way() -> None:
    estimate = Meter(None, None, price).reserve(REQUEST)
    meter = Meter(None, estimate * 2.5, price)
    first, _second = meter.reserve(REQUEST), meter.reserve(REQUEST)
    with pytest.raises(BudgetSpent, match="max_cost_usd"):
        meter.reserve(REQUEST)
    meter.release(first)
    meter.reserve(REQUEST)


def test_a_limit_of_cost_without_a_price_is_refused_rather_than_passed_over() -> None:
    with pytest.raises(UsageError, match="price"):
        Meter(None, 1.0, price).reserve(replace(REQUEST, model="unknown"))


def test_one_call_without_a_price_makes_the_sum_unknown() -> None:
    meter = Meter(None, None, price)
    unknown = replace(REQUEST, model="unknown")
    meter.settle(meter.reserve(REQUEST), REQUEST, reply(Usage(1_000, 0)))
    meter.settle(meter.reserve(unknown), unknown, reply(Usage(1_000, 0)))
    assert meter.use("anthropic").cost_usd is None
