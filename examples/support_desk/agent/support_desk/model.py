"""Which model speaks for the desk: Claude where there is a key, else the scripted stand-in."""

import os

from langchain_core.language_models import BaseChatModel

from support_desk.scripted import ScriptedDesk


def choose(case_id: str) -> BaseChatModel:
    """`DESK_MODEL` names another Claude; `DESK_SEED` and `EVALAGENT_TRIAL` fix what the stand-in gets wrong."""
    if os.environ.get("ANTHROPIC_API_KEY"):
        from langchain_anthropic import ChatAnthropic  # seconds to import, so only when it is used

        return ChatAnthropic(model_name=os.environ.get("DESK_MODEL", "claude-haiku-5-5"), max_tokens=1024)
    seed, trial = int(os.environ.get("DESK_SEED", "7")), int(os.environ.get("EVALAGENT_TRIAL", "0"))
    return ScriptedDesk(seed=seed, case_id=case_id, trial=trial)
