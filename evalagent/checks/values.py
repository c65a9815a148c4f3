"""Numbers, amounts and days in text, however they are written: 4900 cents = $49.00; 2024-05-03 = May 3, 2024."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from evalagent.model import Json

_NUMBER = re.compile(r"(?<![\w.,])[-+−]?(?:\d{1,3}(?:[,.\u00a0\u202f' ]\d{3})+(?!\d)|\d+)(?:[.,]\d+)?(?![\w])(?!\.\d)")
_CURRENCY = "$€£¥₹"
_CENTS = re.compile(r"\s*(?:cents?|¢|pence|ct)\b", re.I)
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august"),
    *("september", "october", "november", "december"),
)
_MONTH = r"(?P<month>" + "|".join(f"{m[:3]}(?:{m[3:]})?" if len(m) > 3 else m for m in _MONTHS) + r"|sept)\.?"
_DATES = (
    re.compile(r"(?<!\d)(?P<y>\d{4})[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?!\d)"),
    re.compile(r"(?<![\d.])(?P<a>\d{1,2})[-/.](?P<b>\d{1,2})[-/.](?P<y>\d{4})(?!\d)"),
    re.compile(rf"\b{_MONTH}\s+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s+(?P<y>\d{{4}}))?\b", re.I),
    re.compile(rf"\b(?P<d>\d{{1,2}})(?:st|nd|rd|th|\.)?\s+(?:of\s+)?{_MONTH}(?:,?\s+(?P<y>\d{{4}}))?\b", re.I),
)
_LIMIT = 200_000


@dataclass(frozen=True, slots=True)
class Amount:
    """A number in a text, with every value that its spelling may mean."""

    values: tuple[Decimal, ...]
    text: str
    start: int
    money: bool
    """A currency sign stands by it, or it has exactly two decimals."""


Day = tuple[int | None, int, int]
"""Year (None where the text does not say), month, day."""


def amounts(text: str) -> Iterator[Amount]:
    """Every number in a text, its dates left out."""
    return amounts_and_days(text)[0]


def amounts_and_days(text: str) -> tuple[Iterator[Amount], set[Day]]:
    """Both at once, for a text that is read once only."""
    text = text[:_LIMIT]
    dates = _dates(text)
    return _amounts(text, [span for span, _ in dates]), {day for _, found in dates for day in found}


def _amounts(text: str, taken: Sequence[tuple[int, int]]) -> Iterator[Amount]:
    at = 0
    for match in _NUMBER.finditer(text):
        while at < len(taken) and taken[at][1] <= match.start():
            at += 1
        if at < len(taken) and taken[at][0] <= match.start() < taken[at][1]:
            continue
        values = readings(match.group())
        if not values:
            continue
        before = text[max(0, match.start() - 2) : match.start()].strip()
        after = text[match.end() : match.end() + 4].strip()
        money = (before != "" and before[-1] in _CURRENCY) or (after != "" and after[0] in _CURRENCY)
        if _CENTS.match(text, match.end()):
            values = (*values, *(v / 100 for v in values))
        decimals = re.search(r"[.,]\d\d$", match.group()) is not None
        yield Amount(values, match.group(), match.start(), money or decimals)


def readings(number: str) -> tuple[Decimal, ...]:
    """What a written number may mean: `1,234` is 1234 or 1.234."""
    bare = (
        number.replace("−", "-")
        .lstrip("+")
        .replace("\u00a0", "")
        .replace("\u202f", "")
        .replace("'", "")
        .replace(" ", "")
    )
    spellings = [bare.replace(",", "")] if bare.count(".") <= 1 else []
    if "," in bare and bare.count(",") == 1:
        spellings.append(bare.replace(".", "").replace(",", "."))
    if "." in bare:
        spellings.append(bare.replace(".", "").replace(",", ".") if bare.count(",") <= 1 else "")
    found: list[Decimal] = []
    for spelling in spellings:
        try:
            value = Decimal(spelling).normalize()
        except InvalidOperation:
            continue
        if value not in found and value.is_finite():
            found.append(value)
    return tuple(found)


def days(text: str) -> set[Day]:
    """Every date in a text; one written with two small numbers may be two days."""
    return {day for _, found in _dates(text[:_LIMIT]) for day in found}


def _dates(text: str) -> list[tuple[tuple[int, int], list[Day]]]:
    found: list[tuple[tuple[int, int], list[Day]]] = []
    for pattern in _DATES:
        for match in pattern.finditer(text):
            groups = match.groupdict()
            year = int(groups["y"]) if groups.get("y") else None
            if groups.get("a"):
                a, b = int(groups["a"]), int(groups["b"])
                options = [(year, a, b), (year, b, a)]
            else:
                name = groups.get("month")
                month = _MONTHS.index(next(m for m in _MONTHS if m.startswith(name.lower()[:3]))) + 1 if name else 0
                options = [(year, month or int(groups["m"]), int(groups["d"]))]
            valid = [day for day in options if 1 <= day[1] <= 12 and 1 <= day[2] <= 31]
            if valid:
                found.append((match.span(), valid))
    return sorted(found)


def number_of(value: Json) -> Decimal | None:
    """A number, or a text that is nothing but one (a currency sign may stand by it)."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        try:
            number = Decimal(str(value)).normalize()
        except InvalidOperation:
            return None
        return number if number.is_finite() else None
    if isinstance(value, str) and len(value) < 40:
        bare = value.strip().strip(_CURRENCY).strip()
        match = _NUMBER.fullmatch(bare)
        found = readings(bare) if match else ()
        return found[0] if found else None
    return None


def stated(value: Json, text: str) -> bool:
    """Whether a value is said in a text, in whatever spelling.

    Whole numbers may be minor units: 4900 is stated by $49.00. A text is looked for without regard to case, spacing and
    the `#` before it; a truth value cannot be looked for, and counts as stated.
    """
    if value is None or isinstance(value, bool):
        return True
    if isinstance(value, list):
        return all(stated(item, text) for item in value)
    if isinstance(value, dict):
        return all(stated(item, text) for item in value.values())
    if isinstance(value, str):
        wanted = days(value)
        if len(wanted) >= 1 and any(p.fullmatch(value.strip()[:10]) or p.fullmatch(value.strip()) for p in _DATES):
            there = days(text)
            return any(_same_day(one, other) for one in wanted for other in there)
    number = number_of(value)
    if number is None:
        plain = plain_text(str(value))
        return plain == "" or re.search(rf"(?<!\w){re.escape(plain)}(?!\w)", plain_text(text)) is not None
    signs = {number, abs(number)}
    whole = number == number.to_integral_value()
    for amount in amounts(text):
        for said in amount.values:
            if said in signs or abs(said) in signs:
                return True
            if whole and amount.money and said * 100 in signs:
                return True
            if (
                not whole
                and said in (number * 100, abs(number) * 100)
                and _CENTS.match(text, amount.start + len(amount.text))
            ):
                return True
    return isinstance(value, str) and plain_text(value) in plain_text(text)


def _same_day(one: Day, other: Day) -> bool:
    return one[1:] == other[1:] and (one[0] == other[0] or one[0] is None or other[0] is None)


def plain_text(text: str) -> str:
    """Without case, `#`, emphasis marks and doubled spaces."""
    return " ".join(re.sub(r"[#*_`]", "", text).casefold().split())
