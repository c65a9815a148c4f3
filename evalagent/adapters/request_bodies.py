"""Bodies of requests that a stranger sends: how much of them is held at once, how they are unpacked, what is too many.

A body is refused before it is parsed where what it would become in memory is out of proportion to what spans need.
"""

import threading
import zlib
from collections.abc import Iterator

import zstandard

FREELY = 1 << 20
"""Bytes that a body of any size may unpack to."""
RATIO = {"gzip": 500, "zstd": 2000}
"""How many times its size a body may unpack to beyond that. Spans that repeat one long prompt reach some hundreds, and
more where the packer sees further back; a bomb of gzip has 1,000, one of zstd 30,000."""
MOST_OBJECTS = 2_000_000
"""Objects and lists of one request. An attribute takes two; a full batch of 8,192 spans has some 500,000 attributes."""
MOST_TEXTS = 16_000_000
"""Quotation marks, and commas, of one request in JSON."""
PATIENCE_S = 2.0
"""How long a request waits for others to let go of bytes."""
_STEP = 1 << 20
_FEED = {"gzip": 1 << 16, "zstd": 1 << 10}
"""Bytes that are unpacked at a time; of zstd four can become 128 KiB."""
_MOST_MEMBERS = 1000
_WINDOW = 1 << 23


class TooLarge(ValueError):
    """More than is taken; the message says of what."""


class Damaged(ValueError):
    """Packed data that cannot be unpacked."""


class Busy(OSError):
    """Too much is being worked on; the same request may be taken later."""


class BytesInFlight:
    """A number of bytes that all requests together may hold."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._held = 0
        self._less = threading.Condition()

    @property
    def held(self) -> int:
        """Bytes that are held now."""
        return self._held

    def take(self, size: int) -> None:
        """Hold so many bytes more; Busy if others hold too many for `PATIENCE_S`.

        Of many that wait for one another the first to give up makes room for the rest.
        """
        with self._less:
            if not self._less.wait_for(lambda: self._held + size <= self.most, PATIENCE_S):
                raise Busy("too many requests at once")
            self._held += size

    def give(self, size: int) -> None:
        """Hold so many bytes less."""
        with self._less:
            self._held -= size
            self._less.notify_all()


class Hold:
    """What one request holds of the bytes in flight, until the block ends."""

    def __init__(self, in_flight: BytesInFlight) -> None:
        self._in_flight, self._size = in_flight, 0

    def __enter__(self) -> "Hold":
        return self

    def __exit__(self, *error: object) -> None:
        self.less(self._size)

    def more(self, size: int) -> None:
        """Hold so many bytes more, or Busy."""
        self._in_flight.take(size)
        self._size += size

    def less(self, size: int) -> None:
        """Let go of so many bytes."""
        self._in_flight.give(size)
        self._size -= size


def unpacked(body: bytes, encoding: str, most: int, hold: Hold) -> bytes:
    """The body without its content encoding, `gzip` or `zstd`, of one member or many. TooLarge, Damaged or Busy."""
    limit = min(most, max(FREELY, RATIO[encoding] * len(body)))
    parts: list[bytes] = []
    size = 0
    try:
        for part in _gunzipped(body) if encoding == "gzip" else _unzstd(body):
            size += len(part)
            if size > limit:
                much = f"{most} bytes" if limit == most else f"{RATIO[encoding]} times its size"
                raise TooLarge(f"more than {much} when unpacked")
            hold.more(len(part))
            parts.append(part)
    except (zlib.error, zstandard.ZstdError) as error:
        raise Damaged(f"damaged {encoding} data") from error
    return b"".join(parts)


def _gunzipped(body: bytes) -> Iterator[bytes]:
    member, members = zlib.decompressobj(wbits=31), 1
    for at in range(0, len(body), _FEED["gzip"]):
        feed = body[at : at + _FEED["gzip"]]
        while feed:
            if member.eof:
                feed = feed.lstrip(b"\0")  # padding, which gzip allows
                if not feed:
                    break
                member, members = zlib.decompressobj(wbits=31), _one_more(members)
            yield member.decompress(feed, _STEP)
            feed = member.unused_data if member.eof else member.unconsumed_tail
    while not member.eof:
        part = member.decompress(b"", _STEP)
        if not part:
            raise Damaged("the gzip data ends too early")
        yield part


def _unzstd(body: bytes) -> Iterator[bytes]:
    unpacker = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
    frame, frames = unpacker.decompressobj(), 1
    for at in range(0, len(body), _FEED["zstd"]):
        feed = body[at : at + _FEED["zstd"]]
        while feed:
            if frame.eof:
                frame, frames = unpacker.decompressobj(), _one_more(frames)
            yield frame.decompress(feed)
            feed = frame.unused_data if frame.eof else b""
    if not frame.eof:
        raise Damaged("the zstd data ends too early")


def _one_more(members: int) -> int:
    if members >= _MOST_MEMBERS:
        raise TooLarge(f"more than {_MOST_MEMBERS} packed members")
    return members + 1


def check_json(body: bytes) -> None:
    """TooLarge if there are more values in a text than any export request needs."""
    if body.count(b"{") + body.count(b"[") > MOST_OBJECTS:
        raise TooLarge(f"more than {MOST_OBJECTS} objects and lists")
    if body.count(b'"') > MOST_TEXTS or body.count(b",") > MOST_TEXTS:
        raise TooLarge(f"more than {MOST_TEXTS // 2} texts or {MOST_TEXTS} values")
