"""The hook in real agents: what they are seen doing, and that it never gets into their way."""

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from evalagent.adapters import process_sandbox
from evalagent.adapters.receiver import Receiver
from evalagent.model import Span, TrialRun
from evalagent.suites import Agent, Budgets, Case
from evalagent.traces.reading import read

Observe = Callable[..., tuple[TrialRun, list[Span]]]

TOOLS = '''
import asyncio

def add(a: int, b: int = 2, *, note: str = "") -> int:
    """Add two numbers."""
    return _add(a, b)

def _add(a, b):
    return a + b

def fail(why):
    raise KeyError(why)

async def later(x):
    await asyncio.sleep(0)
    return {"x": x}

def count(n):
    for i in range(n):
        got = yield i
        if got:
            yield got
    return "done"

async def stream(n):
    for i in range(n):
        yield i

def odd():
    return {1: {2}, "self": object}

def outer(n):
    return add(n, n)
'''


@pytest.fixture(params=["cold", "warm"])
def warmth(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("EVALAGENT_WARM", "1" if request.param == "warm" else "0")
    yield request.param
    process_sandbox.close()


@pytest.fixture
def observe(tmp_path: Path) -> Iterator[Observe]:
    """Run an agent and give back what it exported below the span of its process, in the order of time."""

    def observe(
        program: str, *, wall_s: float = 30.0, environ: dict[str, str] | None = None, **agent: object
    ) -> tuple[TrialRun, list[Span]]:
        source = tmp_path / "agent"
        (source / "shop").mkdir(parents=True, exist_ok=True)
        (source / "shop" / "__init__.py").write_text("")
        (source / "shop" / "tools.py").write_text(TOOLS)
        (source / "desk.py").write_text(program)
        (tmp_path / "work").mkdir(exist_ok=True)
        otlp = Path(tempfile.mkdtemp(dir=tmp_path))
        with Receiver(otlp) as receiver:
            ran = process_sandbox.run_trial(
                Agent.model_validate({"source": "agent", "command": ["python", "desk.py"], **agent}),
                Case(id="case-1", input="hello"),
                2,
                suite_dir=tmp_path,
                work_dir=tmp_path / "work",
                endpoint=receiver.endpoint,
                resource={"evalagent.run": "run, 1=é", "service.name": "shop desk"},
                budgets=Budgets(wall_s=wall_s),
                env={"PATH": os.environ["PATH"], **(environ or {})},
                attempt=f"attempt-{tmp_path.name}",
            )
        lines = otlp / "traces.jsonl"
        spans = read(lines.read_bytes(), "traces.jsonl").spans if lines.exists() else ()
        if not spans:
            return ran, []
        (root,) = [span for span in spans if span.parent_id is None]
        assert root.attributes["gen_ai.operation.name"] == "invoke_workflow"
        assert {span.trace_id for span in spans} == {root.trace_id}
        assert root.status == ("error" if ran.exit == "timeout" else "unset")
        below = [replace(span, parent_id=None if span.parent_id == root.span_id else span.parent_id) for span in spans]
        return ran, sorted(
            (span for span in below if span.span_id != root.span_id), key=lambda span: (span.start_ns, span.span_id)
        )

    yield observe
    process_sandbox.close()


def told(span: Span, name: str) -> object:
    return json.loads(span.attributes[f"gen_ai.tool.call.{name}"])


def test_named_functions_become_tool_spans(observe: Observe, warmth: str) -> None:
    program = """
import asyncio
from shop.tools import *
add(1, note="n"); add(a=1, b=5)
asyncio.run(later([1]))
print(list(count(3)))
async def all(): return [i async for i in stream(2)]
print(asyncio.run(all()))
odd()
"""
    ran, spans = observe(program, tools=["shop.tools:*"])
    assert (ran.exit, ran.stderr_tail, ran.reply) == ("completed", "", "[0, 1, 2]\n[0, 1]")
    seen = [(span.attributes["gen_ai.tool.name"], told(span, "arguments"), told(span, "result")) for span in spans]
    assert seen[:5] == [
        ("add", {"a": 1, "note": "n"}, 3),
        ("add", {"a": 1, "b": 5}, 6),
        ("later", {"x": [1]}, {"x": [1]}),
        ("count", {"n": 3}, [0, 1, 2]),
        ("stream", {"n": 2}, [0, 1]),
    ]
    assert seen[5][0] == "odd"
    assert {span.name for span in spans[:2]} == {"execute_tool add"}
    assert {span.attributes["gen_ai.operation.name"] for span in spans} == {"execute_tool"}
    assert spans[0].attributes["gen_ai.tool.description"] == "Add two numbers."
    assert all(span.status != "error" and (span.end_ns or 0) >= span.start_ns for span in spans)


def test_spans_carry_the_marks_of_their_trial(observe: Observe, warmth: str, tmp_path: Path) -> None:
    _, (span,) = observe("from shop.tools import add; add(1)", tools=["shop.tools:add"])
    marks = {name: value for name, value in span.resource.items() if name.startswith(("evalagent.", "service.name"))}
    assert marks == {
        "evalagent.run": "run, 1=é",
        "evalagent.case": "case-1",
        "evalagent.trial": "2",
        "evalagent.attempt": f"attempt-{tmp_path.name}",
        "service.name": "shop desk",
    }


def test_what_a_tool_raises_is_its_error_and_reaches_the_agent(observe: Observe, warmth: str) -> None:
    program = (
        "from shop.tools import fail\ntry:\n    fail('no such parcel')\nexcept KeyError as e:\n    print('caught', e)"
    )
    ran, (span,) = observe(program, tools=["shop.tools:fail"])
    assert ran.reply == "caught 'no such parcel'"
    assert (span.status, span.attributes["error.type"]) == ("error", "KeyError")
    assert "no such parcel" in span.status_message
    assert [event.name for event in span.events] == ["exception"]
    assert "gen_ai.tool.call.result" not in span.attributes


def test_frameworks_find_wrapped_functions_as_they_were(observe: Observe) -> None:
    program = """
import inspect, typing
from shop import tools
print(inspect.signature(tools.add), tools.add.__name__, tools.add.__doc__, typing.get_type_hints(tools.add)["a"])
print(inspect.iscoroutinefunction(tools.later), inspect.isgeneratorfunction(tools.count))
print(inspect.isasyncgenfunction(tools.stream))
g = tools.count(2); next(g); print(g.send("sent"), next(g), next(g, "end")); g = tools.count(9); next(g); g.close()
print(hasattr(tools._add, "__wrapped__"))
"""
    ran, _ = observe(program, tools=["shop.tools:*"])
    assert ran.stderr_tail == ""
    assert (ran.reply or "").splitlines() == [
        "(a: int, b: int = 2, *, note: str = '') -> int add Add two numbers. <class 'int'>",
        "True True",
        "True",
        "sent 1 end",
        "False",
    ]


def test_a_generators_span_is_current_in_it_and_not_in_its_caller(observe: Observe) -> None:
    program = "from shop.tools import count, add\nfor i in count(2):\n    add(i)"
    _, spans = observe(program, tools=["shop.tools:*"])
    assert [(span.attributes["gen_ai.tool.name"], span.parent_id) for span in spans] == [
        ("count", None),
        ("add", None),
        ("add", None),
    ]


def test_a_tool_that_calls_a_tool_is_its_parent(observe: Observe) -> None:
    _, (outer, inner) = observe("from shop.tools import outer; outer(3)", tools=["shop.tools:*"])
    assert inner.parent_id == outer.span_id


def test_threads_and_executors_keep_the_span_that_started_them(observe: Observe, warmth: str) -> None:
    program = """
import threading
from concurrent.futures import ThreadPoolExecutor
from opentelemetry import trace
from shop.tools import add
tracer = trace.get_tracer("desk")
with ThreadPoolExecutor(1) as pool:
    for name in "one", "two":
        with tracer.start_as_current_span(name):
            pool.submit(add, 1).result()
    pool.submit(add, 2).result()
with tracer.start_as_current_span("three"):
    thread = threading.Thread(target=add, args=(3,)); thread.start(); thread.join()
"""
    _, spans = observe(program, tools=["shop.tools:add"])
    names = {span.span_id: span.name for span in spans}
    parents = [names.get(span.parent_id or "") for span in spans if span.name == "execute_tool add"]
    assert parents == ["one", "two", None, "three"]


def test_an_agent_that_hangs_is_seen_hanging(observe: Observe, warmth: str) -> None:
    program = """
import time
from opentelemetry import trace
from shop.tools import add
with trace.get_tracer("desk").start_as_current_span("whole"):
    add(1)
    with trace.get_tracer("desk").start_as_current_span("waiting"):
        time.sleep(60)
"""
    ran, spans = observe(program, tools=["shop.tools:add"], wall_s=3.0)
    assert ran.exit == "timeout"
    assert [(span.name, span.status) for span in spans] == [
        ("whole", "error"),
        ("execute_tool add", "unset"),
        ("waiting", "error"),
    ]
    assert all("SIGTERM" in span.status_message for span in spans if span.status == "error")


def test_a_crash_does_not_lose_the_spans_before_it(observe: Observe, warmth: str) -> None:
    ran, spans = observe("from shop.tools import add, fail; add(1); fail('x')", tools=["shop.tools:*"])
    assert ran.exit == "crashed" and "KeyError" in ran.stderr_tail
    assert [span.name for span in spans] == ["execute_tool add", "execute_tool fail"]


def test_one_span_that_cannot_be_encoded_does_not_cost_the_others(observe: Observe) -> None:
    program = """
from opentelemetry import trace
from shop.tools import add
tracer = trace.get_tracer("desk")
with tracer.start_as_current_span("odd", attributes={"text": "lone \\ud800 half"}): add(1)
with tracer.start_as_current_span("even"): pass
"""
    ran, spans = observe(program, tools=["shop.tools:add"])
    assert ran.stderr_tail == ""
    assert [span.attributes.get("text") for span in spans if span.name == "odd"] == ["lone \\ud800 half"]
    assert sorted(span.name for span in spans) == ["even", "execute_tool add", "odd"]


OWN = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
mine = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(mine))
EXTRA
trace.set_tracer_provider(provider)
with trace.get_tracer("desk").start_as_current_span("mine"): pass
print([span.name for span in mine.get_finished_spans()], trace.get_tracer_provider() is provider)
"""
OTLP = """
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
"""


@pytest.mark.parametrize("extra", ["", OTLP], ids=["exports elsewhere", "exports by OTLP itself"])
def test_an_agents_own_provider_stays_its_own_and_is_seen_once(observe: Observe, warmth: str, extra: str) -> None:
    ran, spans = observe(OWN.replace("EXTRA", extra), instrument="auto")
    assert (ran.reply, ran.stderr_tail) == ("['mine'] True", "")
    assert [span.name for span in spans] == ["mine"]


def test_a_python_program_that_the_agent_starts_is_part_of_its_trace(observe: Observe, warmth: str) -> None:
    program = """
import subprocess, sys
from shop.tools import add
add(1)
subprocess.run([sys.executable, "-c", "from shop.tools import add; add(2)"], check=True)
"""
    ran, spans = observe(program, tools=["shop.tools:add"])
    assert ran.stderr_tail == ""
    assert [told(span, "arguments") for span in spans] == [{"a": 1}, {"a": 2}]


def test_a_forked_worker_does_not_end_the_spans_of_its_parent(observe: Observe, warmth: str) -> None:
    program = """
import os, sys
from shop.tools import add
add(1)
if (child := os.fork()) == 0:
    add(2)
    sys.exit()
os.waitpid(child, 0)
add(3)
"""
    ran, spans = observe(program, tools=["shop.tools:add"])
    assert ran.stderr_tail == ""
    assert [told(span, "arguments") for span in spans] == [{"a": 1}, {"a": 2}, {"a": 3}]


def test_an_agent_that_was_not_seen_doing_anything_gives_no_spans(observe: Observe, warmth: str) -> None:
    assert observe("import shop.tools", tools=["shop.tools:*"])[1] == []


@pytest.mark.parametrize(
    "first",
    [
        "opentelemetry.sdk.trace",
        "opentelemetry.sdk.trace.export",
        "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    ],
)
def test_the_sdk_starts_whatever_part_of_it_is_imported_first(observe: Observe, first: str) -> None:
    program = (
        f"import {first}\nfrom opentelemetry import trace\nwith trace.get_tracer('a').start_as_current_span('b'): pass"
    )
    ran, spans = observe(program)
    assert (ran.stderr_tail, [span.name for span in spans]) == ("", ["b"])


def test_nothing_is_started_for_an_agent_that_uses_nothing_of_interest(observe: Observe, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("EVALAGENT_WARM", "0")
    program = (
        "import sys; print([m for m in sys.modules if m.startswith(('opentelemetry', 'openinference', 'evalagent'))])"
    )
    ran, spans = observe(program, tools=["shop.tools:*"])
    assert (ran.reply, spans) == ("['evalagent_hook']", [])


def test_a_sitecustomize_that_was_there_still_runs(observe: Observe, tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("EVALAGENT_WARM", "0")
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import builtins; builtins.GREETING = 'was here'")
    given = {"environ": {"PYTHONPATH": str(tmp_path / "site")}, "env": ["PYTHONPATH"], "tools": ["shop.tools:add"]}
    program = "from shop.tools import add; add(1); print(GREETING)"
    ran, spans = observe(program, **given)
    assert (ran.reply, len(spans)) == ("was here", 1)
    (tmp_path / "site" / "sitecustomize.py").write_text("1 / 0")
    ran, spans = observe(program.replace("GREETING", "'on'"), **given)
    assert (ran.reply, len(spans)) == ("on", 1)
    assert ran.stderr_tail.count("\n") == 1 and "ZeroDivisionError" in ran.stderr_tail


def test_what_the_hook_cannot_do_is_one_line_on_stderr(observe: Observe, warmth: str) -> None:
    ran, spans = observe(
        "from shop.tools import add; print(add(1))", tools=["shop.tools:absent", "shop.tools:asyncio", "shop.tools:add"]
    )
    assert (ran.exit, ran.reply, len(spans)) == ("completed", "3", 1)
    assert ran.stderr_tail.splitlines() == [
        "evalagent hook: shop.tools:absent is not traced: not there",
        "evalagent hook: shop.tools:asyncio is not traced: no plain function",
    ]


def test_without_the_sdk_the_agent_runs_and_the_way_out_is_named(observe: Observe) -> None:
    bare = Path(sys.base_prefix) / "bin" / "python3"
    ran, spans = observe(
        "from shop.tools import add; print(add(1))", command=[str(bare), "desk.py"], tools=["shop.tools:*"]
    )
    if "No such file" in ran.stderr_tail:  # the script is not beside the world for a foreign interpreter
        ran, spans = observe(
            "", command=[str(bare), "-c", "from shop.tools import add; print(add(1))"], tools=["shop.tools:*"]
        )
    assert (ran.exit, ran.reply, spans) == ("completed", "3", [])
    assert "pip install opentelemetry-sdk" in ran.stderr_tail


def test_a_broken_instrumentor_is_left_out(observe: Observe, tmp_path: Path) -> None:
    library = tmp_path / "lib"
    (library / "fakelib").mkdir(parents=True)
    (library / "fakelib" / "__init__.py").write_text("X = 1")
    info = library / "openinference_fake-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: openinference-fake\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[opentelemetry_instrumentor]\nfakelib = openinference.fake:Missing\n")
    given = {"environ": {"PYTHONPATH": str(library)}, "env": ["PYTHONPATH"]}
    ran, _ = observe("import fakelib; print(fakelib.X)", **given)
    assert (ran.exit, ran.reply) == ("completed", "1")
    assert ran.stderr_tail.startswith("evalagent hook: openinference.fake:Missing failed and is left out")


def test_the_receiver_may_be_gone(observe: Observe, tmp_path: Path) -> None:
    (tmp_path / "agent" / "shop").mkdir(parents=True)
    (tmp_path / "agent" / "shop" / "tools.py").write_text(TOOLS)
    (tmp_path / "agent" / "desk.py").write_text("from shop.tools import add; print(add(1))")
    ran = process_sandbox.run_trial(
        Agent(source="agent", command=["python", "desk.py"], tools=["shop.tools:*"]),
        Case(id="case-1", input="hello"),
        0,
        suite_dir=tmp_path,
        work_dir=tmp_path,
        endpoint="http://127.0.0.1:9",
        resource={},
        budgets=Budgets(wall_s=60),
        env=os.environ,
        attempt="gone",
    )
    assert (ran.exit, ran.reply) == ("completed", "3")
    assert ran.wall_s < 15
