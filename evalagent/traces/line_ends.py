"""How many lines end in a text."""


def line_ends(text: bytes) -> int:
    """The number of line feeds, which `bytes.count` finds byte by byte: long lines are passed over much faster here."""
    count = position = 0
    while position := text.find(b"\n", position) + 1:
        count += 1
    return count
