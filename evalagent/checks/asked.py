"""With which arguments a call was asked for, where its own span does not tell."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from evalagent.model import Json, Step


@dataclass(slots=True)
class Asked:
    """With which arguments each call was asked for.

    A span may hold a lone argument without its name; the request of the model holds it whole.
    """

    steps: Mapping[str, Step]
    requests: dict[str, dict[str, Json]] = field(default_factory=dict)

    def arguments(self, step: Step) -> Json:
        if isinstance(step.arguments, Mapping) or step.call_id is None or step.request_step is None:
            return step.arguments
        known = self.requests.get(step.request_step)
        if known is None:
            asker = self.steps.get(step.request_step)
            said = asker.reply.requests if asker is not None and asker.reply is not None else ()
            known = {r.id: r.arguments for r in said if r.id is not None and not r.truncated}
            self.requests[step.request_step] = known
        wished = known.get(step.call_id)
        return wished if isinstance(wished, Mapping) else step.arguments
