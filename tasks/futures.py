"""What mapped judge tasks gave, and why some gave nothing."""

from typing import Any

from prefect.futures import PrefectFutureList

from evalagent.adapters import asking
from evalagent.model import Verdict
from tasks.judge import Asked


def answers_of(
    each: "PrefectFutureList[Any]", many: "PrefectFutureList[Any]", asked: Asked
) -> tuple[tuple[Verdict, ...], dict[str, str]]:
    """Verdicts, and for each question without one (`trace id/step id`) the reason. A judge that fails fails no flow."""
    verdicts: list[Verdict] = []
    failures: dict[str, str] = {}
    for future, question in zip(each, asked.single, strict=True):
        result = future.result(raise_on_failure=False)
        if isinstance(result, Verdict):
            verdicts.append(result)
        else:
            failures[f"{question.trace_id}/{question.step_id}"] = asking.why_not(result)
    for future, chunk in zip(many, asked.chunks, strict=True):
        result = future.result(raise_on_failure=False)
        if isinstance(result, tuple):
            verdicts += result
        else:
            failures |= {f"{q.trace_id}/{q.step_id}": asking.why_not(result) for q in chunk}
    return tuple(verdicts), failures
