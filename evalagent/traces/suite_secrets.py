"""What a suite's own `secrets:` expressions match, masked in time linear in the text whatever the expressions are."""

import re
from collections.abc import Sequence

import re2

from evalagent.traces.secret_names import is_mark, mark

_ONE_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")
_ENDS = re.compile(r"[\^$]|\\[AzQ]")
"""What a text's beginning and end may matter to; the `^` of `[^…]` is taken for one too."""


class SuiteSecrets:
    """Expressions in RE2's syntax: Perl's without what makes time explode (looking ahead or behind, references to
    groups); `\\d`, `\\w`, `\\s` and `\\b` know ASCII only.

    ValueError for an expression that is none, with the reason.
    """

    def __init__(self, expressions: Sequence[str]) -> None:
        self._compiled = [_compiled(expression) for expression in expressions]
        self.joinable = not any(_ENDS.search(expression) for expression in expressions)
        """Whether texts joined by NUL may be asked about together."""

    def __bool__(self) -> bool:
        return bool(self._compiled)

    def may_be_in(self, text: str) -> bool:
        """Whether any expression matches somewhere in the text."""
        data = text.encode("utf-8", "surrogatepass")
        return any(compiled.search(data) is not None for compiled in self._compiled)

    def masked(self, text: str) -> str:
        """The text with the matches of each expression masked, one expression after the other."""
        data = before = text.encode("utf-8", "surrogatepass")
        for compiled in self._compiled:
            pieces: list[bytes] = []
            done = 0
            for match in compiled.finditer(data):
                start, end = match.span()
                found = data[start:end].decode("utf-8", "surrogatepass")
                if found and not is_mark(found):
                    pieces += [data[done:start], mark(found).encode()]
                    done = end
            if pieces:
                data = b"".join([*pieces, data[done:]])
        return text if data is before else data.decode("utf-8", "surrogatepass")


def _compiled(expression: str) -> "re2._Regexp":
    options = re2.Options()
    options.never_capture = True
    options.log_errors = False
    if _ONE_BYTE.search(expression):
        raise ValueError("`\\C` would match a part of a character")
    try:
        return re2.compile(expression, options)
    except (re2.error, UnicodeEncodeError) as error:
        reason = error.args[0] if error.args else error
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise ValueError(f"{text} (expressions are RE2's)") from error
