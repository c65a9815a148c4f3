"""What an agent's environment must say for its spans to come, and which libraries it will import."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.resources import OTELResourceDetector

from evalagent.authoring.instrumenting import environment, imported, needs_hook
from evalagent.errors import UsageError
from evalagent.suites import Agent


def of(**agent: object) -> Agent:
    return Agent.model_validate({"source": "agent", "command": ["python", "-m", "desk"], **agent})


def ready(agent: Agent, **more: object) -> dict[str, str]:
    given = {"endpoint": "http://127.0.0.1:4318", "resource": {"evalagent.run": "r"}, "case_id": "c", "trial": 1}
    return environment(agent, **{**given, "attempt": "a", **more})  # type: ignore[arg-type]


def test_the_hook_is_told_what_to_switch_on_and_what_to_wrap() -> None:
    settings = ready(of(instrument="openllmetry", tools=["desk.tools:*", "desk.more:pay"]))
    assert settings["EVALAGENT_HOOK_INSTRUMENT"] == "openllmetry"
    assert settings["EVALAGENT_HOOK_TOOLS"] == "desk.tools:*,desk.more:pay"
    assert settings["EVALAGENT_TRIAL"] == "1"


def test_an_agent_that_exports_by_itself_gets_no_hook_unless_it_names_tools() -> None:
    assert not needs_hook(of(instrument="none"))
    assert not any(name.startswith("EVALAGENT_HOOK") for name in ready(of(instrument="none")))
    assert needs_hook(of(instrument="none", tools=["desk.tools:*"]))


@pytest.mark.parametrize("tool", ["desk.tools", "desk.tools:", ":pay", "desk tools:pay", "a:b,c:d", "desk:pay\nX=1"])
def test_a_tool_that_is_no_module_and_function_is_refused(tool: str) -> None:
    with pytest.raises(UsageError, match="module:function"):
        ready(of(tools=[tool]))


@given(st.dictionaries(st.from_regex(r"[a-z.]{1,12}", fullmatch=True), st.text(), max_size=4), st.text(min_size=1))
def test_opentelemetry_reads_back_the_resource_whatever_it_holds(resource: dict[str, str], attempt: str) -> None:
    texts = {name: value.encode("utf-8", "replace").decode() for name, value in resource.items()}
    attempt = attempt.encode("utf-8", "replace").decode()
    settings = ready(of(), resource=texts, attempt=attempt)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_RESOURCE_ATTRIBUTES", settings["OTEL_RESOURCE_ATTRIBUTES"])
        patch.delenv("OTEL_SERVICE_NAME", raising=False)
        read = OTELResourceDetector().detect().attributes
    marks = {"evalagent.case": "c", "evalagent.trial": "1", "evalagent.attempt": attempt}
    assert dict(read) == {**texts, **marks}


def test_imports_are_followed_from_the_entry_through_the_agents_own_modules() -> None:
    sources = {
        "desk": "from desk.graph import build",
        "desk.__main__": "import json\nfrom desk import model\nfrom . import tools as t\n",
        "desk.graph": "import langgraph.graph\nfrom langchain_core.tools import tool\nfrom .deep import one",
        "desk.model": "try:\n    import fast\nexcept ImportError:\n    import slow\ndef late():\n    import heavy\n",
        "desk.tools": "from __future__ import annotations\nimport sqlite3, requests\nif True:\n    import maybe\n",
        "desk.deep": "from ..outside import x\nwith open('x') as f:\n    import inner",
        "desk.tests.test_desk": "import pytest",
        "broken": "import ok\n def",
    }
    assert imported(("desk", "desk.__main__"), sources) == (
        "langgraph.graph",
        "langchain_core.tools",
        "fast",
        "requests",
        "inner",
    )
    assert imported(("broken",), sources) == ()
    assert imported(("absent.module",), sources) == ("absent.module",)


def test_modules_that_import_each_other_end() -> None:
    sources = {"a": "import b, third", "b": "from a import x\nimport a"}
    assert imported(("a",), sources) == ("third",)
