"""Folders that an agent may have filled: walked and removed without following links, and without a stack or a number
of open files that grows with their depth."""

import contextlib
import itertools
import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
"""How a folder is opened that must be none but itself."""


@contextlib.contextmanager
def descended(parent: int, names: Sequence[str]) -> Iterator[int]:
    """A descriptor of a folder some way below another; each on the way is closed when the next one is open."""
    at = os.dup(parent)
    try:
        for name in names:
            below = os.open(name, FOLDER, dir_fd=at)
            os.close(at)
            at = below
        yield at
    finally:
        os.close(at)


@contextlib.contextmanager
def scratch(prefix: str) -> Iterator[Path]:
    """A new folder for a while. What cannot be removed from it at the end, such as files that another user made, stays
    and is no error."""
    place = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        yield place
    finally:
        with contextlib.suppress(OSError):
            remove(place)


def remove(place: Path) -> None:
    """Remove a file or a folder with all that is in it, however deep it is nested and whatever its permissions forbid.

    Links are not followed. Folders inside are moved to the top before they are emptied, so that neither the stack nor
    the number of open files grows with the depth. OSError if something cannot be removed.
    """
    if place.is_symlink() or not place.is_dir():
        place.unlink(missing_ok=True)
        return
    place.chmod(0o700)
    top = os.open(place, FOLDER)
    try:
        taken = set(os.listdir(top))  # noqa: PTH208 a descriptor has no Path
        free = filter(lambda name: name not in taken, map("removed-{}".format, itertools.count()))
        waiting = _emptied(top, top, free)
        while waiting:
            name = waiting.pop()
            with descended(top, [name]) as at:
                waiting += _emptied(at, top, free)
            os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    place.rmdir()


def _emptied(at: int, top: int, free: Iterator[str]) -> list[str]:
    """Remove the files of a folder and move its folders to the top; the names that they have there."""
    moved = []
    for entry in os.listdir(at):
        if not stat.S_ISDIR(os.stat(entry, dir_fd=at, follow_symlinks=False).st_mode):
            os.unlink(entry, dir_fd=at)
            continue
        os.chmod(entry, 0o700, dir_fd=at)
        name = entry if at == top else next(free)
        if at != top:
            os.rename(entry, name, src_dir_fd=at, dst_dir_fd=top)
        moved.append(name)
    return moved
