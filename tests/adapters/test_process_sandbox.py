"""Real agents in the real sandbox, cold (a process of their own) and warm (forked)."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evalagent.adapters import forkserver, process_sandbox
from evalagent.errors import SandboxUnavailable, UsageError
from evalagent.model import TrialRun
from evalagent.suites import Agent, Budgets, Case

Run = Callable[..., TrialRun]
ECHO = "import json, sys\ntask = json.load(sys.stdin)\nprint(sorted(task), task['id'], task['input'])\n"
MIB = 1 << 20


@pytest.fixture(params=["cold", "warm"])
def warmth(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("EVALAGENT_WARM", "1" if request.param == "warm" else "0")
    yield request.param
    process_sandbox.close()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Run an agent whose source is given as {file: text}; `agent` are keys of the suite's `agent`."""

    def run(
        files: dict[str, str],
        *,
        trial: int = 0,
        task: str | list[str] = "hello",
        wall_s: float = 20.0,
        environ: dict[str, str] | None = None,
        **agent: object,
    ) -> TrialRun:
        for name, text in files.items():
            path = tmp_path / "agent" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (tmp_path / "work").mkdir(exist_ok=True)
        start = {} if agent.keys() & {"callable", "url", "image"} else {"command": ["python", "desk.py"]}
        settings = {"source": "agent", "instrument": "none", "reply": "stdout", **start, **agent}
        return process_sandbox.run_trial(
            Agent.model_validate(settings),
            Case(id="case-1", input=task),
            trial,
            suite_dir=tmp_path,
            work_dir=tmp_path / "work",
            endpoint="http://127.0.0.1:9",
            resource={"evalagent.run": "run-1"},
            budgets=Budgets(wall_s=wall_s),
            env={"PATH": os.environ["PATH"], **(environ or {})},
            attempt=f"attempt-of-{tmp_path.name}",
        )

    yield run
    process_sandbox.close()


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone_within(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(pid)


def test_an_agent_gets_id_and_input_and_nothing_else_of_the_case(run: Run, warmth: str) -> None:
    assert run({"desk.py": ECHO}).reply == "['id', 'input'] case-1 hello"
    assert run({"desk.py": ECHO}, task=["one", "two"]).reply == "['id', 'input'] case-1 ['one', 'two']"


def test_a_module_and_a_callable_answer_as_a_file_does(run: Run, warmth: str) -> None:
    calls = (
        "def text(task):\n    print('aside')\n    return task['input'] * 2\ndef data(task):\n    return {'é': [1]}\n"
    )
    files = {"pack/__init__.py": "", "pack/__main__.py": ECHO, "pack/calls.py": calls}
    assert run(files, command=["python", "-m", "pack"]).reply == "['id', 'input'] case-1 hello"
    as_text = run(files, callable="pack.calls:text")
    assert (as_text.reply, as_text.stderr_tail.strip()) == ("hellohello", "aside")
    assert json.loads(run(files, callable="pack.calls:data").reply or "") == {"é": [1]}


def test_a_program_that_is_not_python_runs_too(run: Run) -> None:
    assert json.loads(run({"go": ""}, command=["cat"]).reply or "") == {"id": "case-1", "input": "hello"}


def test_the_working_directory_is_the_world_and_the_environment_is_small(run: Run, warmth: str, tmp_path: Path) -> None:
    show = "import json, os; print(json.dumps([os.getcwd(), dict(os.environ)]))"
    given = {"DESK_KEY": "k", "OTHER": "o", "HOME": "/root", "PYTHONPATH": "/elsewhere"}
    ran = run({"desk.py": show}, trial=3, environ=given, env=["DESK_KEY", "ABSENT"])
    cwd, environment = json.loads(ran.reply or "")
    assert cwd == environment["HOME"] == str(tmp_path / "work")
    assert environment["DESK_KEY"] == "k" and not environment.keys() & {"OTHER", "ABSENT"}
    assert environment["PYTHONPATH"] == str(tmp_path / "agent")
    assert environment["EVALAGENT_TRIAL"] == "3"
    assert "evalagent.case=case-1" in environment["OTEL_RESOURCE_ATTRIBUTES"]
    assert not Path(environment["TMPDIR"]).exists()  # it was the trial's own


def test_what_an_agent_writes_beside_its_world_does_not_reach_the_next_trial(run: Run, warmth: str) -> None:
    program = (
        "import json, os, tempfile\n"
        "print(hasattr(json, 'mark'), os.environ.get('MARK'), os.path.exists(tempfile.gettempdir() + '/mark'))\n"
        "json.mark = 1; os.environ['MARK'] = '1'; open(tempfile.gettempdir() + '/mark', 'w').close()\n"
    )
    assert [run({"desk.py": program}).reply for _ in range(2)] == ["False None False"] * 2


def test_an_edited_agent_is_run_as_edited(run: Run, warmth: str) -> None:
    assert run({"desk.py": "import word; print(word.WORD)", "word.py": "WORD = 'old'"}).reply == "old"
    assert run({"word.py": "WORD = 'new'"}).reply == "new"


@pytest.mark.parametrize(
    ("program", "exit", "code"),
    [
        ("print('fine')", "completed", 0),
        ("pass", "no_answer", 0),
        ("print('  \\n ')", "no_answer", 0),
        ("import sys; print('half'); sys.exit(3)", "crashed", 3),
        ("import os; os._exit(4)", "crashed", 4),
        ("import sys; sys.exit('a reason')", "crashed", 1),
        ("1 / 0", "crashed", 1),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "crashed", -9),
        ("raise SystemExit", "no_answer", 0),
        ("this is no python", "crashed", 1),
    ],
)
def test_the_end_of_an_agent_is_told_by_its_kind(run: Run, warmth: str, program: str, exit: str, code: int) -> None:
    ran = run({"desk.py": program})
    assert (ran.exit, ran.exit_code) == (exit, code)
    assert bool(ran.reason) == (exit != "completed")


def test_no_answer_on_stdout_is_fine_where_the_trace_holds_it(run: Run) -> None:
    ran = run({"desk.py": "pass"}, reply="trace")
    assert (ran.exit, ran.reply) == ("completed", None)


ODD = {
    "traceback": """
def f():
    raise ValueError('héllo')
f()""",
    "exit text": "import sys; sys.exit('why')",
    "exit handlers run in order": """
import atexit
atexit.register(print, 'last')
atexit.register(print, 'first')
print('now')""",
    "a thread is waited for": """
import threading, time
threading.Thread(target=lambda: (time.sleep(0.2), print('late'))).start()
print('soon')""",
    "a daemon is not": """
import threading, time
threading.Thread(target=lambda: time.sleep(60), daemon=True).start()
print('soon')""",
    "who am I": """
import sys
print(__name__, sys.argv[1:], __file__.rsplit('/', 1)[-1], sys.argv[0].rsplit('/', 1)[-1])""",
    "path": "import sys; print([p.rsplit('/', 1)[-1] for p in sys.path[:2]])",
    "pickled by name": """
import pickle
class A: pass
print(type(pickle.loads(pickle.dumps(A()))) is A)""",
    "other processes": """
import subprocess, sys
print(subprocess.run([sys.executable, '-c', 'print(6 * 7)'], capture_output=True, text=True).stdout)""",
    "pools": """
from multiprocessing import Pool
if __name__ == '__main__':
    with Pool(2) as pool:
        print(pool.map(abs, [-1, 2]))""",
    "asyncio": """
import asyncio
async def f():
    await asyncio.sleep(0)
    return 'ran'
print(asyncio.run(f()))""",
    "without newline": "import sys; sys.stdout.write('x' * 10)",
    "signals": """
import signal as s
print(s.getsignal(s.SIGINT) is s.default_int_handler, s.getsignal(s.SIGTERM), s.getsignal(s.SIGPIPE))""",
    "standard streams": """
import sys
print([(f.encoding, f.errors, f.isatty()) for f in (sys.stdin, sys.stdout, sys.stderr)])""",
    "limits": """
import resource as r
print(r.getrlimit(r.RLIMIT_CORE), r.getrlimit(r.RLIMIT_FSIZE), r.getrlimit(r.RLIMIT_AS))""",
    "session": "import os; print(os.getpid() == os.getsid(0) == os.getpgid(0))",
    "descriptors": "import os; print(len(os.listdir('/proc/self/fd')))",
}


@pytest.mark.parametrize("program", ODD.values(), ids=ODD.keys())
def test_a_warm_process_behaves_as_a_cold_one(run: Run, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    ended = []
    for warm in ("0", "1"):
        monkeypatch.setenv("EVALAGENT_WARM", warm)
        ran = run({"desk.py": program}, command=["python", "desk.py", "--flag"])
        ended.append((ran.exit, ran.exit_code, ran.reply, ran.stderr_tail))
    assert ended[0] == ended[1]
    assert forkserver._servers and not any(server.doubt for server in forkserver._servers.values())


def test_a_hanging_agent_is_stopped_at_the_wall_limit(run: Run, warmth: str) -> None:
    ran = run({"desk.py": "import time; print('thinking', flush=True); time.sleep(60)"}, wall_s=0.6)
    assert (ran.exit, ran.exit_code, ran.reply) == ("timeout", -signal.SIGTERM, "thinking")
    assert 0.6 <= ran.wall_s < 2.5
    assert "0.6 s" in ran.reason


def test_an_agent_that_ignores_sigterm_is_killed(run: Run, warmth: str) -> None:
    program = (
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(60)"
    )
    ran = run({"desk.py": program}, wall_s=1.0)
    assert (ran.exit, ran.exit_code) == ("timeout", -signal.SIGKILL)


@pytest.mark.parametrize("own_session", [False, True])
def test_nothing_that_an_agent_started_outlives_its_trial(run: Run, warmth: str, own_session: bool) -> None:
    program = (
        "import subprocess\n"
        f"print(subprocess.Popen(['sleep', '60'], start_new_session={own_session}).pid)\n"  # it holds stdout open
    )
    began = time.monotonic()
    ran = run({"desk.py": program})
    assert ran.exit == "completed"
    assert gone_within(int(ran.reply or ""), 2)
    assert time.monotonic() - began < 15


def test_output_is_kept_to_a_mebibyte_and_the_rest_is_counted(run: Run, warmth: str) -> None:
    program = f"import sys\nsys.stdout.write('a' * {3 * MIB})\nsys.stderr.write('b' * {2 * MIB} + 'the end')\n"
    ran = run({"desk.py": program})
    assert ran.exit == "completed"
    assert ran.reply == "a" * MIB
    assert len(ran.stderr_tail) == MIB and ran.stderr_tail.endswith("the end")
    assert f"stdout: the last {2 * MIB} of {3 * MIB} bytes were dropped" in ran.reason
    assert "stderr: the first" in ran.reason


def test_output_that_is_not_text_is_decoded_with_replacement(run: Run, warmth: str) -> None:
    ran = run({"desk.py": "import sys; sys.stdout.buffer.write(b'ok \\xff\\x00 caf\\xc3\\xa9')"})
    assert ran.reply == "ok \ufffd\ufffd café"


def test_an_agent_need_not_read_a_long_task(run: Run, warmth: str) -> None:
    assert run({"desk.py": "print('no need')"}, task="x" * MIB).reply == "no need"


def test_trials_run_side_by_side_without_mixing(run: Run, warmth: str) -> None:
    program = "import os, time; time.sleep(0.05); print(os.environ['EVALAGENT_TRIAL'] * 3)"
    run({"desk.py": program})
    with ThreadPoolExecutor(4) as pool:
        replies = list(pool.map(lambda trial: run({}, trial=trial).reply, range(12)))
    assert replies == [str(trial) * 3 for trial in range(12)]


@pytest.mark.parametrize(
    ("agent", "key", "says"),
    [
        ({"url": "http://127.0.0.1:1"}, "agent.url", "command"),
        ({"image": "desk:1"}, "agent.image", "--sandbox docker"),
        ({"command": ["no-such-program"]}, "agent.command", "no-such-program is not on PATH"),
        ({"command": ["python", "absent.py"]}, "agent.command", "absent.py is neither"),
        ({"command": ["./absent.sh"]}, "agent.command", "absent.sh"),
        ({"callable": "pack.calls"}, "agent.callable", "package.module:function"),
        ({"source": "absent"}, "agent.source", "does not exist"),
        ({"tools": ["not a name"], "command": ["python", "desk.py"]}, "agent.tools", "module:function"),
        ({"tools": ["__main__:*"], "command": ["python", "desk.py"]}, "agent.tools", "put them into a module"),
    ],
)
def test_what_a_process_cannot_run_is_refused_by_name(run: Run, agent: dict[str, object], key: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        run({"desk.py": ""}, **agent)
    assert caught.value.key == key and says in str(caught.value)


def test_a_program_that_cannot_be_executed_is_refused_with_the_systems_reason(run: Run, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Permission denied"):
        run({"desk.sh": "#!/bin/sh\necho"}, command=["./desk.sh"])


def test_libraries_are_imported_once_and_not_the_agents_own_modules(run: Run, tmp_path: Path) -> None:
    libraries = {"lib/slow.py": "import os\nPID = os.getpid()"}
    program = "import os, slow, word\nprint(slow.PID == os.getpid(), word.PID == os.getpid())"
    ran = run(
        {"desk.py": program, "word.py": "import os; PID = os.getpid()", "../lib/slow.py": libraries["lib/slow.py"]},
        environ={"PYTHONPATH": str(tmp_path / "lib")},
        env=["PYTHONPATH"],
    )
    assert ran.reply == "False True"


@pytest.mark.parametrize(
    ("library", "doubt"),
    [
        ("import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()", "1 threads"),
        ("import sys, types; sys.modules['word'] = types.ModuleType('word')", "a module named word"),
        ("import os; os._exit(1)", "ended while importing"),
    ],
)
def test_in_doubt_an_agent_runs_as_a_plain_process(run: Run, tmp_path: Path, library: str, doubt: str) -> None:
    guarded = "import os\nif os.environ.get('EVALAGENT_ATTEMPT'):\n    pass\nelse:\n    " + library.replace(
        "\n", "\n    "
    )
    ran = run(
        {"desk.py": "import odd, word\nprint(word.WORD)", "word.py": "WORD = 'mine'", "../lib/odd.py": guarded},
        environ={"PYTHONPATH": str(tmp_path / "lib")},
        env=["PYTHONPATH"],
    )
    assert ran.reply == "mine"
    (server,) = forkserver._servers.values()
    assert doubt in server.doubt


def test_a_trial_whose_warm_server_dies_is_no_sample(run: Run) -> None:
    run({"desk.py": "print(1)"})
    (server,) = forkserver._servers.values()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run, {"desk.py": "import time; time.sleep(30)"})
        time.sleep(0.5)
        server._process.kill()
        with pytest.raises(SandboxUnavailable):
            running.result(timeout=10)
    assert run({"desk.py": "print(2)"}).reply == "2"  # the next one runs cold


STARTER = """
import os, sys
from pathlib import Path
from evalagent.adapters import process_sandbox
from evalagent.suites import Agent, Budgets, Case
folder = Path(sys.argv[1])
agent = Agent(source="agent", command=["python", "desk.py"], instrument="none")
process_sandbox.run_trial(agent, Case(id="a", input="b"), 0, suite_dir=folder, work_dir=folder, endpoint="",
    resource={}, budgets=Budgets(wall_s=60), env=os.environ, attempt="x")
"""


def test_agent_and_server_die_with_a_killed_evaluation(warmth: str, tmp_path: Path) -> None:
    (tmp_path / "agent").mkdir()
    program = "import os, time\nopen('pids', 'w').write(f'{os.getpid()} {os.getppid()}\\n')\ntime.sleep(60)"
    (tmp_path / "agent" / "desk.py").write_text(program)
    pids = tmp_path / "pids"
    starter = subprocess.Popen([sys.executable, "-c", STARTER, str(tmp_path)], env=dict(os.environ))
    deadline = time.monotonic() + 60
    while not (pids.exists() and pids.read_text().endswith("\n")) and time.monotonic() < deadline:
        time.sleep(0.05)
    agent, parent = map(int, pids.read_text().split())
    assert alive(agent)
    starter.kill()
    starter.wait()
    assert gone_within(agent, 3) and gone_within(parent, 3)
