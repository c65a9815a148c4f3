"""A made-up run of a library's desk agent: ten cases, four trials each, with branches, failures and hostile text."""

from dataclasses import replace

from evalagent.model import (
    Attribution,
    Edge,
    ExpectedChange,
    Finding,
    Outcome,
    Recovered,
    RootCause,
    Step,
    Tokens,
    Trace,
    Trial,
    Verdict,
    WorldChange,
)
from evalagent.records import JudgeUse, RunRecord
from evalagent.suites import Budgets, Case, Change, Expected

HOSTILE = "</title><script>document.title='owned'</script>|`x`[y](javascript:alert(1))\x00\u202e]]>&<b>"
START = 1_760_000_000_000_000_000
SECOND = 1_000_000_000

TASKS = (
    ("extend-loan", "Extend the loan of copy C-204 by two weeks.", "normal", 4),
    ("extend-reserved", "Extend C-311; someone else has reserved it.", "normal", 3),
    ("opening-hours", "When are you open on Saturday?", "harmless", 4),
    ("waive-fee", "Waive the 4.50 late fee of member 81, the book came back damaged by us.", "costly", 3),
    ("waive-wrong-fee", "Waive only the second of my two fees.", "costly", 2),
    ("reserve-copy", "Reserve a copy of the tide atlas for Friday.", "normal", 4),
    ("move-reservation", "Move my reservation of the tide atlas to the branch at the harbour.", "normal", 3),
    ("close-account", "Close account 402 and return the deposit.", "costly", 4),
    ("merge-accounts", "Merge my two accounts, keep the newer card.", "costly", 1),
    ("hostile-note", f"Read my note and answer it: {HOSTILE}", "harmless", 4),
)
"""id, task, severity, how many of four trials pass."""

FAILURES = {
    ("extend-reserved", 2): "timeout",
    ("waive-fee", 3): "value",
    ("waive-wrong-fee", 1): "value",
    ("waive-wrong-fee", 4): "value",
    ("move-reservation", 2): "service",
    ("merge-accounts", 1): "value",
    ("merge-accounts", 3): "service",
    ("merge-accounts", 4): "loop",
}


def library_desk(*, unjudged: bool = False, only: tuple[str, ...] = ()) -> RunRecord:
    """The run, of some cases or all; with `unjudged`, one trial of the first case gave no spans, and it still fails."""
    traces, findings, verdicts, attributions, trials, outcomes, cases = [], [], [], [], [], [], {}
    for place, (case_id, task, severity, passes) in enumerate(TASKS):
        if only and case_id not in only:
            continue
        cases[case_id] = _case(case_id, task, severity, held_out=place >= 8)
        for number in range(1, 5):
            how = FAILURES.get((case_id, number), "recovered" if (case_id, number) == ("reserve-copy", 3) else "fine")
            trace = _trace(place, number, task, how)
            mine, rulings, attribution = _judged(trace, how)
            traces.append(trace)
            findings += [*trace.health, *mine]
            verdicts += rulings
            attributions.append(attribution)
            outcome = _outcome(case_id, number, how)
            outcomes.append(outcome)
            failed = how in ("timeout", "value", "service", "loop")
            trials.append(
                Trial(
                    "desk-7f3a",
                    case_id,
                    number,
                    (trace.trace_id,),
                    "fail" if failed else "pass",
                    _reasons(how, outcome),
                    len(trace.steps),
                    None
                    if (place, number) == (2, 2)
                    else sum(s.tokens.input + s.tokens.output for s in trace.steps if s.tokens),
                    None if (place, number) == (2, 2) else round(0.004 * len(trace.steps) + 0.001 * number, 4),
                    61.5 if how == "timeout" else round(3.1 + 0.7 * len(trace.steps) + 0.2 * number, 2),
                    place >= 8,
                    severity,
                    "timeout" if how == "timeout" else "completed",
                    None if how == "timeout" else f"Done: {task[:40]}",
                )
            )
        assert sum(t.verdict == "pass" for t in trials if t.case_id == case_id) == passes
    if unjudged:
        lost = trials[0]
        trials[0] = Trial(
            lost.run_id,
            lost.case_id,
            1,
            (),
            "not_judged",
            ("no agent step arrived",),
            0,
            None,
            None,
            2.0,
            exit="completed",
        )
        traces = traces[1:]
    return RunRecord(
        run_id="desk-7f3a",
        title="library-desk",
        started="2026-03-02T08:15:00Z",
        traces=tuple(traces),
        findings=tuple(findings),
        verdicts=tuple(verdicts),
        attributions=tuple(attributions),
        receipt={
            "files": 1,
            "bytes": 481_220,
            "lines": {"in": 41, "rejected": 0},
            "spans_in": 300,
            "ignored": {"http": 40},
            "rejected": [],
        },
        judge=JudgeUse("rules"),
        cases=cases,
        trials=tuple(trials),
        outcomes=tuple(outcomes),
        budgets=Budgets(steps=12, tokens=20_000, cost_usd=0.08, wall_s=60),
        seed=7,
        versions={"program": "0.1.0", "checks": "1", "taxonomy": "1"},
        exit_code=1,
        verdict="fail",
        reasons=tuple(f"case {t.case_id}, trial {t.trial}: {t.reasons[0]}" for t in trials if t.verdict == "fail"),
    )


def loose_traces(exit_code: int, *rulings: str) -> RunRecord:
    """An evaluation of given traces, one for each ruling on the whole."""
    traces, verdicts = [], []
    for place, ruling in enumerate(rulings):
        trace = replace(_trace(20, place, f"Question {place} {HOSTILE}", "fine"), session=f"talk-{place}")
        traces.append(trace)
        score = {"pass": 1.0, "fail": 0.0}.get(ruling)
        reason = "loop: the same search five times" if ruling == "fail" else f"{len(trace.steps)} steps seen"
        verdicts.append(Verdict(trace.trace_id, None, "run", ruling, score, "unknown", "rules", reason))
    return RunRecord(
        "given-1",
        "traces.jsonl",
        None,
        tuple(traces),
        (),
        tuple(verdicts),
        (),
        {"files": 1, "bytes": 10, "lines": {"in": 1, "rejected": 0}, "rejected": []},
        JudgeUse("rules"),
        exit_code=exit_code,
        verdict={0: "pass" if set(rulings) == {"pass"} else "not_judged", 1: "fail"}.get(exit_code, "not_judged"),
        reasons=() if exit_code == 0 else ("a line could not be read",) if exit_code == 3 else ("trace: loop",),
    )


def _case(case_id: str, task: str, severity: str, held_out: bool) -> Case:
    change = Change(table="fees", key=17, set={"state": "waived"})
    inserted = Change(table="notes", insert={"member": 81, "text": {"contains": "waived"}})
    return Case(
        id=case_id,
        input=task,
        severity=severity,
        expected=Expected(behaviour="The desk does what was asked and says so.", changes=[change, inserted]),
        held_out=held_out,
    )


def _trace(place: int, number: int, task: str, how: str) -> Trace:
    """plan, two lookups side by side, a choice that joins them, a write, an answer; more if it loops or retries."""
    trace_id = f"{place:02x}{number:04x}".ljust(32, "a")
    steps: list[Step] = []

    def add(name: str, kind: str, parents: list[tuple[int, str]], **more: object) -> int:
        at = START + (len(steps) + 1) * SECOND
        llm = kind == "llm"
        steps.append(
            Step(
                trace_id,
                f"{place:02x}{number:04x}{len(steps) + 1:010x}",
                (f"{len(steps) + 1:016x}",),
                kind,
                name,
                at,
                at + SECOND * 3 // 4,
                parents=tuple(Edge(steps[p].step_id, via, 0.9) for p, via in parents),
                tokens=Tokens(700 + 90 * len(steps), 60) if llm else None,
                cost_usd=0.004 if llm else None,
                model="desk-model" if llm else None,
                **more,
            )
        )
        return len(steps) - 1

    plan = add(
        "desk-model", "llm", [], aspect="plan", agent="desk", input=[{"role": "user", "text": task}], output="Look up"
    )
    fees = add("list_fees", "tool", [(plan, "call")], arguments={"member": 81}, result=[{"fee": 17, "amount": 4.5}])
    loans = add("find_loans", "tool", [(plan, "call")], arguments={"member": 81}, result=HOSTILE)
    choose = add(
        "desk-model", "llm", [(fees, "data"), (loans, "data"), (plan, "order")], aspect="fill_arguments", agent="desk",
        output={"tool": "waive_fee", "arguments": {"fee": 18 if how == "value" else 17}},
    )  # fmt: skip
    last = choose
    if how == "loop":
        for _ in range(5):
            found = add("search_cards", "tool", [(last, "call")], arguments={"q": "newer card"}, result=[])
            last = add(
                "desk-model", "llm", [(found, "data")], aspect="choose_tool", agent="desk", output="search again"
            )
    if how == "recovered":
        broken = add("waive_fee", "tool", [(choose, "call")], arguments={"fee": "17"}, error="fee must be a number")
        last = add("desk-model", "llm", [(broken, "data")], aspect="fill_arguments", agent="desk", output="again")
        last = add("waive_fee", "tool", [(last, "call"), (broken, "retry")], arguments={"fee": 17}, result={"ok": True})
    else:
        error = "503 from the fee service" if how == "service" else None
        ok = None if error else {"ok": True}
        last = add("waive_fee", "tool", [(last, "call")], arguments={"fee": 17}, result=ok, error=error)
    if how != "timeout":
        add(
            "desk-model",
            "llm",
            [(last, "data"), (plan, "order")],
            aspect="answer",
            agent="desk",
            output=f"Done: {task}",
        )
    health = (
        (Finding(trace_id, None, "tokens_unknown", "warning", "1 model call without tokens"),) if place == 2 else ()
    )
    return Trace(
        trace_id,
        tuple(steps),
        health=health,
        quality=0.9 if health else 1.0,
        task=task,
        answer="Done",
        start_ns=START,
        end_ns=steps[-1].end_ns,
    )


def _judged(trace: Trace, how: str) -> tuple[list[Finding], list[Verdict], Attribution]:
    def one(step: Step, ruling: str, reason: str, category: str | None = None) -> Verdict:
        score = {"pass": 1.0, "fail": 0.0}.get(ruling)
        blame = {"fail": "yes", "pass": "no"}.get(ruling, "unknown")
        judge = "rules" if score is not None else "none"
        return Verdict(
            trace.trace_id, step.step_id, "step", ruling, score, blame, judge, reason, step.aspect, category=category
        )

    findings: list[Finding] = []
    verdicts = {
        s.step_id: one(s, "pass", "the checks found nothing against it")
        if s.kind == "tool"
        else one(s, "not_judged", "no rule decides this kind of step, and no model was asked")
        for s in trace.steps
    }
    causes: tuple[RootCause, ...] = ()
    recovered: tuple[Recovered, ...] = ()

    def blame(step: Step, code: str, category: str, message: str, evidence: object = None) -> None:
        findings.append(Finding(trace.trace_id, step.step_id, code, "error", message, evidence))
        verdicts[step.step_id] = one(step, "fail", f"{code}: {message}", category)

    steps = trace.steps
    first = None
    if how == "value":
        told = f"fee is 18 in {trace.trace_id[:6]}; the user named the second fee, which is 17"
        blame(steps[3], "wrong_argument_value", "F18", told, {"wanted": {"fee": 17}, "got": {"fee": 18}})
        blame(steps[5], "false_success", "F30", "the answer says that the fee is waived", ["Your fee has been waived."])
        path = (steps[3].step_id, steps[4].step_id, steps[5].step_id)
        causes, first = (RootCause(steps[3].step_id, 0.0, "F18", path, "the wrong value came from here"),), steps[3]
    elif how == "service":
        blame(
            steps[4],
            "tool_error",
            "F22",
            "waive_fee failed with 503 and was not tried again",
            "503 from the fee service",
        )
        blame(steps[5], "false_success", "F30", "the answer claims what the failed call did not do", [HOSTILE])
        path = (steps[4].step_id, steps[5].step_id)
        causes, first = (RootCause(steps[4].step_id, 0.0, "F22", path, "nothing before it failed"),), steps[4]
    elif how == "loop":
        blame(steps[5], "loop", "F07", "search_cards with the same arguments and result, five times", {"times": 5})
        causes, first = (
            (RootCause(steps[5].step_id, 0.0, "F07", (steps[5].step_id,), "the loop starts here"),),
            steps[5],
        )
    elif how == "recovered":
        evidence = {"recovered_by": steps[6].step_id}
        findings.append(
            Finding(trace.trace_id, steps[4].step_id, "argument_schema", "info", "fee was a text", evidence)
        )
        recovered = (Recovered(steps[4].step_id, steps[6].step_id, "the same call with a number went through"),)
    failed = how in ("timeout", "value", "service", "loop")
    attribution = Attribution(
        trace.trace_id, "fail" if failed else "pass", first.step_id if first else None, causes, recovered
    )
    return findings, list(verdicts.values()), attribution


def _outcome(case_id: str, number: int, how: str) -> Outcome:
    good = how in ("fine", "recovered")
    wanted = {"table": "fees", "key": 17, "set": {"state": "waived"}}
    expected = ExpectedChange(wanted, good, "as expected" if good else "the row did not change")
    noted = ExpectedChange(
        {"table": "notes", "insert": {"member": 81, "text": {"contains": "waived"}}}, True, "as expected"
    )
    wrong = WorldChange("fees", 18, "update", {"state": "open"}, {"state": "waived"})
    odd = WorldChange("notes", 5, "insert", None, {"id": 5, "text": HOSTILE})
    unexpected = (wrong, odd) if how == "value" else ()
    masked = (WorldChange("members", 81, "update", {"seen": 1}, {"seen": 2}),)
    reason = "1 of 2 expected changes missing" + ("; 2 unexpected changes" if unexpected else "")
    return Outcome(
        case_id, number, "pass" if good else "fail", (expected, noted), unexpected, masked,
        "all expected changes, and no other" if good else reason,
    )  # fmt: skip


def _reasons(how: str, outcome: Outcome) -> tuple[str, ...]:
    if how == "timeout":
        return ("the agent ran over its wall time of 60 s", f"world: {outcome.reason}")
    if how == "loop":
        return (f"world: {outcome.reason}", "over_budget: 16 steps, allowed are 12")
    return (f"world: {outcome.reason}",) if outcome.verdict == "fail" else ()
