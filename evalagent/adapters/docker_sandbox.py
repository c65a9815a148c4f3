"""Runs one trial of an agent in a container that can reach its world, its collector, and nothing else.

In the container: /work is the world (the working directory), /agent the agent's source and /evalagent/hook the hook,
both read-only like everything but /work and /tmp.
"""

import contextlib
import hashlib
import io
import json
import os
import re
import signal
import sys
import tarfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalagent.adapters import agent_needs, agents, docker_daemon, python_image
from evalagent.adapters.attached import Attached
from evalagent.adapters.collector import NAME as COLLECTOR
from evalagent.adapters.collector import network_name
from evalagent.adapters.docker_daemon import MARK, daemon_errors
from evalagent.adapters.egress import Egress
from evalagent.adapters.streams import Kept
from evalagent.authoring import instrumenting
from evalagent.errors import SandboxUnavailable, UsageError
from evalagent.model import TrialExit, TrialRun
from evalagent.suites import Agent, Budgets, Case

if TYPE_CHECKING:
    from docker import DockerClient

WORK, SOURCE = "/work", "/agent"
HOOK, LAUNCHER = "/evalagent/hook", "/evalagent/launcher"
REPOSITORY = "evalagent-agent"
NOBODY = 65534

MEMORY = "1g"
"""Swap included: over it the agent is killed, and the trial says so."""
CPUS = 1.0
PROCESSES = 256
OPEN_FILES = 1024
FILE_BYTES = 1 << 30
TMP = "256m"
GRACE_S = 2
"""Between SIGTERM, on which the hook flushes spans, and SIGKILL."""

HIDDEN = ("suite.yaml", "cases.jsonl", "requirements.md", "rubrics")
KEPT_IMAGES = 20
"""Of agents that changed since; older than a day, they are removed when a new one is made."""

_lock = threading.Lock()
_bases: dict[str, str] = {}


def prepare_image(agent: Agent, suite_dir: Path) -> str:
    """The tag of the image that the agent runs in, made now unless it is there: `agent.image`, or this machine's
    Python with what the agent needs, and upon it the hook and the agent's source. The tag is a hash of the content."""
    source = agents.source_dir(agent, suite_dir)
    files = _layer(agent, suite_dir)
    content = hashlib.sha256()
    for path, data, executable in files:
        content.update(f"{path}\0{len(data)}\0{executable}\0".encode() + data)
    key = content.hexdigest()
    with _lock, contextlib.closing(docker_daemon.connect()) as client, daemon_errors("making the agent's image"):
        base = agent.image or _bases.get(key, "")
        if not agent.image and not (base and docker_daemon.has_image(client, base)):
            base = _bases[key] = python_image.build(client, agent_needs.needs(source))
        return _build(client, base, files, key)


def run_trial(
    agent: Agent,
    case: Case,
    trial: int,
    *,
    suite_dir: Path,
    work_dir: Path,
    endpoint: str,
    resource: Mapping[str, str],
    budgets: Budgets,
    env: Mapping[str, str],
    attempt: str,
    memory: str = MEMORY,
) -> TrialRun:
    """Runs the agent on one case, from a fresh container to its removal. Blocks; safe from several threads.

    `endpoint` and the network are the collector's of the run that `resource["evalagent.run"]` names, which must be
    running. `env` is the caller's environment: only what the suite names comes through. The wall time counts from the
    container's start. SandboxUnavailable where the container could not be started or was lost: no trial was run then.
    """
    if agent.url:
        raise UsageError("an agent behind a url cannot be put into a sandbox", key="agent.url")
    argv = command(agent, suite_dir)
    observed = instrumenting.environment(
        agent, endpoint=endpoint, resource=resource, case_id=case.id, trial=trial, attempt=attempt
    )
    image = prepare_image(agent, suite_dir)
    run_id = resource.get("evalagent.run", "")
    labels = docker_daemon.owner_labels(run_id)
    labels |= {f"{MARK}.role": "agent", f"{MARK}.case": case.id, f"{MARK}.trial": str(trial)}
    client = docker_daemon.connect()
    container: Any = None
    try:
        with daemon_errors(f"running case {case.id} in Docker"):
            network, hosts = _network(client, run_id)
            with Egress(client, network, agent.egress, labels) as egress:
                container = client.containers.create(
                    image,
                    argv,
                    environment={**environment(agent, _path_of(client, image), env), **observed, **egress.variables},
                    labels=labels,
                    network=network,
                    extra_hosts={**hosts, **egress.hosts},
                    **_limits(client, work_dir, memory),
                )
                task = json.dumps({"id": case.id, "input": case.input}).encode()
                ended = _run(container, task, budgets.wall_s)
    finally:
        if container is not None:
            docker_daemon.remove(container)
        client.close()
    reply = ended.stdout.text().strip() or None
    exit_, reason = _classified(agent, case, ended, reply, budgets.wall_s, memory)
    remarks = (reason, ended.stdout.remark("stdout"), ended.stderr.remark("stderr"))
    return TrialRun(
        case_id=case.id,
        trial=trial,
        exit=exit_,
        exit_code=ended.code,
        attempt=attempt,
        reply=reply,
        stderr_tail=ended.stderr.text(),
        wall_s=round(ended.wall_s, 3),
        reason="; ".join(filter(None, remarks)),
    )


def command(agent: Agent, suite_dir: Path) -> list[str] | None:
    """What is started in the container; None: what the image itself says. Files of the source are named where they
    are in the container, and `python` is the image's."""
    if agent.callable is None and agent.command is None:
        return None
    if agent.callable is not None:
        agents.launch(agent, suite_dir)  # refuses what is not `module:function`
        return ["python", f"{LAUNCHER}/evalagent_call.py", agent.callable]
    source = agents.source_dir(agent, suite_dir)
    first, *rest = agent.command or ("",)
    if first == sys.executable or (not agent.image and re.fullmatch(r"python3?(\.\d+)?", first)):
        first = "python"
    words = [first, *rest]
    at = 1 if Path(first).name.startswith("python") and rest and not rest[0].startswith("-") else 0
    script = words[at]
    if (at or "/" in script) and not Path(script).is_absolute():
        if (source / script).is_file():
            words[at] = f"{SOURCE}/{script}"
        elif (suite_dir / script).is_file():
            raise UsageError(
                f"{script} must be in the agent's source ({agent.source}) to be run in Docker", key="agent.command"
            )
    return words


def environment(agent: Agent, image_python_path: str, available: Mapping[str, str]) -> dict[str, str]:
    """What the agent finds beside the variables of its observation; of `available` only what the suite names."""
    hook = [HOOK] if instrumenting.needs_hook(agent) else []
    return {
        "LANG": "C.UTF-8",
        "HOME": "/tmp",  # noqa: S108 - in the container
        "TMPDIR": "/tmp",  # noqa: S108 - in the container
        "PYTHONPATH": ":".join(filter(None, (*hook, SOURCE, image_python_path))),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        **{name: available[name] for name in agent.env if name in available},
    }


@dataclass(frozen=True, slots=True)
class _Ended:
    code: int
    in_time: bool
    out_of_memory: bool
    wall_s: float
    cpu_s: float | None
    """Processor time by the wall limit; None: it ended by itself."""
    stdout: Kept
    stderr: Kept


def _run(container: Any, task: bytes, wall_s: float) -> _Ended:
    with Attached(container) as attached:
        container.start()
        started = time.monotonic()
        attached.send(task)
        in_time = attached.until_end(started + wall_s)
        cpu = None
        if not in_time:
            cpu = _cpu_s(container)
            container.stop(timeout=GRACE_S)
            attached.until_end(time.monotonic() + 5)
        took = time.monotonic() - started
    code = int(container.wait(timeout=30)["StatusCode"])
    container.reload()
    killed = bool(container.attrs["State"].get("OOMKilled"))
    return _Ended(code, in_time, killed, took, cpu, attached.stdout, attached.stderr)


def _cpu_s(container: Any) -> float | None:
    """Tells an agent that hung from one that was slow, or not given a processor by a busy machine."""
    told = container.client.api.stats(container.id, stream=False, one_shot=True)
    used = ((told.get("cpu_stats") or {}).get("cpu_usage") or {}).get("total_usage")
    return None if used is None else used / 1e9


def _classified(
    agent: Agent, case: Case, ended: _Ended, reply: str | None, wall_s: float, memory: str
) -> tuple[TrialExit, str]:
    if not ended.in_time:
        used = "" if ended.cpu_s is None else f", having used {ended.cpu_s:.1f} s of processor time"
        return "timeout", f"stopped at the wall limit of {wall_s:g} s{used}"
    if ended.code and ended.out_of_memory:
        return "crashed", f"killed for using more memory than {memory}"
    if ended.code:
        _blame_ourselves(agent, case, ended)
        with contextlib.suppress(ValueError):
            return "crashed", f"killed by {signal.Signals(ended.code - 128).name}"
        return "crashed", f"exit code {ended.code}"
    if agent.reply == "stdout" and reply is None:
        return "no_answer", "nothing on stdout"
    return "completed", ""


def _blame_ourselves(agent: Agent, case: Case, ended: _Ended) -> None:
    """A crash that the image caused is no failure of the agent's."""
    said = ended.stderr.text()
    if ended.code == 127 and said.startswith("[FATAL tini"):
        program = (agent.command or ["?"])[0]
        raise UsageError(f"the agent's image has no program {program!r}", key="agent.command")
    lacking = re.findall(r"^ModuleNotFoundError: No module named '([\w.]+)'", said, re.MULTILINE)
    if lacking and not agent.image and agent_needs.provided(lacking[-1]):
        raise UsageError(
            f"case {case.id}: the agent imports {lacking[-1]!r}, which its source does not show, so that its image "
            f"lacks it: name the distribution in {agent.source}/requirements.txt"
        )


def _network(client: "DockerClient", run_id: str) -> tuple[str, dict[str, str]]:
    """The network's name, and the collector's name and address on it."""
    name = network_name(run_id)
    marked = docker_daemon.containers(client, f"{MARK}.run={run_id}", f"{MARK}.role={COLLECTOR}")
    found = [docker_daemon.address(container, name) for container in marked if container.status == "running"]
    if not any(found):
        raise SandboxUnavailable(f"no collector of run {run_id!r} is running, and an agent runs beside one only")
    return name, {COLLECTOR: next(filter(None, found))}


def _path_of(client: "DockerClient", image: str) -> str:
    """The PYTHONPATH that the image sets itself."""
    said = client.images.get(image).attrs["Config"].get("Env") or ()
    return next((value for name, _, value in (entry.partition("=") for entry in said) if name == "PYTHONPATH"), "")


def _limits(client: "DockerClient", work_dir: Path, memory: str) -> dict[str, Any]:
    from docker.types import LogConfig, Mount, Ulimit

    return {
        "user": _owner(client, work_dir),
        "working_dir": WORK,
        "mounts": [Mount(WORK, str(work_dir.resolve()), type="bind")],
        "stdin_open": True,
        "init": True,
        "read_only": True,
        "tmpfs": {"/tmp": f"size={TMP},mode=1777"},  # noqa: S108 - in the container
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "mem_limit": memory,
        "memswap_limit": memory,
        "nano_cpus": int(CPUS * 1e9),
        "pids_limit": PROCESSES,
        "ulimits": [
            Ulimit(name="nofile", soft=OPEN_FILES, hard=OPEN_FILES),
            Ulimit(name="fsize", soft=FILE_BYTES, hard=FILE_BYTES),
            Ulimit(name="core", soft=0, hard=0),
        ],
        "ipc_mode": "private",
        "hostname": "agent",
        # Lookups end here, unanswered and soon, so that none carries anything out: /etc/hosts says what may be known.
        "dns": ["127.0.0.1"],
        "dns_opt": ["timeout:1", "attempts:1"],
        "log_config": LogConfig(type="none"),
    }


def _owner(client: "DockerClient", work_dir: Path) -> str:
    """Who the agent runs as: never root. Root's own worlds are handed to `nobody` first."""
    user = docker_daemon.host_user(client, work_dir)
    if os.geteuid() != 0 or user.partition(":")[0] != "0":
        return user
    for folder, folders, files in os.walk(work_dir):
        for path in (folder, *(os.path.join(folder, name) for name in (*folders, *files))):  # noqa: PTH118 - millions
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    return f"{NOBODY}:{NOBODY}"


def _layer(agent: Agent, suite_dir: Path) -> list[tuple[str, bytes, bool]]:
    """(path in the image, content, executable) of the hook, the launcher and the agent's source. Where the source holds
    the suite, what the suite expects of the agent is left out."""
    source = agents.source_dir(agent, suite_dir)
    hidden = {suite_dir.resolve() / name for name in HIDDEN}
    only = (suite_dir / agent.source).resolve()
    files = []
    for home, target in ((agents.HOOK, HOOK), (agents.LAUNCHER, LAUNCHER), (source, SOURCE)):
        for file in agent_needs.source_files(home):
            if home == source and (not hidden.isdisjoint((file, *file.parents)) or (only.is_file() and file != only)):
                continue
            executable = bool(file.stat().st_mode & 0o111)
            files.append((f"{target}/{file.relative_to(home.resolve()).as_posix()}", file.read_bytes(), executable))
    return files


def _build(client: "DockerClient", base: str, files: Sequence[tuple[str, bytes, bool]], key: str) -> str:
    if not docker_daemon.has_image(client, base):
        raise UsageError(f"it is not on this machine: `docker pull {base}`, or build it", key="agent.image")
    parent = client.images.get(base).id
    tag = f"{REPOSITORY}:{hashlib.sha256(f'{parent} {key}'.encode()).hexdigest()[:16]}"
    if docker_daemon.has_image(client, tag):
        return tag
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as tar:
        _add(tar, "Dockerfile", f"FROM {base}\nCOPY image /\nLABEL {MARK}=1 {MARK}.role=agent-image\n".encode(), False)
        for path, data, executable in files:
            _add(tar, f"image{path}", data, executable)
    context.seek(0)
    client.images.build(fileobj=context, custom_context=True, tag=tag, rm=True, forcerm=True)
    docker_daemon.prune_images(client, "agent-image", KEPT_IMAGES)
    return tag


def _add(tar: tarfile.TarFile, path: str, data: bytes, executable: bool) -> None:
    info = tarfile.TarInfo(path)
    info.size, info.mode = len(data), 0o755 if executable else 0o644
    tar.addfile(info, io.BytesIO(data))
