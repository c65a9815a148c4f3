"""What this machine has of what EvalAgent can use, and how to get the rest: `evalagent doctor`.

Secrets are looked for by name; no value of one is read further than to see that it is not empty.
"""

import os
import platform
import shutil
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit

DEADLINE_S = 1.8
"""For all of it: what has not answered by then is said to be silent."""

LOW_DISK = 5 << 30
"""Bytes; an image, a run and its warehouse fit into them."""


@dataclass(frozen=True, slots=True)
class Capability:
    """One thing that a machine has or lacks."""

    name: str
    available: bool
    detail: str
    """What was found, or why not."""
    how_to_get: str = ""
    """What to do for it; meant for one that is not available."""


Found = tuple[bool, str]


def inspect(environment: Mapping[str, str] | None = None) -> tuple[Capability, ...]:
    """Everything there is to know, in a fixed order, within two seconds; never raises.

    `environment` stands for the process's own where it is given; DOCKER_HOST is Docker's to read, from the latter.
    """
    said = os.environ if environment is None else environment
    checks: tuple[tuple[str, Callable[[], Found], str], ...] = (
        ("Python", _python, "Python 3.11 or newer: https://www.python.org/downloads"),
        ("DuckDB", lambda: _package("duckdb"), "`make setup` installs what requirements.lock names"),
        ("Store", lambda: _store(said), "wait until its holder is done; it opens the warehouse for seconds at a time"),
        ("Disk", lambda: _disk(_home(said)), "free some space, or set EVALAGENT_HOME to a folder on a larger disk"),
        (
            "Docker",
            _docker,
            "install it (Debian: docker.io) and start `dockerd`, as `.ci/services` does",
        ),
        ("Collector image", _collector_image, "`infra/collector/build.sh`, or docker pull (docs/docker.md)"),
        ("Go", _go, "only to build the collector's image: https://go.dev/dl; `infra/collector/go.sh` finds one"),
        ("Chromium", _chromium, "only for the tests of the HTML report: `apt-get install chromium`"),
        ("ANTHROPIC_API_KEY", lambda: _variable(said, "ANTHROPIC_API_KEY"), "set it for `--judge anthropic`"),
        (
            "AWS credentials",
            lambda: _aws(said),
            "set AWS_PROFILE, keys or AWS_BEARER_TOKEN_BEDROCK for `--judge bedrock`",
        ),
        ("Prefect server", lambda: _prefect(said), "`make server`, then set PREFECT_API_URL=http://127.0.0.1:4200/api"),
    )
    results: dict[str, Found] = {}
    threads = [
        threading.Thread(target=_noted, args=(name, check, results), name=f"doctor {name}", daemon=True)
        for name, check, _ in checks
    ]
    for thread in threads:
        thread.start()
    end = time.monotonic() + DEADLINE_S
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    silent = (False, f"did not answer within {DEADLINE_S:g} s")
    return tuple(Capability(name, *results.get(name, silent), how) for name, _, how in checks)


def _noted(name: str, check: Callable[[], Found], results: dict[str, Found]) -> None:
    try:
        results[name] = check()
    except Exception as error:  # noqa: BLE001 - a doctor who faints helps nobody
        results[name] = (False, f"{type(error).__name__}: {str(error)[:200]}")


def _python() -> Found:
    return True, f"{platform.python_version()} ({platform.system()} {platform.machine()})"


def _package(name: str) -> Found:
    try:
        return True, metadata.version(name)
    except metadata.PackageNotFoundError:
        return False, "not installed"


def _home(said: Mapping[str, str]) -> Path:
    where = said.get("EVALAGENT_HOME", "").strip()
    return Path(where).expanduser() if where else Path.cwd() / ".evalagent"


def _store(said: Mapping[str, str]) -> Found:
    from filelock import FileLock, Timeout

    home = _home(said)
    lock = home / "warehouse.lock"
    where = str(home) if said.get("EVALAGENT_HOME") else f"{home} (or .evalagent beside the suite)"
    if not lock.exists():
        return True, f"{where}: no warehouse yet"
    try:
        with FileLock(lock, timeout=0):
            return True, f"{where}: free"
    except Timeout:
        holder = home / "warehouse.holder"
        by = holder.read_text("utf-8")[:200] if holder.is_file() else "another process"
        return False, f"{where}: held by {by}"


def _disk(home: Path) -> Found:
    place = next(folder for folder in (home, *home.parents) if folder.exists())
    free = shutil.disk_usage(place).free
    return free >= LOW_DISK, f"{free / (1 << 30):.1f} GiB free at {place}"


def _docker() -> Found:
    from evalagent.adapters import docker_daemon
    from evalagent.errors import EvalAgentError

    try:
        client = docker_daemon.connect(timeout_s=1)
    except EvalAgentError as error:
        return False, str(error)[:300]
    try:
        told = client.info()
        limits = (
            "" if told.get("MemoryLimit") and told.get("PidsLimit") else "; memory or process limits are not enforced"
        )
        return not limits, f"{told.get('ServerVersion')}, cgroup v{told.get('CgroupVersion', '?')}{limits}"
    finally:
        client.close()


def _collector_image() -> Found:
    from evalagent.adapters import docker_daemon
    from evalagent.adapters.collector import IMAGES
    from evalagent.errors import EvalAgentError

    try:
        client = docker_daemon.connect(timeout_s=1)
    except EvalAgentError:
        return False, "Docker is not there"
    try:
        found = [image for image in IMAGES if docker_daemon.has_image(client, image)]
    finally:
        client.close()
    return bool(found), found[0] if found else f"neither {' nor '.join(IMAGES)}"


def _go() -> Found:
    found = shutil.which("go") or next((p for p in ("/usr/local/go/bin/go",) if Path(p).is_file()), None)
    if not found:
        return False, "not installed"
    told = subprocess.run(
        [found, "env", "GOVERSION"], capture_output=True, text=True, timeout=1.5, check=False, cwd="/"
    )
    return told.returncode == 0, f"{told.stdout.strip()} ({found})"


def _chromium() -> Found:
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        if found := shutil.which(name):
            return True, found
    return False, "not installed"


def _variable(said: Mapping[str, str], name: str) -> Found:
    return (True, "set") if said.get(name, "").strip() else (False, "not set")


def _aws(said: Mapping[str, str]) -> Found:
    """By the ways that need no network; what a machine's own role gives is not looked for."""
    if said.get("AWS_BEARER_TOKEN_BEDROCK"):
        return True, "AWS_BEARER_TOKEN_BEDROCK is set"
    if said.get("AWS_ACCESS_KEY_ID") and said.get("AWS_SECRET_ACCESS_KEY"):
        return True, "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are set"
    for name in ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_PROFILE"):
        if said.get(name):
            return True, f"{name} is set"
    home = Path(said.get("HOME") or Path.home())
    for variable, usual in (("AWS_SHARED_CREDENTIALS_FILE", "credentials"), ("AWS_CONFIG_FILE", "config")):
        file = Path(said.get(variable) or home / ".aws" / usual)
        if file.is_file():
            return True, f"{variable if said.get(variable) else f'~/.aws/{usual}'} is there"
    return False, "none in the environment or ~/.aws (a role of the machine itself is not looked for)"


def _prefect(said: Mapping[str, str]) -> Found:
    url = said.get("PREFECT_API_URL", "").strip()
    if not url:
        return False, "PREFECT_API_URL is not set: each run starts a temporary server, which takes half a minute"
    parts = urlsplit(url)
    shown = f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"
    if parts.scheme not in ("http", "https"):
        return False, f"PREFECT_API_URL is no http address: {shown}"
    try:
        with urllib.request.urlopen(f"{url.rstrip('/')}/health", timeout=1) as answer:  # noqa: S310 - http only, above
            return answer.status == 200, f"{shown} answers"
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):
            return True, f"{shown} answers, and asks who we are"
        return False, f"{shown} answers {error.code}"
    except OSError as error:
        return False, f"{shown} does not answer ({getattr(error, 'reason', error)})"
