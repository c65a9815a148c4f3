"""A Docker image made of this machine's own Python: no registry, no download.

It holds the interpreter at the path it has here, its standard library, the shared libraries that all of it loads, a
shell with a few programs, and of the installed distributions those that an agent needs: what its source imports, what
its requirements name, what instruments it, and all that these require. Its tag is a hash of what goes into it.
"""

import ast
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
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

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

INSTRUMENTING = ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http")
INSTRUMENTORS = ("opentelemetry-instrumentation", "openinference-instrumentation")
"""Distributions whose name starts so come along: the hook switches them on."""

NOT_IN_STDLIB = frozenset(
    {"test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3", "site-packages"}
)
NOT_IN_SOURCE = frozenset({".git", ".hg", ".venv", "venv", "node_modules", "__pycache__", ".evalagent", ".env"})
"""Of an agent's folder: neither history, environments, runs nor secrets."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What an agent needs of its Python."""

    present: tuple[str, ...]
    """Installed distributions to copy, with everything they require; normalised names, sorted."""
    absent: tuple[str, ...]
    """Requirement lines that nothing installed here satisfies: for pip."""


def needs(source: Path) -> Needs:
    """What the Python files and the requirements of an agent's folder ask for."""
    installed = {_normal(d.metadata["Name"]): d for d in importlib.metadata.distributions() if d.metadata["Name"]}
    roots: dict[str, frozenset[str]] = {name: frozenset() for name in INSTRUMENTING if name in installed}
    roots |= {name: frozenset() for name in installed if name.startswith(INSTRUMENTORS)}
    providers = importlib.metadata.packages_distributions()
    for module in imported(source):
        roots |= {_normal(name): frozenset[str]() for name in providers.get(module, ())}
    absent = []
    for line in requirement_lines(source):
        name, extras, fits = _requirement(line, installed)
        if fits:
            roots[name] = roots.get(name, frozenset()) | extras
        elif fits is not None:
            absent.append(line)
    return Needs(_closure(roots, installed), tuple(sorted(absent)))


def imported(source: Path) -> frozenset[str]:
    """The top-level modules that the Python files of a folder import, by any import statement or literal
    `import_module`; the folder's own excluded. A file that is not Python is passed over."""
    found: set[str] = set()
    own = {p.stem for p in source.iterdir()} if source.is_dir() else set()
    for file in source_files(source):
        if file.suffix != ".py":
            continue
        try:
            tree = ast.parse(file.read_bytes())
        except (SyntaxError, ValueError, OSError, RecursionError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                found.update(alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
            elif isinstance(node, ast.Call) and _called(node) in ("import_module", "__import__") and node.args:
                name = node.args[0]
                if isinstance(name, ast.Constant) and isinstance(name.value, str):
                    found.add(name.value.partition(".")[0])
    return frozenset(found - own - sys.stdlib_module_names)


def requirement_lines(source: Path) -> tuple[str, ...]:
    """requirements.txt and the dependencies of pyproject.toml in an agent's folder. Options of pip are passed over."""
    lines: list[str] = []
    file = source / "requirements.txt"
    if file.is_file():
        lines += [re.split(r"\s#", line, maxsplit=1)[0].strip() for line in file.read_text("utf-8").splitlines()]
    project = source / "pyproject.toml"
    if project.is_file():
        try:
            declared = tomllib.loads(project.read_text("utf-8")).get("project", {}).get("dependencies", [])
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, AttributeError) as error:
            raise UsageError(f"not valid TOML: {error}", file=str(project)) from error
        lines += [str(line) for line in declared]
    return tuple(line for line in lines if line and not line.startswith(("#", "-")))


def source_files(source: Path) -> Iterator[Path]:
    """The files of an agent's folder that go into its image, sorted; never one that a link takes from elsewhere."""
    home = source.resolve()
    for folder, folders, names in os.walk(home):
        folders[:] = sorted(f for f in folders if f not in NOT_IN_SOURCE and not (Path(folder) / f).is_symlink())
        for name in sorted(names):
            file = Path(folder) / name
            if name in NOT_IN_SOURCE or name.startswith(".env.") or name.endswith((".pyc", ".pyo")):
                continue
            if file.resolve().is_relative_to(home) and file.is_file():
                yield file


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


def provided(module: str) -> bool:
    """Whether this machine's environment could import a module, so that an image lacks it for our want of care."""
    try:
        return importlib.util.find_spec(module.partition(".")[0]) is not None
    except (ImportError, ValueError):
        return False


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


def _called(node: ast.Call) -> str:
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _requirement(
    line: str, installed: Mapping[str, importlib.metadata.Distribution]
) -> tuple[str, frozenset[str], bool | None]:
    """Name, extras and whether it is installed as asked for (None: not for this machine)."""
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        asked = Requirement(line)
    except InvalidRequirement:
        return line, frozenset(), False
    if asked.marker and not asked.marker.evaluate({"extra": ""}):
        return _normal(asked.name), frozenset(), None
    found = installed.get(_normal(asked.name))
    fits = found is not None and not asked.url and asked.specifier.contains(found.version, prereleases=True)
    return _normal(asked.name), frozenset(asked.extras), fits


def _closure(
    roots: Mapping[str, frozenset[str]], installed: Mapping[str, importlib.metadata.Distribution]
) -> tuple[str, ...]:
    """The roots and everything installed that they require, extras as asked for."""
    from packaging.requirements import InvalidRequirement, Requirement

    reached: dict[str, frozenset[str]] = {}
    waiting = list(roots.items())
    while waiting:
        name, extras = waiting.pop()
        if name not in installed or (name in reached and extras <= reached[name]):
            continue
        reached[name] = reached.get(name, frozenset()) | extras
        for line in installed[name].requires or ():
            try:
                asked = Requirement(line)
            except InvalidRequirement:
                continue
            if asked.marker is None or any(asked.marker.evaluate({"extra": e}) for e in ("", *sorted(reached[name]))):
                waiting.append((_normal(asked.name), frozenset(asked.extras)))
    return tuple(sorted(reached))
