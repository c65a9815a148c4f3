"""Files of OTLP/JSON lines that another program wrote: mended and masked when nobody is writing."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import orjson

from evalagent.traces import masking


def end_last_line(file: Path) -> None:
    """Ends a line that a killed collector left unfinished, so that it does not spoil the next one."""
    try:
        with file.open("r+b") as lines:
            if lines.seek(0, os.SEEK_END) == 0:
                return
            lines.seek(-1, os.SEEK_END)
            if lines.read(1) != b"\n":
                lines.write(b"\n")
    except FileNotFoundError:
        return


def mask_lines(file: Path, patterns: Sequence[str]) -> None:
    """Masks the secrets in a file of JSON lines, and replaces it at once where there are any. What is no JSON is masked
    as text. Nobody may be writing to it."""
    if not file.exists():
        return
    with file.open("rb") as lines, tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as masked:
        try:
            changed = False
            for line in lines:
                new = _masked(line, patterns)
                changed = changed or new is not line
                masked.write(new)
            masked.flush()
            if changed:
                os.fsync(masked.fileno())
                Path(masked.name).chmod(file.stat().st_mode & 0o777)
                Path(masked.name).replace(file)
        finally:
            Path(masked.name).unlink(missing_ok=True)


def _masked(line: bytes, patterns: Sequence[str]) -> bytes:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        text = line.decode("utf-8", "surrogateescape")
        new = masking.mask(text, patterns)
        return line if new is text else str(new).encode("utf-8", "surrogateescape")
    new = masking.mask(value, patterns)
    return line if new is value else orjson.dumps(new) + b"\n"
