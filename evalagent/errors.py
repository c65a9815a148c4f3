"""Every error that EvalAgent raises on purpose.

* EvalAgentError
  x Transient            the world failed; the same call may work later. Tasks retry these and no others
    + StoreBusy          another process holds the store
    + JudgeUnavailable   the model endpoint is overloaded, timed out or unreachable
    + SandboxUnavailable the sandbox could not be started; says nothing of the agent
  x Terminal             trying again cannot help
    + UsageError         a file, key, line or option of the user's is wrong
    + UnreadableInput    nothing at all could be read
    + JudgeRefused       the model endpoint will never answer this request (bad key, bad request, refusal)
    + BudgetSpent        the evaluation's own budget of calls, cost or time is used up

The exit code of the program follows from the class (`exit_code`); 70 is for what is none of these.
"""


class EvalAgentError(Exception):
    """The base; a message says what is wrong and what to do about it."""

    exit_code = 70


class Transient(EvalAgentError):
    """Worth trying again."""

    exit_code = 3


class StoreBusy(Transient):
    """Another process holds the store; the message names it."""


class JudgeUnavailable(Transient):
    """The model endpoint failed in a way that passes: 429, 529, 5xx, timeout, no connection."""


class SandboxUnavailable(Transient):
    """A trial could not be started or its container was lost: not a sample, never a failure of the agent."""


class Terminal(EvalAgentError):
    """Trying again cannot help."""

    exit_code = 3


class UsageError(Terminal):
    """Wrong use: names the file, line and key where there is one, what was expected and the way out."""

    exit_code = 2

    def __init__(self, message: str, *, file: str = "", line: int = 0, key: str = "") -> None:
        self.message, self.file, self.line, self.key = message, file, line, key
        where = file + (f":{line}" if line else "")
        super().__init__(": ".join(part for part in (where, f"`{key}`" if key else "", message) if part))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickled by its parts, since Prefect carries errors between processes."""
        return _usage_error, (self.message, self.file, self.line, self.key)


def _usage_error(message: str, file: str, line: int, key: str) -> UsageError:
    return UsageError(message, file=file, line=line, key=key)


class UnreadableInput(Terminal):
    """Nothing at all could be read from what was given."""

    exit_code = 2


class JudgeRefused(Terminal):
    """The model endpoint will not answer this request however often it is asked."""


class BudgetSpent(Terminal):
    """The evaluation's own budget (calls, cost, time) ran out; what was not judged stays not judged."""

    exit_code = 4
