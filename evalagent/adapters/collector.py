"""The OpenTelemetry Collector of a run, in a container beside the agent's.

It writes OTLP/JSON lines straight into the run's folder, so what it has written outlives this process. Agents reach
it over a network of the run's own that leads nowhere else; processes of this machine over a port on loopback.
"""

import contextlib
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from evalagent.adapters import docker_daemon
from evalagent.adapters.docker_daemon import daemon_errors
from evalagent.adapters.otlp_lines import end_last_line, mask_lines
from evalagent.errors import SandboxUnavailable, UsageError
from evalagent.traces import masking

if TYPE_CHECKING:
    from docker import DockerClient

VERSION = "0.165.0"
"""Of the upstream collector."""

IMAGES = ("evalagent-collector:latest", f"otel/opentelemetry-collector-contrib:{VERSION}")
"""Where none is named: the first of these that is on this machine."""

FILES = ("traces.jsonl", "logs.jsonl")
NAME = "collector"
"""How containers on the run's network call it."""

START_S = 60.0
STOP_S = 60
WATCH_S = 1.0
MEMORY = "1g"


class Collector:
    """Runs from `start` to `stop`, or for as long as the `with` block does.

    `folder` gets traces.jsonl and logs.jsonl; lines that are there already stay. `gaps` says when it was found dead
    and started again: what an agent sent meanwhile, and up to 0.4 s before, may be missing. `patterns` are the suite's
    own secrets: the collector hashes those of known form as they come, and when it stops what it wrote is masked as
    everything is, by `masking.mask`.
    """

    def __init__(self, folder: Path, run_id: str, *, image: str | None = None, patterns: Sequence[str] = ()) -> None:
        self.folder = folder.absolute()
        self.run_id = run_id
        self.image = image
        self.gaps: tuple[str, ...] = ()
        self._patterns = tuple(patterns)
        self._client: DockerClient | None = None
        self._container: Any = None
        self._network: Any = None
        self._ports: dict[int, int] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._watcher: threading.Thread | None = None

    @property
    def network(self) -> str:
        """The name of the run's network."""
        return network_name(self.run_id)

    @property
    def endpoint(self) -> str:
        """OTLP/HTTP, for containers on the run's network."""
        return f"http://{NAME}:4318"

    @property
    def host_endpoint(self) -> str:
        """OTLP/HTTP, for processes of this machine; may change when a dead collector is started again."""
        return f"http://127.0.0.1:{self._ports[4318]}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Starts it and returns when it is healthy; leaves nothing behind if it cannot be started."""
        self.folder.mkdir(parents=True, exist_ok=True)
        masking.mask("", self._patterns)  # a pattern that is none is found before anything runs
        for name in FILES:
            end_last_line(self.folder / name)
            mask_lines(self.folder / name, self._patterns)  # left by a process that could not
        with contextlib.suppress(SandboxUnavailable):
            docker_daemon.sweep()
        self._client = docker_daemon.connect()
        try:
            with daemon_errors("starting the collector"):
                self._create(self._client)
                self._container.start()
                self._await_health()
            if not (self.folder / FILES[0]).exists():
                raise UsageError(
                    f"the Docker daemon does not see {self.folder}: it runs on another machine or in a container "
                    "that lacks this folder. Mount the folder there, or use `--sandbox process`"
                )
            self._stopping.clear()
            self._watcher = threading.Thread(target=self._watch, name="collector watch", daemon=True)
            self._watcher.start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Lets it write what it holds, removes it and the network, and masks what it wrote. May be called twice."""
        self._stopping.set()
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.join()
        client, self._client = self._client, None
        if client is None:
            return
        try:
            if self._container is not None:
                with contextlib.suppress(SandboxUnavailable), daemon_errors("stopping the collector"):
                    self._container.stop(timeout=STOP_S)
                docker_daemon.remove(self._container)
            if self._network is not None:
                docker_daemon.remove_network(self._network)
        finally:
            self._container = self._network = None
            client.close()
        for name in FILES:
            mask_lines(self.folder / name, self._patterns)

    def alive(self) -> bool:
        """Whether it answers now."""
        return self._client is not None and self._answers(5.0)

    def revive(self) -> str | None:
        """Starts it again if it has ended; then returns, and adds to `gaps`, what may be missing. None: it runs. A
        thread calls this every second, so nobody else has to."""
        with self._lock:
            if self._container is None:
                raise SandboxUnavailable("the collector was not started")
            with daemon_errors("starting the collector again"):
                self._container.reload()
                state = self._container.attrs["State"]
                if state.get("Running") or state.get("Restarting"):
                    return None
                ended = f"{state.get('Status')}, exit code {state.get('ExitCode')}"
                why = "out of memory" if state.get("OOMKilled") else ended
                for name in FILES:
                    end_last_line(self.folder / name)
                self._container.restart(timeout=1)
                self._await_health()
        return self._gap(f"the collector had died ({why}) and was started again: spans sent meanwhile may be missing")

    def _gap(self, said: str) -> str:
        self.gaps = (*self.gaps, said)
        return said

    def _watch(self) -> None:
        while not self._stopping.wait(WATCH_S):
            try:
                self.revive()
            except SandboxUnavailable as error:
                if (said := str(error)) not in self.gaps:
                    self._gap(said)

    def log(self) -> str:
        """The end of what it said."""
        if self._container is None:
            return ""
        with contextlib.suppress(Exception):
            return str(self._container.logs(tail=20).decode("utf-8", "replace"))
        return ""

    def _create(self, client: "DockerClient") -> None:
        from docker.types import LogConfig, Mount, Ulimit

        labels = docker_daemon.owner_labels(self.run_id)
        self._network = create_network(client, self.run_id, labels)
        config = resources.files("evalagent.adapters").joinpath("collector.yaml").read_text("utf-8")
        self._container = client.containers.create(
            pick_image(client, self.image),
            ["--config=env:EVALAGENT_COLLECTOR_CONFIG"],
            environment={"EVALAGENT_COLLECTOR_CONFIG": config, "GOMEMLIMIT": "800MiB"},
            labels={**labels, "evalagent.role": NAME},
            mounts=[Mount("/data", str(self.folder), type="bind")],
            ports={"4318/tcp": ("127.0.0.1", 0), "13133/tcp": ("127.0.0.1", 0)},
            user=docker_daemon.host_user(client, self.folder),
            read_only=True,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            mem_limit=MEMORY,
            memswap_limit=MEMORY,
            pids_limit=256,
            ulimits=[Ulimit(name="nofile", soft=4096, hard=4096)],
            log_config=LogConfig(type="json-file", config={"max-size": "5m", "max-file": "1"}),
        )
        self._network.connect(self._container, aliases=[NAME])

    def _await_health(self) -> None:
        deadline = time.monotonic() + START_S
        while True:
            self._container.reload()
            if self._container.status in ("exited", "dead"):
                raise SandboxUnavailable(f"the collector ended at its start: {self.log()[-800:].strip()}")
            bound = self._container.attrs["NetworkSettings"]["Ports"] or {}
            self._ports = {
                int(port.partition("/")[0]): int(hosts[0]["HostPort"]) for port, hosts in bound.items() if hosts
            }
            if self._answers(1.0):
                return
            if time.monotonic() > deadline:
                raise SandboxUnavailable(
                    f"the collector is not healthy after {START_S:g} s: {self.log()[-800:].strip()}"
                )
            time.sleep(0.05)

    def _answers(self, timeout_s: float) -> bool:
        if 13133 not in self._ports:
            return False
        try:
            with _DIRECT.open(f"http://127.0.0.1:{self._ports[13133]}/", timeout=timeout_s) as answer:
                return bool(answer.status == 200)
        except (OSError, ValueError):
            return False


_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Loopback is never asked for through a proxy of the environment."""


def network_name(run_id: str) -> str:
    """The network of a run's collector and agents."""
    return f"evalagent-{run_id}"


def create_network(client: "DockerClient", run_id: str, labels: dict[str, str]) -> Any:
    """A network that leads nowhere: no route out, and the bridge has no address, so not to this machine either."""
    name = network_name(run_id)
    for old in client.networks.list(names=[name], filters={"label": f"{docker_daemon.MARK}=1"}):
        if old.name != name:
            continue
        if not docker_daemon.abandoned(old.attrs.get("Labels") or {}):
            raise SandboxUnavailable(f"run {run_id} is under way in another process: its network {name} is in use")
        docker_daemon.remove_network(old)
    return client.networks.create(
        name,
        driver="bridge",
        internal=True,
        check_duplicate=True,
        labels=labels,
        options={"com.docker.network.bridge.inhibit_ipv4": "true"},
    )


def pick_image(client: "DockerClient", wanted: str | None, among: Sequence[str] = IMAGES) -> str:
    """The collector's image; UsageError with the ways to get one where none is on this machine."""
    import docker

    for image in (wanted,) if wanted else among:
        with contextlib.suppress(docker.errors.ImageNotFound):
            client.images.get(image)
            return image
    raise UsageError(
        f"no image of the OpenTelemetry Collector is on this machine ({wanted or ', '.join(among)}): "
        f"`docker pull {IMAGES[-1]}`, or build it without a registry: `infra/collector/build.sh`"
    )
