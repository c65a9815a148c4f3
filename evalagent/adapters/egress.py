"""The hosts that a suite lets its agent reach, through a proxy container on the agent's closed network."""

from collections.abc import Mapping, Sequence
from importlib import resources
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from evalagent.adapters import agent_needs, docker_daemon, python_image
from evalagent.adapters.collector import NAME as COLLECTOR
from evalagent.adapters.docker_daemon import MARK
from evalagent.errors import SandboxUnavailable

if TYPE_CHECKING:
    from docker import DockerClient

PORT = 3128
START_S = 15.0


class Egress:
    """Nothing at all where `hosts` is empty. `variables` is what tells an agent's HTTP clients of the proxy,
    `hosts` where it is."""

    def __init__(self, client: "DockerClient", network: str, hosts: Sequence[str], labels: Mapping[str, str]) -> None:
        self.variables: dict[str, str] = {}
        self.hosts: dict[str, str] = {}
        self._client = client
        self._network = network
        self._hosts = tuple(hosts)
        self._labels = {**labels, f"{MARK}.role": "egress"}
        self._container: Any = None

    def __enter__(self) -> Self:
        if self._hosts:
            try:
                self._start()
            except BaseException:
                self._remove()
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._remove()

    def _start(self) -> None:
        source = resources.files("evalagent.adapters").joinpath("egress_proxy.py").read_text("utf-8")
        self._container = self._client.containers.create(
            python_image.build(self._client, agent_needs.Needs((), ())),
            ["python", "-u", "-c", source, str(PORT), *self._hosts],
            labels=self._labels,
            user="65534:65534",
            init=True,
            read_only=True,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            mem_limit="128m",
            memswap_limit="128m",
            pids_limit=32,
            extra_hosts={"host.docker.internal": "host-gateway"},
        )
        self._client.networks.get(self._network).connect(self._container)
        self._container.start()
        self._await_listening()
        self.hosts["egress"] = docker_daemon.address(self._container, self._network) or ""
        proxy = f"http://egress:{PORT}"
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
            self.variables[name] = proxy
        self.variables["NO_PROXY"] = self.variables["no_proxy"] = f"{COLLECTOR},localhost,127.0.0.1"

    def _await_listening(self) -> None:
        probe = f"import socket; socket.create_connection(('127.0.0.1', {PORT}), 1)"
        for _ in range(int(START_S / 0.2)):
            self._container.reload()
            if self._container.status != "running":
                break
            if self._container.exec_run(["python", "-S", "-c", probe]).exit_code == 0:
                return
        said = self._container.logs(tail=5).decode("utf-8", "replace").strip()
        raise SandboxUnavailable(f"the egress proxy did not start: {said}")

    def _remove(self) -> None:
        if self._container is not None:
            docker_daemon.remove(self._container)
            self._container = None
