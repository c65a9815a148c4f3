"""The bytes of an input as they come, unpacked on the way. Never all of them at once."""

import codecs
import hashlib
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import zstandard

from evalagent.adapters.files import STANDARD_INPUT, Input, shown
from evalagent.errors import UsageError
from evalagent.traces.unpacking import MOST_LAYERS, MOST_RATIO, UNSUSPECTED

PIECE = 4 << 20
"""Bytes of text that are read at a time; what is smaller is read whole."""
_BLOCK = 1 << 20
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_ZSTD_IN = 1 << 11


class Bomb(Exception):
    """A small file that unpacks to a monstrous one; nothing of it counts."""


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


class Unpacking:
    """What is packed in the blocks of a file, gzip and zstd by their magic numbers, a block at a time.

    `faults` says what was wrong with the packing, in the words of `traces.unpacking`; what could be unpacked is given.
    `kept` gets the blocks as given until `forget`. Bomb for what unpacks to more than `UNSUSPECTED` bytes and more than
    `MOST_RATIO` times the size of the file.
    """

    def __init__(self, raw: Raw, size: int | None, kept: list[bytes]) -> None:
        self._raw, self._size = raw, size
        self._kept: list[bytes] | None = kept
        self.faults: list[str] = []

    def forget(self) -> None:
        """No longer keep the blocks of the file as they were."""
        self._kept = None

    def _given(self) -> Iterator[bytes]:
        for block in self._raw.blocks():
            if self._kept is not None:
                self._kept.append(block)
            yield block

    def blocks(self) -> Iterator[bytes]:
        """The unpacked content, without a mark of its encoding and in UTF-8."""
        blocks = self._given()
        for _ in range(MOST_LAYERS):
            head, blocks = _peeked(blocks, 8)
            if head[:2] == _GZIP:
                blocks = self._counted(self._gunzipped(blocks))
            elif head[:4] == _ZSTD:
                blocks = self._counted(self._unzstd(blocks))
            elif head[4:8] == _ZSTD:
                blocks = self._counted(self._unframed(blocks))
                break
            else:
                break
        else:
            head, blocks = _peeked(blocks, 8)
            if head[:2] == _GZIP or _ZSTD in (head[:4], head[4:8]):
                self.faults.append(f"packed more than {MOST_LAYERS} times")
                _drain(self._raw)
                return
        head, blocks = _peeked(blocks, 3)
        if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
            decoder = codecs.getincrementaldecoder("utf-16")("replace")
            for block in blocks:
                yield decoder.decode(block).encode("utf-8", "replace")
            yield decoder.decode(b"", final=True).encode("utf-8", "replace")
        elif head == b"\xef\xbb\xbf":
            skip = 3
            for block in blocks:
                yield block[skip:]
                skip = max(0, skip - len(block))
        else:
            yield from blocks

    def _counted(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        total = 0
        for block in blocks:
            total += len(block)
            most = max(UNSUSPECTED, MOST_RATIO * (self._raw.size if self._size is None else self._size))
            if total > most:
                raise Bomb(
                    f"unpacks to more than {most} bytes, over {MOST_RATIO} times its size: nothing of it was read"
                )
            yield block

    def _gunzipped(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        source = _Bytes(blocks)
        while source.starts(_GZIP):
            member = zlib.decompressobj(wbits=31)
            waiting = b""
            try:
                while not member.eof:
                    waiting = waiting or source.take()
                    if not waiting:
                        self.faults.append("the gzip data ends too early; what was there is read")
                        return
                    piece = member.decompress(waiting, _BLOCK)
                    waiting = member.unconsumed_tail
                    if piece:
                        yield piece
            except zlib.error as error:
                self.faults.append(f"damaged gzip data, read up to there: {error}")
                _drain(source)
                return
            source.back(member.unused_data)
        self._no_rest(source)

    def _unzstd(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        source = _Bytes(blocks)
        while source.starts(_ZSTD):
            frame = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()
            try:
                while not frame.eof:
                    waiting = source.take(_ZSTD_IN)
                    if not waiting:
                        self.faults.append("the zstd data ends too early; what was there is read")
                        return
                    piece = frame.decompress(waiting)
                    if piece:
                        yield piece
            except zstandard.ZstdError as error:
                self.faults.append(f"damaged zstd data, read up to there: {error}")
                _drain(source)
                return
            source.back(frame.unused_data)
        self._no_rest(source)

    def _no_rest(self, source: "_Bytes") -> None:
        rest, nuls, ended = 0, 0, False  # without the zeros that lead and those that end it
        while block := source.take():
            if not ended:
                block = block.lstrip(b"\0")
                ended = bool(block)
            bare = block.rstrip(b"\0")
            if bare:
                rest += nuls + len(bare)
                nuls = len(block) - len(bare)
            else:
                nuls += len(block)
        if rest:
            self.faults.append(f"{rest} bytes after the end of the packed data")

    def _unframed(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        source = _Bytes(blocks)
        position = 0
        while source.starts(b""):
            length = int.from_bytes(source.exactly(4), "big")
            start = position + 4
            packed = source.exactly(length)
            position = start + length
            if packed[:4] != _ZSTD or len(packed) < length:
                self.faults.append(f"a cut or damaged record at byte {position - length - 4}; what came before is read")
                _drain(source)
                return
            piece = b"".join(self._unzstd(iter([packed])))
            yield piece + b"\n" if piece[:1] == b"{" else len(piece).to_bytes(4, "big") + piece


class _Bytes:
    """Blocks as one stream of bytes."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._held = b""

    def starts(self, mark: bytes) -> bool:
        """Whether there is more, and it begins so."""
        while len(self._held) < max(1, len(mark)):
            block = next(self._blocks, b"")
            if not block:
                return False
            self._held += block
        return self._held.startswith(mark)

    def take(self, most: int = _BLOCK) -> bytes:
        """Up to so many bytes; none at the end."""
        if not self._held:
            self._held = next(self._blocks, b"")
        taken, self._held = self._held[:most], self._held[most:]
        return taken

    def exactly(self, size: int) -> bytes:
        """So many bytes, fewer only at the end."""
        parts, have = [], 0
        while have < size:
            part = self.take(min(size - have, _BLOCK))
            if not part:
                break
            parts.append(part)
            have += len(part)
        return b"".join(parts)

    def back(self, rest: bytes) -> None:
        """Put bytes back."""
        self._held = rest + self._held


def _drain(source: "_Bytes | Raw") -> None:
    """Read to the end, so that all of the input is hashed and counted."""
    if isinstance(source, _Bytes):
        while source.take():
            pass


def _peeked(blocks: Iterator[bytes], size: int) -> tuple[bytes, Iterator[bytes]]:
    """The first bytes, and the blocks with them still there."""
    head: list[bytes] = []
    have = 0
    while have < size:
        block = next(blocks, None)
        if block is None:
            break
        head.append(block)
        have += len(block)
    first = b"".join(head)
    return first[:size], _chained(first, blocks)


def _chained(first: bytes, blocks: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from blocks
