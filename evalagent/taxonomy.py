"""The classes of failure: area, group, leaf. A leaf's id is opaque and never reused, so that a name may be bettered
without any stored verdict changing its meaning.

`docs/taxonomy.md` shows the same table for people; `tests/test_taxonomy.py` holds the two together.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from evalagent.errors import UsageError

VERSION = "1"
OTHER = "F99"


@dataclass(frozen=True, slots=True)
class Leaf:
    """One class of failure."""

    id: str
    area: str
    group: str
    name: str
    definition: str
    example: str
    counter_example: str
    """What looks like it and is not, and where that belongs."""


_TREE: tuple[tuple[str, str, tuple[tuple[str, str, str, str, str], ...]], ...] = (
    (
        "Input handling",
        "Intent",
        (
            (
                "F01",
                "Intent misread",
                "The agent works on another wish than the one the user expressed.",
                "Asked to move a delivery date, it cancels the delivery.",
                "The wish was understood and the plan to meet it was bad: F06.",
            ),
            (
                "F02",
                "Condition overlooked",
                "The wish was understood, but a limit or preference that the user stated was dropped.",
                "The user asked for an aisle seat under 100; any seat is booked.",
                "A rule of the operator, not of the user, was broken: F09.",
            ),
            (
                "F03",
                "Scope misjudged",
                "Something outside the agent's remit was taken on, or something inside it was refused.",
                "It refuses a refund that its instructions allow.",
                "It tried, and the environment refused: F24.",
            ),
        ),
    ),
    (
        "Input handling",
        "Missing parameter",
        (
            (
                "F04",
                "Needed detail not asked for",
                "A value that only the user could give was missing, and the agent went on without it.",
                "It books for two people without having been told how many come.",
                "The value could be looked up with a tool and was not: F15.",
            ),
            (
                "F05",
                "Ambiguity not resolved",
                "What was said fitted several things, and one was taken without asking or checking.",
                "Two orders match; the first is changed.",
                "One thing only matched, and another was taken: F18.",
            ),
        ),
    ),
    (
        "Reasoning and planning",
        "Plan",
        (
            (
                "F06",
                "Unfit plan",
                "The steps chosen cannot reach the goal, or a needed step is not in the plan or in the wrong order.",
                "It pays before it checks that the article exists.",
                "The plan was right and was left: F08.",
            ),
            (
                "F07",
                "Going in circles",
                "Work that gives nothing new is done again.",
                "The same search, six times, with the same result.",
                "One retry after a failure that passes: no failure.",
            ),
            (
                "F08",
                "Plan left",
                "The agent says or plans one thing and does another, or drifts away from the task.",
                "It announces a comparison of three offers and buys the first.",
                "It never had that plan: F06.",
            ),
            (
                "F09",
                "Instruction broken",
                "A rule in the instructions, the policy or the role text was not kept.",
                "It acts without the confirmation that its instructions demand.",
                "The user's own condition was dropped: F02.",
            ),
            (
                "F10",
                "Stopped too early",
                "It ended, gave up or passed the task on while the goal was open and within reach.",
                "One of three items is done, then it says goodbye.",
                "It could not go on because a tool was down: F22.",
            ),
            (
                "F11",
                "Did not stop",
                "It went on after the goal was reached or after nothing more could be reached.",
                "The ticket is closed; it opens and edits it again.",
                "The same call again and again before the goal is reached: F07.",
            ),
        ),
    ),
    (
        "Reasoning and planning",
        "Inference",
        (
            (
                "F12",
                "Faulty inference",
                "From right facts a wrong conclusion, count, comparison or sum.",
                "It calls 79.90 cheaper than 76.50.",
                "The facts themselves were taken wrongly from a result: F20.",
            ),
            (
                "F13",
                "Context lost",
                "Something said or found earlier in the run was forgotten or replaced.",
                "It asks again for the address given two turns before.",
                "Another agent was never told it: F33.",
            ),
        ),
    ),
    (
        "Tool use",
        "Choice of tool",
        (
            (
                "F14",
                "Wrong tool",
                "A tool was called that does something else than the step needed.",
                "`delete_draft` where `archive_draft` was meant.",
                "The name exists nowhere: F16.",
            ),
            (
                "F15",
                "Needed call not made",
                "A lookup or an action that the task needs was never called for.",
                "It says what the balance is without looking it up.",
                "It was called for, and nothing ran it: F26.",
            ),
            (
                "F16",
                "Unknown tool",
                "A tool was called for that was not declared.",
                "`send_fax`, where the agent has `send_mail` only.",
                "A declared tool that does not fit: F14.",
            ),
            (
                "F17",
                "Call not allowed or not needed",
                "A tool was called that the case forbids or that the task had no use for.",
                "A deletion during a question about opening hours.",
                "The call was right and its effect too wide: F27.",
            ),
        ),
    ),
    (
        "Tool use",
        "Arguments",
        (
            (
                "F18",
                "Wrong value",
                "An argument is well formed and known, but not the right one.",
                "The billing address instead of the delivery address.",
                "The value stood nowhere before: F19.",
            ),
            (
                "F19",
                "Invented value",
                "An id, amount or date in an argument comes from nothing the agent was given.",
                "An order number that nobody mentioned.",
                "A value that the agent is to make up, such as an idempotency key: no failure.",
            ),
            (
                "F21",
                "Malformed arguments",
                "The arguments break the declared schema or cannot be read.",
                'The text "two" where an integer is declared.',
                "The trace cut the arguments: a fault of the trace, no failure.",
            ),
        ),
    ),
    (
        "Tool use",
        "Results",
        (
            (
                "F20",
                "Result misread",
                "A result is there and right, and the agent takes something else from it.",
                "It reads the list price as the discounted price.",
                "The result itself was wrong: F23.",
            ),
            (
                "F28",
                "Error ignored",
                "A call failed, and the agent goes on as if it had not, or repeats it unchanged.",
                "Declined, and the very same request again.",
                "The failure is hidden from the user in the answer: F30.",
            ),
        ),
    ),
    (
        "Tool use",
        "Effects",
        (
            (
                "F27",
                "Unwanted effect",
                "A call changed something in the world that the task did not ask to be changed.",
                "Two orders are refunded, one was asked for.",
                "The change was wanted and is missing: F15 or F10.",
            ),
        ),
    ),
    (
        "Execution and environment",
        "Tool and service",
        (
            (
                "F22",
                "Service failed",
                "A tool or service failed for reasons of its own.",
                "HTTP 503 from the stock service.",
                "It refused because the arguments were wrong: F18 or F21 on the step that asked.",
            ),
            (
                "F23",
                "Wrong or empty result",
                "A tool reported success and returned something false, stale or empty.",
                "A search index of last week.",
                "The result was right and was read wrongly: F20.",
            ),
            (
                "F24",
                "Request refused",
                "A tool refused by a rule of its domain, or what was asked for does not exist there.",
                '"Shipped parcels cannot be cancelled."',
                "Refused for lack of rights or quota: F25.",
            ),
        ),
    ),
    (
        "Execution and environment",
        "Runtime",
        (
            (
                "F25",
                "Access or quota",
                "Credentials, rights or a rate limit stood in the way.",
                "HTTP 401, 403 or 429.",
                "The service was down: F22.",
            ),
            (
                "F26",
                "Call lost",
                "What was asked for and what ran differ: never run, run unasked, or its result never came back.",
                "The model asks for a transfer; no code runs it.",
                "The model never asked: F15.",
            ),
            (
                "F29",
                "Limit exceeded",
                "A limit on time, steps, tokens, cost or memory ended the work or was passed.",
                "31 steps where 15 are allowed.",
                "It repeats one call without end within the limits: F07.",
            ),
            (
                "F37",
                "Set-up faulty",
                "The environment or a tool's declaration was wrong before the run began.",
                "The schema declares `days`, the code reads `hours`.",
                "It broke during the run: F22.",
            ),
        ),
    ),
    (
        "Synthesis",
        "Content",
        (
            (
                "F30",
                "False success",
                "The answer says that something was done which was not.",
                '"Your refund is on its way", after a declined refund.',
                "It says openly that it failed: no failure of the answer.",
            ),
            (
                "F31",
                "Ungrounded claim",
                "The answer states a fact that stands in nothing the agent was given.",
                "A tracking number that no tool returned.",
                "It was given and taken wrongly: F20.",
            ),
            (
                "F32",
                "Incomplete answer",
                "Something the user asked for is missing from the answer, although it was found.",
                "The total was asked for and is not named.",
                "It was never found: F15.",
            ),
        ),
    ),
    (
        "Synthesis",
        "Form",
        (
            (
                "F38",
                "Wrong form",
                "The answer breaks the form that was asked for.",
                "Prose where a JSON object was demanded.",
                "No answer at all: F39.",
            ),
            (
                "F39",
                "No answer",
                "The run ends with nothing said.",
                "An empty final message.",
                "It says that it cannot answer: F03 or F10.",
            ),
        ),
    ),
    (
        "Coordination",
        "Delegation",
        (
            (
                "F34",
                "Wrong agent",
                "The work went to an agent that is not the one for it, or along a path that was not foreseen.",
                "A billing question goes to the shipping agent.",
                "The right agent did it badly: the class of what it did.",
            ),
            (
                "F33",
                "Hand-off incomplete",
                "The other agent was not given what it needs.",
                "The researcher is not told the country.",
                "It was told and forgot: F13.",
            ),
        ),
    ),
    (
        "Coordination",
        "Conduct",
        (
            (
                "F35",
                "Other agent ignored",
                "What another agent said or found was not used.",
                "The reviewer's objection is skipped.",
                "A tool's result was not used: F28 or F20.",
            ),
            (
                "F36",
                "Check missing or wrong",
                "A result that had to be verified was not, or was waved through although wrong.",
                "The tester reports success without running a test.",
                "Nobody had to check: the class of the fault itself.",
            ),
            (
                "F40",
                "Role overstepped",
                "An agent did the work of another against its role.",
                "The planner edits the code itself.",
                "A single agent broke a rule of its instructions: F09.",
            ),
        ),
    ),
    (
        "Other",
        "Other",
        (
            (
                OTHER,
                "Other",
                "A failure that fits no other leaf; the share of these says how good the taxonomy is.",
                "A failure of a kind not seen yet.",
                "It fits two leaves: take the one nearer to where it began.",
            ),
        ),
    ),
)

LEAVES: Mapping[str, Leaf] = MappingProxyType(
    {row[0]: Leaf(row[0], area, group, *row[1:]) for area, group, rows in _TREE for row in rows}
)
"""Every leaf by its id, in the order of the table."""

CROSSWALKS: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "MAST": MappingProxyType(
            {
                "Disobey task specification": ("F09", "F02", "F38"),
                "Disobey role specification": ("F40",),
                "Step repetition": ("F07",),
                "Loss of conversation history": ("F13",),
                "Unaware of termination conditions": ("F11",),
                "Conversation reset": ("F13",),
                "Fail to ask for clarification": ("F04", "F05"),
                "Task derailment": ("F08", "F01"),
                "Information withholding": ("F33",),
                "Ignored other agent's input": ("F35",),
                "Reasoning-action mismatch": ("F08",),
                "Premature termination": ("F10", "F39"),
                "No or incomplete verification": ("F36",),
                "Incorrect verification": ("F36",),
            }
        ),
        "TRAIL": MappingProxyType(
            {
                "Language-only": ("F31",),
                "Tool-related": ("F30", "F31", "F19", "F16"),
                "Poor Information Retrieval": ("F15", "F23"),
                "Tool Output Misinterpretation": ("F20",),
                "Incorrect Problem Identification": ("F01", "F12"),
                "Tool Selection Errors": ("F14", "F17"),
                "Formatting Errors": ("F38", "F21"),
                "Instruction Non-compliance": ("F09", "F02"),
                "Tool Definition Issues": ("F37",),
                "Environment Setup Errors": ("F37",),
                "Rate Limiting": ("F25",),
                "Authentication Errors": ("F25",),
                "Service Errors": ("F22",),
                "Resource Not Found": ("F24",),
                "Resource Exhaustion": ("F29",),
                "Timeout Issues": ("F29", "F22"),
                "Context Handling Failures": ("F13",),
                "Resource Abuse": ("F07", "F29"),
                "Goal Deviation": ("F08", "F01"),
                "Task Orchestration": ("F06", "F34", "F33"),
            }
        ),
        "AgentRx": MappingProxyType(
            {
                "Instruction/Plan Adherence Failure": ("F09", "F08"),
                "Invention of New Information": ("F31", "F19"),
                "Invalid Invocation": ("F21", "F16"),
                "Misinterpretation of Tool Output": ("F20", "F12"),
                "Intent-Plan Misalignment": ("F06", "F01", "F14"),
                "Underspecified User Intent": ("F04", "F05"),
                "Intent Not Supported": ("F03",),
                "Guardrails Triggered": ("F25", "F24"),
                "System Failure": ("F22", "F26", "F29"),
                "Inconclusive": (OTHER,),
            }
        ),
    }
)
"""Scheme -> its class by name -> our leaves, the nearest first. By name, since numbers of schemes have been swapped."""


def leaf(category: str) -> Leaf:
    """The leaf with this id; UsageError for an id that the taxonomy does not have."""
    try:
        return LEAVES[category]
    except KeyError:
        raise UsageError(
            f"{category!r} is no class of failure; known are {', '.join(LEAVES)}", key="category"
        ) from None


def theirs(scheme: str, category: str) -> tuple[str, ...]:
    """The classes of another scheme (MAST, TRAIL, AgentRx) that a leaf may be; UsageError for what is unknown."""
    found = leaf(category)
    if scheme not in CROSSWALKS:
        raise UsageError(f"no crosswalk to {scheme!r}; there are {', '.join(CROSSWALKS)}", key="scheme")
    return tuple(name for name, ours in CROSSWALKS[scheme].items() if found.id in ours)
