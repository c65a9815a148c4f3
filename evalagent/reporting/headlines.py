"""The first screen: does it work, what breaks it most, what to do first."""

from collections.abc import Sequence

from evalagent.records import RunRecord
from evalagent.reporting.advice import SWITCH_ON_FIRST, SWITCH_ON_THE_MODEL
from evalagent.reporting.report import CauseGroup, Headline, NotJudged, Recommendation
from evalagent.reporting.wording import counted, percent, span
from evalagent.statistics.scorecard import Scorecard, Success

_WORDS = {"pass": "PASS", "fail": "FAIL", "not_judged": "NOT JUDGED"}


def headline(
    record: RunRecord,
    card: Scorecard,
    causes: Sequence[CauseGroup],
    to_do: Sequence[Recommendation],
    not_judged: NotJudged,
    reasons: Sequence[str],
) -> Headline:
    """Each answer in one or two sentences, with n and interval."""
    return Headline(
        _WORDS[record.verdict], _works(record, card), _breaks(card, causes), _first(record, to_do, not_judged, reasons)
    )


def selection(success: Success) -> str:
    """What is known where mostly failures were judged: `14 failures found; 76 traces not judged (between 0 % and 84 %
    passed)`."""
    failed = success.n - success.passed
    passed = f", {counted(success.passed, 'trace')} passed" if success.passed else ""
    bounds = f"between {percent(success.worst)} and {percent(success.best)} passed"
    found = counted(failed, "failure") if failed else "no failure"
    return f"{found} found{passed}; {counted(success.not_judged, 'trace')} not judged ({bounds})"


def _works(record: RunRecord, card: Scorecard) -> str:
    success, what = card.success, "run" if card.unit == "trial" else "trace"
    if not card.runs:
        return "It cannot be told: there is no run to judge."
    if not success.n:
        wrong = "nothing was found wrong, but " if record.exit_code == 0 else ""
        return f"It cannot be told: {wrong}{counted(card.runs, what)} could not be judged as a whole."
    if success.selected:
        told = selection(success)
        return f"{told[0].upper()}{told[1:]}. Rules find failures; that a whole trace is right they cannot say."
    judged = counted(success.n, f"judged {what}")
    said = [f"{success.passed} of {judged} passed: {percent(success.rate)} ({span(success.interval)})."]
    last = card.pass_hat_k[-1] if len(card.pass_hat_k) > 1 else None
    if last is not None and last.rate is not None:
        whole = f"{span(last.interval)}, n = {counted(last.cases, 'case')}"
        said.append(f"All {last.k} runs of a case pass for {percent(last.rate)} of the cases ({whole}).")
    if card.intermittent:
        some = counted(len(card.intermittent), "case")
        said.append(f"{some} {'is' if len(card.intermittent) == 1 else 'are'} intermittent.")
    if success.not_judged:
        bounds = f"between {percent(success.worst)} and {percent(success.best)}"
        said.append(f"{counted(success.not_judged, what)} not judged: with them the rate lies {bounds}.")
    return " ".join(said)


def _breaks(card: Scorecard, causes: Sequence[CauseGroup]) -> str:
    failed, what = card.success.n - card.success.passed, "run" if card.unit == "trial" else "trace"
    if causes:
        top = causes[0]
        unsure = f" Ambiguous in {top.ambiguous}: it may have begun elsewhere." if top.ambiguous else ""
        costly = f", {top.costly} of them costly" if top.costly else ""
        also = f" It is also in {len(top.also)} more." if top.also else ""
        place = f" in the {top.where}" if top.where and not top.where.startswith(("the ", "no ", "several ")) else ""
        share = f", {percent(top.rate)} of judged {what}s ({span(top.interval)})" if top.rate is not None else ""
        return (
            f"{top.title}{place}: {len(top.runs)} of {counted(failed, f'failed {what}')}{costly}{share}.{also}{unsure}"
        )
    if card.success.n and not failed:
        return "Nothing that was judged failed."
    return "Nothing is known to have failed, and nothing is known to have worked."


def _first(record: RunRecord, to_do: Sequence[Recommendation], not_judged: NotJudged, reasons: Sequence[str]) -> str:
    if to_do:
        return to_do[0].text
    if record.exit_code in (3, 4) and reasons:
        return f"Make it judgeable: {reasons[0]}."
    if not_judged.advice == SWITCH_ON_THE_MODEL and record.verdict != "pass":
        return SWITCH_ON_FIRST
    if record.verdict == "pass":
        return "Read the passing runs named below once, then keep this run as the baseline of the gate."
    return "State in `expected` what each case should change or answer, so that more can be judged."
