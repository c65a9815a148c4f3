"""evalagent-nightly/nightly: a full run, compared with the last good one."""

from typing import Any

from prefect import flow

from flows.full import evalagent
from tasks.compare import compare


@flow(name="evalagent-nightly", flow_run_name="{suite}")
def nightly(suite: str, trials: int | None = None, judge: str = "auto", sandbox: str = "process") -> dict[str, Any]:
    """Run a suite; fail if the agent got worse than in the last run that passed this comparison, else the first run.

    Worse means that the whole interval of the drop, paired by case, lies beyond the suite's `gate.max_drop`.
    """
    numbers = evalagent(suite, trials, judge, sandbox)
    compare(numbers["folder"])
    return numbers
