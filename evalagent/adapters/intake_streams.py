"""The bytes of an input as they come. Never all of them at once, unless it is small."""

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from evalagent.adapters.files import STANDARD_INPUT, Input, shown
from evalagent.errors import UsageError
from evalagent.traces.unpacking import Unpacking

PIECE = 4 << 20
"""Bytes of text that are read at a time; what is smaller is read whole."""
_BLOCK = 1 << 20


class Raw:
    """The bytes of an input as given, hashed and counted as they go by, and kept elsewhere if wished."""

    def __init__(self, given: Input, keep: Path | None = None) -> None:
        self.size = 0
        self._given = given
        self._hash = hashlib.blake2b(digest_size=16)
        self._copy: BinaryIO | None = keep.open("wb") if keep else None

    def blocks(self) -> Iterator[bytes]:
        """Block after block. UsageError if it cannot be read."""
        name = shown(self._given.path) if self._given.path else STANDARD_INPUT
        try:
            if self._given.path is None:
                if sys.stdin is None:
                    raise UsageError("standard input is closed", file=STANDARD_INPUT)
                if self._given.begun:
                    yield self._noted(self._given.begun)
                yield from self._passed(sys.stdin.buffer)
            else:
                with self._given.path.open("rb") as file:
                    yield from self._passed(file)
        except OSError as error:
            raise UsageError(f"cannot be read: {error.strerror}", file=name) from error
        finally:
            if self._copy is not None:
                self._copy.close()

    def _passed(self, file: BinaryIO) -> Iterator[bytes]:
        while block := file.read(_BLOCK):
            yield self._noted(block)

    def _noted(self, block: bytes) -> bytes:
        self.size += len(block)
        self._hash.update(block)
        if self._copy is not None:
            self._copy.write(block)
        return block

    @property
    def digest(self) -> str:
        """Of what went by so far."""
        return self._hash.hexdigest()


def digest_of(path: Path) -> str:
    """The digest of a whole file, as `Raw` gives it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


class Given:
    """An input unpacked block by block; its bytes as they were are kept until `forget`."""

    def __init__(self, raw: Raw, size: int | None) -> None:
        self.kept: list[bytes] | None = []
        self.unpacking = Unpacking(self._passed(raw), lambda: raw.size if size is None else size)

    def forget(self) -> None:
        """No longer keep the bytes as they were."""
        self.kept = None

    def _passed(self, raw: Raw) -> Iterator[bytes]:
        for block in raw.blocks():
            if self.kept is not None:
                self.kept.append(block)
            yield block
