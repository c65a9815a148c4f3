"""Judge replies kept in a folder, a file each, so that what was answered once is not asked and paid for again.

Any number of processes may use one folder at once: files are written whole under another name and then renamed.
"""

import os
import re
import tempfile
from pathlib import Path
from typing import Protocol

import orjson

from evalagent.judging.replies import Reply, from_json, to_json

_KEY = re.compile(r"[0-9a-f]{64}")


class ReplyKeeper(Protocol):
    """Where replies are kept, by `prompting.cache_key`."""

    def get(self, key: str) -> Reply | None: ...

    def put(self, key: str, reply: Reply) -> None: ...


class ReplyCache:
    """A ReplyKeeper in a folder, made on the first write, readable for its owner only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str) -> Reply | None:
        """The reply; None if there is none or its file is damaged (it is then asked for and written anew)."""
        try:
            return from_json(orjson.loads(self._path(key).read_bytes()))
        except (FileNotFoundError, NotADirectoryError, orjson.JSONDecodeError):
            return None

    def put(self, key: str, reply: Reply) -> None:
        """Keeps a reply; the last writer of a key wins, and every reader sees one whole reply."""
        path = self._path(key)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(orjson.dumps(to_json(reply)))
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def _path(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise ValueError(f"{key!r} is no cache key")
        return self._folder / key[:2] / f"{key}.json"
