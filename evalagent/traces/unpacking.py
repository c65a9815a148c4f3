"""What is packed in a file: gzip and zstd by their magic numbers, UTF-16 by its mark. A block at a time, or at once."""

import codecs
import io
import zlib
from collections.abc import Callable, Iterator

import zstandard

from evalagent.traces.harvest import Harvest

MOST_UNPACKED = 4 << 30
"""Bytes that one file may unpack to where it is held at once: a small file must not fill the memory."""
MOST_RATIO, UNSUSPECTED = 200, 1 << 30
"""A file that unpacks to more than both, so many times its own size and so many bytes, is a bomb. Traces are packed to
a tenth or a fiftieth."""
MOST_LAYERS = 3
"""How often a file may be packed: a packed file that was stored by a server that packs, and once more."""
_BLOCK = 1 << 20
_ZSTD_IN = 1 << 11
"""Packed bytes looked at at a time; zstd cannot be told when to stop, and makes 32 KB of a byte at worst."""
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


class Bomb(Exception):
    """A small file that unpacks to a monstrous one; nothing of it counts."""


def unpack(
    data: bytes,
    harvest: Harvest,
    most: int = MOST_UNPACKED,
    ratio: int | None = None,
    unsuspected: int | None = None,
) -> bytes:
    """The content, also of what was packed several times. Of a damaged or too large archive what could be unpacked, of
    a bomb nothing; the fault is rejected under line 0.

    `most`: bytes that are unpacked at most; `ratio` and `unsuspected` as in `Unpacking`.
    """
    if data[:2] != _GZIP and _ZSTD not in (data[:4], data[4:8]):
        if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return data.decode("utf-16", "replace").encode("utf-8", "replace")
        return data.removeprefix(b"\xef\xbb\xbf")
    given = (data[at : at + _BLOCK] for at in range(0, len(data), _BLOCK))
    unpacking = Unpacking(given, lambda: len(data), ratio=ratio, unsuspected=unsuspected)
    buffer = io.BytesIO()
    try:
        for block in unpacking.blocks():
            buffer.write(block)
            if buffer.tell() > most:
                harvest.reject(f"unpacks to more than {most} bytes; the rest was not read", 0)
                break
    except Bomb as bomb:
        buffer = io.BytesIO()
        harvest.reject(str(bomb), 0)
    for fault in unpacking.faults:
        harvest.reject(fault, 0)
    return buffer.getvalue()


class Unpacking:
    """What is packed in the blocks of a file, a block at a time.

    `size`: bytes of the file, as far as they are known by then. `faults` says what was wrong with the packing; what
    could be unpacked is given. Bomb for what unpacks to more than `unsuspected` bytes and more than `ratio` times the
    size of the file.
    """

    def __init__(
        self,
        given: Iterator[bytes],
        size: Callable[[], int],
        *,
        ratio: int | None = None,
        unsuspected: int | None = None,
    ) -> None:
        self._given, self._size = given, size
        self._ratio = MOST_RATIO if ratio is None else ratio
        self._unsuspected = UNSUSPECTED if unsuspected is None else unsuspected
        self.faults: list[str] = []

    def blocks(self) -> Iterator[bytes]:
        """The unpacked content, without a mark of its encoding and in UTF-8."""
        blocks = self._given
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
                for _ in self._given:
                    pass  # so that whoever counts and hashes what was given has seen all
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
            self._check(total)
            yield block

    def _check(self, total: int) -> None:
        most = max(self._unsuspected, self._ratio * self._size())
        if total > most:
            raise Bomb(f"unpacks to more than {most} bytes, over {self._ratio} times its size: nothing of it was read")

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
                source.drain()
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
                source.drain()
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
        """What the collector's file exporter writes with `compression: zstd`: each request by itself, after its length.

        JSON comes out one request a line, protobuf after its length again.
        """
        source = _Bytes(blocks)
        position = total = 0
        while source.starts(b""):
            length = int.from_bytes(source.exactly(4), "big")
            start = position + 4
            packed = source.exactly(length)
            position = start + length
            if packed[:4] != _ZSTD or len(packed) < length:
                self.faults.append(f"a cut or damaged record at byte {position - length - 4}; what came before is read")
                source.drain()
                return
            parts = []
            for part in self._unzstd(iter([packed])):
                total += len(part)
                self._check(total)
                parts.append(part)
            piece = b"".join(parts)
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

    def drain(self) -> None:
        """Read to the end, so that whoever counts and hashes what was given has seen all."""
        while self.take():
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
