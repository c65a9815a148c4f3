"""Bytes of a file → what is packed in them: gzip and zstd by their magic numbers, UTF-16 by its mark."""

import zlib

import zstandard

from evalagent.traces.harvest import Harvest

MOST_UNPACKED = 4 << 30
"""Bytes that one file may unpack to: a small file must not fill the memory."""
_PIECE = 1 << 20
"""Bytes unpacked at a time."""
_GZIP_IN, _ZSTD_IN = 1 << 16, 1 << 11
"""Packed bytes looked at at a time; zstd cannot be told when to stop, and makes 32 KB of a byte at worst."""
_ZSTD = b"\x28\xb5\x2f\xfd"


def unpack(data: bytes, harvest: Harvest, most: int = MOST_UNPACKED) -> bytes:
    """The content; of a damaged or too large archive what could be unpacked, with the fault rejected under line 0."""
    if data[:2] == b"\x1f\x8b":
        data = _gunzip(data, harvest, most)
    elif data[:4] == _ZSTD:
        data = _unzstd(data, harvest, most)
    elif data[4:8] == _ZSTD:
        data = _unframed(data, harvest, most)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace").encode()
    return data.removeprefix(b"\xef\xbb\xbf")


def _gunzip(data: bytes, harvest: Harvest, most: int) -> bytes:
    found: list[bytes] = []
    position, size = 0, 0
    while data[position : position + 2] == b"\x1f\x8b":
        member = zlib.decompressobj(wbits=31)
        waiting = b""
        try:
            while not member.eof:
                if not waiting:
                    waiting = data[position : position + _GZIP_IN]
                    position += len(waiting)
                    if not waiting:
                        harvest.reject("the gzip data ends too early; what was there is read", 0)
                        return b"".join(found)
                piece = member.decompress(waiting, _PIECE)
                waiting = member.unconsumed_tail
                found.append(piece)
                size += len(piece)
                if size > most:
                    harvest.reject(f"unpacks to more than {most} bytes; the rest was not read", 0)
                    return b"".join(found)
        except zlib.error as error:
            harvest.reject(f"damaged gzip data, read up to there: {error}", 0)
            return b"".join(found)
        position -= len(member.unused_data)
    _no_rest(data, position, harvest)
    return b"".join(found)


def _unzstd(data: bytes, harvest: Harvest, most: int) -> bytes:
    found: list[bytes] = []
    position, size = 0, 0
    while data[position : position + 4] == _ZSTD:
        frame = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()
        try:
            while not frame.eof:
                waiting = data[position : position + _ZSTD_IN]
                position += len(waiting)
                if not waiting:
                    harvest.reject("the zstd data ends too early; what was there is read", 0)
                    return b"".join(found)
                piece = frame.decompress(waiting)
                found.append(piece)
                size += len(piece)
                if size > most:
                    harvest.reject(f"unpacks to more than {most} bytes; the rest was not read", 0)
                    return b"".join(found)
        except zstandard.ZstdError as error:
            harvest.reject(f"damaged zstd data, read up to there: {error}", 0)
            return b"".join(found)
        position -= len(frame.unused_data)
    _no_rest(data, position, harvest)
    return b"".join(found)


def _no_rest(data: bytes, position: int, harvest: Harvest) -> None:
    rest = data[position:].strip(b"\0")
    if rest:
        harvest.reject(f"{len(rest)} bytes after the end of the packed data", 0)


def _unframed(data: bytes, harvest: Harvest, most: int) -> bytes:
    """What the collector's file exporter writes with `compression: zstd`: each request by itself, after its length.

    JSON comes out one request a line, protobuf after its length again.
    """
    found: list[bytes] = []
    position, size = 0, 0
    while position < len(data) and size <= most:
        start = position + 4
        position = start + int.from_bytes(data[position:start], "big")
        if data[start : start + 4] != _ZSTD or position > len(data):
            harvest.reject(f"a cut or damaged record at byte {start - 4}; what came before is read", 0)
            break
        piece = _unzstd(data[start:position], harvest, most - size)
        size += len(piece)
        found.append(piece + b"\n" if piece[:1] == b"{" else len(piece).to_bytes(4, "big") + piece)
    return b"".join(found)
