"""The Docker daemon: reaching it, saying what is wrong with it, and clearing what dead runs left in it.

Everything that EvalAgent creates carries labels that name the run and the process that owns it, so that the
next start can tell what nobody will ever remove.
"""

import contextlib
import hashlib
import os
import platform
import threading
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalagent.errors import SandboxUnavailable, UsageError

if TYPE_CHECKING:
    from docker import DockerClient

MARK = "evalagent"
"""The label on everything of ours; its value is "1"."""

FOREIGN_S = 24 * 3600.0
"""What another process namespace of this machine owns is left alone for so long: its processes cannot be seen."""

_sweeping = threading.Lock()


def connect(timeout_s: float = 60.0) -> "DockerClient":
    """A client of the daemon at DOCKER_HOST or the usual socket; UsageError with the way out where there is none.

    The caller closes it. One client must not be shared between threads.
    """
    import docker  # here: it takes half a second, and most commands need no Docker

    try:
        return docker.from_env(timeout=int(timeout_s))
    except docker.errors.DockerException as error:
        raise UsageError(f"Docker is not running or not reachable ({_short(error)}). {way_out(error)}") from error


def way_out(error: BaseException) -> str:
    """What to do when the daemon cannot be reached."""
    text = str(error)
    if "Permission denied" in text or "PermissionError" in text:
        return "Add your user to the group `docker`, or use `--sandbox process`."
    where = os.environ.get("DOCKER_HOST")
    if where:
        return f"DOCKER_HOST is {where!r}: start that daemon, unset it, or use `--sandbox process`."
    return "Install Docker and start `dockerd`, or use `--sandbox process`; `evalagent doctor` says what is missing."


@contextlib.contextmanager
def daemon_errors(doing: str) -> Iterator[None]:
    """Docker's errors as ours: a missing image is the user's to mend, all else may pass by itself."""
    import docker
    import requests

    try:
        yield
    except docker.errors.ImageNotFound as error:
        raise UsageError(f"{doing}: the image is not on this machine ({_short(error)})") from error
    except (docker.errors.DockerException, requests.exceptions.RequestException, OSError) as error:
        raise SandboxUnavailable(f"{doing}: {_short(error)}") from error


def owner_labels(run_id: str) -> dict[str, str]:
    """The labels of what this process creates for a run."""
    return {
        MARK: "1",
        f"{MARK}.run": run_id,
        f"{MARK}.host": _host(),
        f"{MARK}.boot": _boot(),
        f"{MARK}.pids": _pid_namespace(),
        f"{MARK}.pid": str(os.getpid()),
        f"{MARK}.started": _process_start(os.getpid()) or "",
        f"{MARK}.made": str(int(time.time())),
    }


def abandoned(labels: Mapping[str, str], now_s: float | None = None) -> bool:
    """Whether the process that owns a labelled thing is certainly gone. What another machine owns never is."""
    if labels.get(MARK) != "1" or labels.get(f"{MARK}.host") != _host():
        return False
    if labels.get(f"{MARK}.boot") != _boot():
        return True
    if labels.get(f"{MARK}.pids") != _pid_namespace():
        made = labels.get(f"{MARK}.made", "")
        return made.isdigit() and (time.time() if now_s is None else now_s) - int(made) > FOREIGN_S
    pid = labels.get(f"{MARK}.pid", "")
    return not pid.isdigit() or _process_start(int(pid)) != labels.get(f"{MARK}.started")


def sweep() -> tuple[str, ...]:
    """Removes the containers and networks whose owner is dead; returns their names. One that resists is left."""
    with _sweeping, daemon_errors("clearing what earlier runs left"):
        client = connect()
        try:
            gone = [c.name or c.id or "" for c in containers(client) if abandoned(c.labels) and remove(c)]
            networks = client.networks.list(filters={"label": f"{MARK}=1"})
            gone += [n.name or "" for n in networks if abandoned(n.attrs.get("Labels") or {}) and remove_network(n)]
            return tuple(gone)
        finally:
            client.close()


def containers(client: "DockerClient", *labels: str) -> list[Any]:
    """All our containers, running or not, that carry these labels too (`key=value`)."""
    return list(client.containers.list(all=True, filters={"label": [f"{MARK}=1", *labels]}, ignore_removed=True))


def remove(container: Any) -> bool:
    """Kills and removes a container with its volumes; False where the daemon would not."""
    import docker
    import requests

    try:
        container.remove(force=True, v=True)
    except docker.errors.NotFound:
        return True
    except docker.errors.APIError as error:
        return "already in progress" in str(error)
    except requests.exceptions.RequestException:
        return False
    return True


def remove_network(network: Any) -> bool:
    """Removes a network, throwing off what still hangs on it; False where the daemon would not."""
    import docker
    import requests

    try:
        network.reload()
        for name in network.attrs.get("Containers") or {}:
            with contextlib.suppress(docker.errors.APIError):
                network.disconnect(name, force=True)
        network.remove()
    except docker.errors.NotFound:
        return True
    except (docker.errors.APIError, requests.exceptions.RequestException):
        return False
    return True


def address(container: Any, network: str) -> str | None:
    """The container's address on a network; None where it has none."""
    joined = container.attrs["NetworkSettings"]["Networks"].get(network) or {}
    return joined.get("IPAddress") or None


def has_image(client: "DockerClient", tag: str) -> bool:
    """Whether an image is on the daemon's machine."""
    import docker

    try:
        client.images.get(tag)
    except docker.errors.ImageNotFound:
        return False
    return True


def prune_images(client: "DockerClient", role: str, keep: int, older_than_s: float = 24 * 3600.0) -> None:
    """Removes all but the newest images of a role; younger ones, and those in use, stay."""
    import docker

    found = client.images.list(filters={"label": [f"{MARK}=1", f"{MARK}.role={role}"]})
    limit = datetime.now(UTC) - timedelta(seconds=older_than_s)
    dated = sorted(((str(image.attrs.get("Created", "")), image) for image in found), key=lambda pair: pair[0])
    for created, image in dated[: max(0, len(dated) - keep)]:
        if created[:19] < limit.isoformat()[:19]:
            with contextlib.suppress(docker.errors.APIError):
                client.images.remove(str(image.id))


def host_user(client: "DockerClient", folder: Path) -> str:
    """`uid:gid` as which a container writes files into a bind-mounted folder that its owner here can read.

    A rootless daemon maps its user 0 to whoever started it.
    """
    if any("rootless" in option for option in client.info().get("SecurityOptions") or ()):
        return "0:0"
    status = folder.stat()
    return f"{status.st_uid}:{status.st_gid}"


def _short(error: BaseException) -> str:
    text = " ".join(str(getattr(error, "explanation", None) or error).split())
    return text if len(text) <= 300 else text[:297] + "..."


def _host() -> str:
    for file in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        with contextlib.suppress(OSError):
            if name := Path(file).read_text("ascii").strip():
                return hashlib.sha256(name.encode()).hexdigest()[:16]
    return platform.node()


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return "unknown"


def _pid_namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return "unknown"


def _process_start(pid: int) -> str | None:
    """When a process started, in clock ticks since boot: with the pid it names a process. None: there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return _alive_without_proc(pid)
    return None if fields[0] in (b"Z", b"X") else fields[19].decode()


def _alive_without_proc(pid: int) -> str | None:
    if Path("/proc/self/stat").exists():
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except OSError:
        return ""
    return ""


def socket_there() -> bool:
    """Whether there is anything to connect to: quick, without loading the SDK; says nothing of what answers there."""
    return bool(os.environ.get("DOCKER_HOST")) or Path("/var/run/docker.sock").is_socket()
