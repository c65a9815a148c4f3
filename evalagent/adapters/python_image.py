"""A Docker image made of this machine's own Python: no registry, no download.

It holds the interpreter at the path it has here, its standard library, the shared libraries that all of it loads, a
shell with a few programs, and of the installed distributions those that an agent needs: what its source imports, what
its requirements name, what instruments it, and all that these require. Its tag is a hash of what goes into it.
"""

import functools
import hashlib
import importlib.metadata
import importlib.util
import io
import os
import platform
import py_compile
import re
import shutil
import ssl
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from evalagent.adapters.agent_needs import Needs
from evalagent.adapters.docker_daemon import MARK, daemon_errors, has_image, prune_images
from evalagent.errors import SandboxUnavailable, UsageError

if TYPE_CHECKING:
    from docker import DockerClient

REPOSITORY = "evalagent-python"
RECIPE = "2"
"""Part of the tag: raise it when this file makes another image of the same things."""

KEPT_IMAGES = 10

PROGRAMS = (
    *("sh", "cat", "cp", "date", "echo", "env", "false", "grep", "head", "ls", "mkdir", "mv", "rm", "rmdir"),
    *("sed", "sleep", "sort", "tail", "test", "touch", "true", "wc"),
)
"""What an agent's tools may expect of any machine."""

NOT_IN_STDLIB = frozenset(
    {"test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3", "site-packages"}
)


def build(client: "DockerClient", wanted: Needs) -> str:
    """The tag of the image with this Python and these distributions; made now if it is not there."""
    tag = f"{REPOSITORY}:{fingerprint(wanted)}"
    if has_image(client, tag):
        return tag
    if not sys.platform.startswith("linux"):
        raise UsageError(
            "this machine's Python is not Linux's, so no image can be made of it: build one for the agent "
            "(`FROM python:3.11-slim`) and name it as `agent.image` in suite.yaml"
        )
    with tempfile.TemporaryFile() as archive, tempfile.TemporaryDirectory() as scratch:
        with tarfile.open(fileobj=archive, mode="w") as tar:
            _Filler(tar, Path(scratch)).fill(wanted)
        archive.seek(0)
        with daemon_errors("making the agent's image"):
            client.api.import_image_from_data(
                archive,
                repository=REPOSITORY,
                tag=tag.partition(":")[2],
                changes=[
                    f"ENV PATH={Path(interpreter()).parent}:/usr/local/bin:/usr/bin:/bin",
                    "ENV LANG=C.UTF-8 PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1",
                    f"LABEL {MARK}=1 {MARK}.role=python",
                    "WORKDIR /work",
                ],
            )
            if not has_image(client, tag):
                raise SandboxUnavailable(f"Docker did not keep the image {tag}")
            prune_images(client, "python", KEPT_IMAGES)
    return tag


def fingerprint(wanted: Needs) -> str:
    """16 hex characters: the same for the same interpreter, distributions and recipe."""
    status = Path(interpreter()).stat()
    parts = [RECIPE, sys.version, platform.machine(), interpreter(), f"{status.st_size} {status.st_mtime_ns}"]
    parts += [f"{name}=={importlib.metadata.version(name)}" for name in wanted.present]
    parts += [f"pip {line}" for line in wanted.absent]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def interpreter() -> str:
    """The real path of the interpreter under this environment, in the image as here."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


@functools.cache
def site_packages() -> str:
    """Where that interpreter, outside of any environment, looks for distributions first. Only it knows: Debian's looks
    elsewhere than others."""
    asked = [interpreter(), "-I", "-S", "-c", "import site; print(site.getsitepackages()[0])"]
    return subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


class _Filler:
    """Puts files into the archive, each path once."""

    def __init__(self, tar: tarfile.TarFile, scratch: Path) -> None:
        self._tar = tar
        self._scratch = scratch
        self._paths: set[str] = set()
        self._binaries: list[str] = []

    def fill(self, wanted: Needs) -> None:
        self._standard_library()
        site = PurePosixPath(site_packages())
        for name in wanted.present:
            self._distribution(importlib.metadata.distribution(name), site)
        if wanted.absent:
            self._install(wanted.absent, site)
        for program in PROGRAMS:
            if found := shutil.which(program, path="/usr/bin:/bin"):
                self._file(f"/bin/{program}", Path(found))
        self._libraries()
        self._machine()

    def _standard_library(self) -> None:
        python = interpreter()
        self._file(python, Path(python))
        for name in ("python", "python3"):
            self._link(str(Path(python).parent / name), Path(python).name)
            self._link(f"/usr/local/bin/{name}", python)
        for home in dict.fromkeys((sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib", vars=_base()))):
            for folder, folders, names in os.walk(home):
                folders[:] = sorted(
                    f for f in folders if f not in NOT_IN_STDLIB and not f.startswith(("config-", "__pycache__"))
                )
                for name in sorted(names):
                    if not name.endswith((".a", ".pyc", ".exe")) and not name.startswith("EXTERNALLY-"):
                        self._module(str(Path(folder) / name), Path(folder) / name)

    def _distribution(self, distribution: importlib.metadata.Distribution, site: PurePosixPath) -> None:
        for file in distribution.files or ():
            if ".." in file.parts or file.is_absolute() or file.suffix == ".pyc":
                continue
            located = Path(str(distribution.locate_file(file)))
            if located.is_file():
                self._module(str(site / PurePosixPath(*file.parts)), located)

    def _install(self, lines: Iterable[str], site: PurePosixPath) -> None:
        target = self._scratch / "installed"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]
        done = subprocess.run(
            [*command, "--target", str(target), *lines], capture_output=True, text=True, timeout=900, check=False
        )
        if done.returncode:
            said = " ".join(done.stderr.split())[-500:]
            raise UsageError(f"the agent's requirements could not be installed ({', '.join(lines)}): {said}")
        for file in sorted(p for p in target.rglob("*") if p.is_file() and p.suffix != ".pyc"):
            self._module(str(site / file.relative_to(target).as_posix()), file)

    def _module(self, path: str, file: Path) -> None:
        self._file(path, file)
        if file.suffix == ".py":
            self._compiled(path, file)

    def _compiled(self, path: str, file: Path) -> None:
        """Its bytecode: the image is read-only, so that every run would compile it again."""
        cached = PurePosixPath(path).parent / "__pycache__" / f"{file.stem}.{sys.implementation.cache_tag}.pyc"
        here = Path(importlib.util.cache_from_source(str(file)))
        try:
            head = here.open("rb").read(16)
            status = file.stat()
            now = (int(status.st_mtime) & 0xFFFFFFFF).to_bytes(4, "little")
            current = head[8:16] == now + (status.st_size & 0xFFFFFFFF).to_bytes(4, "little")
        except OSError:
            current = False
        if current:
            self._file(str(cached), here)
            return
        made = self._scratch / "module.pyc"
        unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
        try:
            py_compile.compile(str(file), str(made), dfile=path, doraise=True, invalidation_mode=unchecked)
        except (py_compile.PyCompileError, OSError, ValueError, RecursionError):
            return
        self._file(str(cached), made)

    def _libraries(self) -> None:
        """The shared libraries that what is in here loads, as this machine's loader finds them."""
        for start in range(0, len(self._binaries), 200):
            listed = subprocess.run(
                ["ldd", *self._binaries[start : start + 200]], capture_output=True, text=True, check=False
            )
            for path in sorted(set(re.findall(r"(?:=> |^\s)(/\S+) \(0x", listed.stdout, re.MULTILINE))):
                self._file(path, Path(path))
        for name in ("libnss_files.so.2", "libnss_dns.so.2", "libresolv.so.2"):
            for folder in {str(Path(p).parent) for p in self._paths if re.search(r"/libc\.so\.6$", p)}:
                if (Path(folder) / name).exists():
                    self._file(f"{folder}/{name}", Path(folder) / name)

    def _machine(self) -> None:
        certificates = {ssl.get_default_verify_paths().openssl_cafile, "/etc/ssl/certs/ca-certificates.crt"}
        for path in ("/etc/ld.so.cache", *sorted(certificates)):
            if Path(path).is_file():
                self._file(path, Path(path))
        self._text("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/tmp:/bin/sh\n")
        self._text("/etc/group", "root:x:0:\nnogroup:x:65534:\n")
        self._text("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n")
        for folder in ("/tmp", "/work"):  # noqa: S108 - in the image
            self._folder(folder)

    def _file(self, path: str, file: Path) -> None:
        if path in self._paths:
            return
        self._folder(str(PurePosixPath(path).parent))
        self._paths.add(path)
        info = tarfile.TarInfo(path.lstrip("/"))
        with file.open("rb") as content:
            status = os.fstat(content.fileno())
            info.size, info.mtime = status.st_size, int(status.st_mtime)
            info.mode = 0o755 if status.st_mode & 0o111 else 0o644
            if content.read(4) == b"\x7fELF":
                self._binaries.append(str(file))
            content.seek(0)
            self._tar.addfile(info, content)

    def _text(self, path: str, text: str) -> None:
        self._folder(str(PurePosixPath(path).parent))
        self._paths.add(path)
        info = tarfile.TarInfo(path.lstrip("/"))
        info.size = len(text.encode())
        self._tar.addfile(info, io.BytesIO(text.encode()))

    def _link(self, path: str, target: str) -> None:
        if path in self._paths:
            return
        self._folder(str(PurePosixPath(path).parent))
        self._paths.add(path)
        info = tarfile.TarInfo(path.lstrip("/"))
        info.type, info.linkname = tarfile.SYMTYPE, target
        self._tar.addfile(info)

    def _folder(self, path: str) -> None:
        for folder in (*reversed(PurePosixPath(path).parents), PurePosixPath(path)):
            name = str(folder)
            if name == "/" or name in self._paths:
                continue
            self._paths.add(name)
            info = tarfile.TarInfo(name.lstrip("/"))
            info.type, info.mode = tarfile.DIRTYPE, 0o1777 if name == "/tmp" else 0o755  # noqa: S108 - in the image
            self._tar.addfile(info)


def _base() -> dict[str, str]:
    return {"installed_base": sys.base_prefix, "installed_platbase": sys.base_exec_prefix, "platbase": sys.base_prefix}
