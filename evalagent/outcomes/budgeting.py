"""Budgets are part of correctness: a trial over one has failed, whatever it answered."""

from evalagent.suites import Budgets

_UNITS = {"steps": " steps", "tokens": " tokens", "cost_usd": " USD", "wall_s": " s of wall time"}


def over_budget(
    budgets: Budgets | None, *, steps: int | None, tokens: int | None, cost_usd: float | None, wall_s: float | None
) -> tuple[str, ...]:
    """A reason for each limit exceeded (spent > limit). What is not known claims nothing: see `unknown_budget`."""
    return tuple(
        f"over budget: {_amount(spent)}{_UNITS[name]}, allowed are {_amount(limit)}"
        for name, limit, spent in _limits(budgets, steps, tokens, cost_usd, wall_s)
        if spent is not None and spent > limit
    )


def unknown_budget(
    budgets: Budgets | None, *, steps: int | None, tokens: int | None, cost_usd: float | None, wall_s: float | None
) -> tuple[str, ...]:
    """A reason for each limit that could not be held against anything, because what was spent is not known."""
    return tuple(
        f"budget not judged: {name} of this run are not known, allowed are {_amount(limit)}"
        for name, limit, spent in _limits(budgets, steps, tokens, cost_usd, wall_s)
        if spent is None
    )


def _limits(
    budgets: Budgets | None, steps: int | None, tokens: int | None, cost_usd: float | None, wall_s: float | None
) -> list[tuple[str, float, float | None]]:
    if budgets is None:
        return []
    spent = {"steps": steps, "tokens": tokens, "cost_usd": cost_usd, "wall_s": wall_s}
    limits = {name: getattr(budgets, name) for name in spent}
    return [(name, limit, spent[name]) for name, limit in limits.items() if limit is not None]


def _amount(value: float) -> str:
    """A number as people write it: 12,000; 0.0825; 61.5."""
    if isinstance(value, int) or float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.6f}".rstrip("0") if abs(value) < 1 else f"{value:,.2f}".rstrip("0")
