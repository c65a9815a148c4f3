"""The tools: notes that can be searched, and a folder for reports."""

from pathlib import Path

NOTES = {
    "hydro-03": "Orla dam: built 1971, height 142 m, reservoir 3.1 cubic kilometres.",
    "hydro-07": "Vesk dam: built 1988, height 98 m, feeds two turbines.",
    "roads-11": "Tamm bridge: length 610 m, four lanes, opened 2003.",
    "roads-12": "Ulo bridge: length 1240 m, two lanes, opened 1996.",
    "city-02": "Pell tower: age 64 years, 88 m high, brick.",
    "city-05": "Quist tower: age 118 years, 61 m high, stone.",
}


def search_notes(words: str) -> list[dict[str, str]]:
    """The notes that hold every one of the words."""
    wanted = words.lower().split()
    return [{"id": key, "text": text} for key, text in NOTES.items() if all(word in text.lower() for word in wanted)]


def save_report(name: str, text: str) -> dict[str, object]:
    """Write a report into the folder `out`."""
    path = Path("out") / Path(name).name
    path.write_text(text, encoding="utf-8")
    return {"saved": str(path), "characters": len(text)}


TOOLS = {"search_notes": search_notes, "save_report": save_report}
