"""Bytes of a file → what is packed in them: gzip and zstd by their magic numbers, UTF-16 by its mark."""

import io
import zlib

import zstandard

from evalagent.traces.harvest import Harvest

MOST_UNPACKED = 4 << 30
"""Bytes that one file may unpack to: a small file must not fill the memory."""
MOST_RATIO, UNSUSPECTED = 200, 1 << 30
"""A file that unpacks to more than both, so many times its own size and so many bytes, is a bomb. Traces are packed to
a tenth or a fiftieth."""
MOST_LAYERS = 3
"""How often a file may be packed: a packed file that was stored by a server that packs, and once more."""
_PIECE = 1 << 20
"""Bytes unpacked at a time."""
_GZIP_IN, _ZSTD_IN = 1 << 16, 1 << 11
"""Packed bytes looked at at a time; zstd cannot be told when to stop, and makes 32 KB of a byte at worst."""
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


class _Unpacked:
    """What has been unpacked of one file, held once: `whole` hands the buffer over without a copy."""

    def __init__(self, harvest: Harvest, most: int, bomb: int) -> None:
        self.harvest = harvest
        self.most, self.bomb = most, bomb
        self.buffer = io.BytesIO()
        self.size = 0
        self.full = False

    def add(self, piece: bytes) -> bool:
        """Keep a piece; False if that is more than a file may hold: what a bomb held is let go."""
        self.buffer.write(piece)
        self.size += len(piece)
        if self.size > self.bomb:
            self.harvest.reject(
                f"unpacks to more than {self.bomb} bytes, over {MOST_RATIO} times its size: nothing of it was read", 0
            )
            self.buffer, self.full = io.BytesIO(), True
        elif self.size > self.most:
            self.harvest.reject(f"unpacks to more than {self.most} bytes; the rest was not read", 0)
            self.full = True
        return not self.full


def unpack(
    data: bytes, harvest: Harvest, most: int = MOST_UNPACKED, ratio: int = MOST_RATIO, unsuspected: int = UNSUSPECTED
) -> bytes:
    """The content, also of what was packed several times. Of a damaged or too large archive what could be unpacked, of
    a bomb nothing; the fault is rejected under line 0.

    `most`: bytes that are unpacked at most. A bomb is what unpacks to more than `unsuspected` bytes and more than
    `ratio` times the size of the file.
    """
    bomb = max(unsuspected, ratio * len(data))
    for _ in range(MOST_LAYERS):
        unpacked = _Unpacked(harvest, most, bomb)
        if data[:2] == _GZIP:
            _gunzip(data, unpacked)
        elif data[:4] == _ZSTD:
            _unzstd(data, unpacked)
        elif data[4:8] == _ZSTD:
            _unframed(data, unpacked)
            data = unpacked.buffer.getvalue()
            break
        else:
            break
        data = unpacked.buffer.getvalue()
    else:
        if data[:2] == _GZIP or _ZSTD in (data[:4], data[4:8]):
            harvest.reject(f"packed more than {MOST_LAYERS} times", 0)
            return b""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace").encode()
    return data.removeprefix(b"\xef\xbb\xbf")


def _gunzip(data: bytes, unpacked: _Unpacked) -> None:
    position = 0
    while data[position : position + 2] == _GZIP:
        member = zlib.decompressobj(wbits=31)
        waiting = b""
        try:
            while not member.eof:
                if not waiting:
                    waiting = data[position : position + _GZIP_IN]
                    position += len(waiting)
                    if not waiting:
                        unpacked.harvest.reject("the gzip data ends too early; what was there is read", 0)
                        return
                piece = member.decompress(waiting, _PIECE)
                waiting = member.unconsumed_tail
                if not unpacked.add(piece):
                    return
        except zlib.error as error:
            unpacked.harvest.reject(f"damaged gzip data, read up to there: {error}", 0)
            return
        position -= len(member.unused_data)
    _no_rest(data, position, unpacked.harvest)


def _unzstd(data: bytes, unpacked: _Unpacked) -> None:
    position = 0
    while data[position : position + 4] == _ZSTD:
        frame = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()
        try:
            while not frame.eof:
                waiting = data[position : position + _ZSTD_IN]
                position += len(waiting)
                if not waiting:
                    unpacked.harvest.reject("the zstd data ends too early; what was there is read", 0)
                    return
                if not unpacked.add(frame.decompress(waiting)):
                    return
        except zstandard.ZstdError as error:
            unpacked.harvest.reject(f"damaged zstd data, read up to there: {error}", 0)
            return
        position -= len(frame.unused_data)
    _no_rest(data, position, unpacked.harvest)


def _no_rest(data: bytes, position: int, harvest: Harvest) -> None:
    rest = data[position:].strip(b"\0")
    if rest:
        harvest.reject(f"{len(rest)} bytes after the end of the packed data", 0)


def _unframed(data: bytes, unpacked: _Unpacked) -> None:
    """What the collector's file exporter writes with `compression: zstd`: each request by itself, after its length.

    JSON comes out one request a line, protobuf after its length again.
    """
    position = 0
    while position < len(data) and not unpacked.full:
        start = position + 4
        position = start + int.from_bytes(data[position:start], "big")
        if data[start : start + 4] != _ZSTD or position > len(data):
            unpacked.harvest.reject(f"a cut or damaged record at byte {start - 4}; what came before is read", 0)
            return
        one = _Unpacked(unpacked.harvest, unpacked.most - unpacked.size, unpacked.bomb - unpacked.size)
        _unzstd(data[start:position], one)
        piece = one.buffer.getvalue()
        unpacked.full = one.full
        if one.full and not piece:
            unpacked.buffer = io.BytesIO()
            return
        unpacked.size += len(piece)
        unpacked.buffer.write(piece + b"\n" if piece[:1] == b"{" else len(piece).to_bytes(4, "big") + piece)
