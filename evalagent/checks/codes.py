"""The codes of the checks: what each one means, how heavy it weighs, and whose fault it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from evalagent.model import OwnFault, Severity


@dataclass(frozen=True, slots=True)
class CodeInfo:
    """What is known of a code before any finding carries it."""

    severity: Severity
    """As found; an error that a later step made good is reported as info."""
    meaning: str
    category: str | None
    """Id from the taxonomy."""
    own_fault: OwnFault
    """Whether the fault arose in the step that the finding stands on."""


CODES: Mapping[str, CodeInfo] = MappingProxyType(
    {
        "unknown_tool": CodeInfo("error", "a tool was asked for that nobody declared", "F16", "yes"),
        "argument_schema": CodeInfo("error", "the arguments break the tool's declared schema", "F21", "yes"),
        "id_never_seen": CodeInfo("error", "an id in an argument stood in nothing the agent was given", "F19", "yes"),
        "tool_error": CodeInfo("error", "a call failed, and nothing made it good", "F22", "unknown"),
        "soft_error": CodeInfo(
            "error", "a call came back without error, and its result says that it failed", "F22", "unknown"
        ),
        "model_error": CodeInfo("error", "a call of the model failed, and no later one stood in for it", "F22", "yes"),
        "step_error": CodeInfo(
            "error", "a step of another kind failed, and no later one stood in for it", "F22", "yes"
        ),
        "repeated_failing_call": CodeInfo("error", "a call that had failed was repeated unchanged", "F28", "no"),
        "requested_not_executed": CodeInfo("error", "a call was asked for, and nothing ran it", "F26", "yes"),
        "executed_not_requested": CodeInfo("error", "a call ran that no model asked for", "F26", "yes"),
        "false_success": CodeInfo("error", "the answer claims what a failed call did not do", "F30", "yes"),
        "forbidden_tool": CodeInfo("error", "a tool was used that the case forbids", "F17", "unknown"),
        "missing_tool": CodeInfo("error", "a call that the case expects was never made", "F15", "yes"),
        "over_budget": CodeInfo("error", "a limit of the suite was passed", "F29", "unknown"),
        "empty_answer": CodeInfo("error", "the run ended with nothing said", "F39", "yes"),
        "missing_value": CodeInfo("error", "a value that the answer must state is not in it", "F32", "unknown"),
        "path_mismatch": CodeInfo("error", "the run took another path than the case expects", "F06", "unknown"),
        "unexpected_change": CodeInfo("error", "something changed in the world that should not have", "F27", "unknown"),
        "missing_change": CodeInfo(
            "error", "something that should have changed in the world did not", "F15", "unknown"
        ),
        "needless_tool": CodeInfo("error", "a tool was used where the case needs none", "F17", "yes"),
        "wrong_argument_value": CodeInfo("error", "an expected call was made with another value", "F18", "unknown"),
        "wrong_agent": CodeInfo("error", "the work went to an agent that the case does not foresee", "F34", "yes"),
        "loop": CodeInfo("warning", "the same call with the same result, again and again", "F07", "yes"),
        "ungrounded_value": CodeInfo(
            "warning", "a value that comes from nothing the agent was given", "F31", "unknown"
        ),
    }
)

COMPLETE: Mapping[str, frozenset[str]] = MappingProxyType(
    {"tool": frozenset({"tool_error", "soft_error", "requested_not_executed", "executed_not_requested"})}
)
"""Kinds of step that the checks decide completely, with the codes whose silence is a pass.

Only tool steps: one that ran with its content captured and returned no error did, as a tool step, what it was asked
to do. Whether asking was right is a question to the model's step, whose silence never is a pass."""
