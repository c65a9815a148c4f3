"""What to do about a class of failure: one sentence for each leaf of the taxonomy, and for failures without one."""

from collections.abc import Mapping
from types import MappingProxyType

BY_CATEGORY: Mapping[str, str] = MappingProxyType(
    {
        "F01": "Have the agent say the wish back in one sentence before it acts, and add these inputs as cases.",
        "F02": "Put the user's limits into a list that the agent checks off before it acts and before it answers.",
        "F03": "Write down in the instructions what is the agent's to do and what is not, with one example of each.",
        "F04": "Name the values that only the user can give, and tell the agent to ask for each one it lacks.",
        "F05": "When a lookup gives several matches, have the tool return all and the agent ask which one.",
        "F06": "Give the agent the order of steps for this kind of task, or split it so that each part has one plan.",
        "F07": "Stop after two calls with the same result, and hand the agent what is known instead of a third try.",
        "F08": "Keep the plan in the agent's context and have it name, at each step, the item it is working on.",
        "F09": "Move this rule from the prompt into code: let the tool refuse what the rule forbids.",
        "F10": "Have the agent list what is still open before it may end, and give it a way to go on.",
        "F11": "Say in the instructions what done looks like, and end the loop when that is reached.",
        "F12": "Let a tool count, compare and add up; leave the model to choose what to compare.",
        "F13": "Carry the facts that later steps need as fields of the state, not somewhere far back in the messages.",
        "F14": "Rewrite the descriptions of the two tools that were confused so that each says when not to use it.",
        "F15": "Make the needed call a condition of the answer: it is not done until the call succeeded.",
        "F16": "Check the tool list that the model is given; the name it asked for is not in it.",
        "F17": "Take the tool out of reach where it is not allowed, or have it ask for confirmation before it acts.",
        "F18": "Show the model the record it works on next to the call, and let the tool reject what does not fit.",
        "F19": "Let the tool accept only ids that an earlier result contains, and say so in its error.",
        "F20": "Make the result shorter and its fields unmistakable; name units and states in words.",
        "F21": "Tighten the tool's schema (types, enums, required) and return what was wrong for a better retry.",
        "F22": "Find out why the service fails; then retry what passes, and tell the agent plainly what does not.",
        "F23": "Have the tool say that it found nothing, and why, rather than return an empty or wrong result.",
        "F24": "Tell the agent what to do when the request is refused, and have it report the refusal to the user.",
        "F25": "Check keys, rights and quotas of the environment before the run; this is not the model's to mend.",
        "F26": "Look into the loop that runs tools: each call a model asks for must run once and come back.",
        "F27": "Confirm before writing, write narrower (one row, by key), and let the tool refuse more than was asked.",
        "F28": "Return errors in words that say what to change, and have the loop refuse the same call unchanged.",
        "F29": "Read the longest of these runs: cut the steps that give nothing, then see whether the limit is fair.",
        "F30": "Build the answer from the results of the calls: no claim of success without a result that says so.",
        "F31": "Have the answer quote the result it rests on, and drop what no result supports.",
        "F32": "Give the answer a form with a place for each value that must be stated.",
        "F33": "Hand over a filled form (task, facts, what is done, what is open) rather than prose.",
        "F34": "Sharpen the descriptions by which work is given out, and add these inputs as cases for the router.",
        "F35": "Have the receiving agent state what it took from the other one before it goes on.",
        "F36": "Give the checking step the requirement and the result, and make its answer a yes or no with a reason.",
        "F37": "Mend the set-up of the environment (packages, files, settings) before judging the agent again.",
        "F38": "Force the form of the answer by a schema, and validate it before it goes out.",
        "F39": "Find out where the run ends without a text: an exception, a stop reason, or a loop cut short.",
        "F40": "State the limits of the role in the instructions, and test them with inputs that push against them.",
    }
)

STDERR = "The end of stderr stands as `stderr_tail` in `trials/CASE/N/trial.json` of the run folder."

BY_REASON: Mapping[str, str] = MappingProxyType(
    {
        "crashed": f"Mend what the reasons of these runs name: the agent's process ended in its own error. {STDERR}",
        "timeout": "See where the time goes in these runs; give slow calls a limit of their own.",
        "no_answer": BY_CATEGORY["F39"],
        "over_budget": BY_CATEGORY["F29"],
        "unexpected_change": BY_CATEGORY["F27"],
        "missing_change": BY_CATEGORY["F15"],
        "missing_value": BY_CATEGORY["F32"],
        "missing_tool": BY_CATEGORY["F15"],
        "needless_tool": BY_CATEGORY["F17"],
        "forbidden_tool": BY_CATEGORY["F17"],
        "path_mismatch": BY_CATEGORY["F06"],
        "empty_answer": BY_CATEGORY["F39"],
        "loop": BY_CATEGORY["F07"],
        "not_explained": "Compare the changes of the world in these runs with the calls that write: no step of the "
        "trace explains them, so a tool that writes may be missing from it.",
    }
)

BY_ASPECT: Mapping[str, str] = MappingProxyType(
    {
        "understand": BY_CATEGORY["F01"],
        "plan": BY_CATEGORY["F06"],
        "choose_tool": BY_CATEGORY["F14"],
        "fill_arguments": BY_CATEGORY["F18"],
        "read_result": BY_CATEGORY["F20"],
        "delegate": BY_CATEGORY["F34"],
        "answer": BY_CATEGORY["F32"],
    }
)

OTHERWISE = "Read these runs from their reasons on: no class of failure fits them, so add one case for what you find."

SWITCH_ON_FIRST = "Switch on a model for the steps that rules cannot decide: --judge anthropic with ANTHROPIC_API_KEY."

SWITCH_ON_THE_MODEL = (
    "Rules decide what can be decided without a model. For the other steps set ANTHROPIC_API_KEY and run again with "
    "--judge anthropic (or --judge bedrock with AWS credentials); the agent need not run again."
)


def advice(category: str | None, reason: str | None, aspect: str | None) -> str:
    """What to do, by the class of failure, else by the reason of the failed run, else by what the step was doing."""
    return BY_CATEGORY.get(category or "") or BY_REASON.get(reason or "") or BY_ASPECT.get(aspect or "") or OTHERWISE
