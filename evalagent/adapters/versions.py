"""What judged a run, by version: runs that differ in these are not compared without saying so."""

import hashlib
from importlib.resources import files

from evalagent import __version__
from evalagent.traces.price_tables import list_prices


def versions(judge: str, own_prices: bool = False) -> dict[str, str]:
    """Program, judge, the date of the price lists, and content hashes of the parts that decide verdicts: checks,
    rubrics, taxonomy. `own_prices`: the suite has prices of its own, which come first."""
    listed = f"public lists up to {list_prices().as_of}"
    return {
        "program": __version__,
        "judge": judge,
        "prices": f"the suite's own, then {listed}" if own_prices else listed,
        "checks": _content("evalagent.checks"),
        "rubrics": _content("evalagent.judging"),
        "taxonomy": _content("evalagent", "taxonomy.py"),
    }


def _content(package: str, only: str | None = None) -> str:
    """The first twelve characters of a hash over a package's own files."""
    told = hashlib.sha256()
    todo = [files(package)]
    while todo:
        for entry in sorted(todo.pop().iterdir(), key=lambda e: e.name):
            if entry.is_dir():
                if only is None and entry.name != "__pycache__":
                    todo.append(entry)
            elif (only is None and not entry.name.endswith(".pyc")) or entry.name == only:
                told.update(entry.name.encode() + b"\0" + entry.read_bytes())
    return told.hexdigest()[:12]
