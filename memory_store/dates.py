"""Times as people write them, turned into one form: ISO 8601 in UTC.

Two questions are answered here. :func:`parse_time` reads a point in time from a note, a table or
an option; :func:`parse_moment` also reads spans such as ``7d``, counted back from now.

A date without a clock means midnight, and a time without an offset means UTC: the same note gives
the same instant on every machine. A date whose order cannot be known (``05/06/2024``) is refused
rather than guessed.
"""

from __future__ import annotations

import calendar
import math
import re
import time
from datetime import UTC, date, datetime, timedelta
from typing import Any

from memory_store.errors import BadInputError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EARLIEST = (datetime.min.replace(tzinfo=UTC) - EPOCH).total_seconds()
SHOWN_CHARACTERS = 60  # of a wrong value, in its error message
LIKE = "2024-05-01 or 2024-05-01T09:30:00Z"
LIKE_SPANS = "2024-05-01, 7d, 3w or today"
LONGEST_TIME = 64  # characters; the longest accepted spelling (RFC 5322) needs fewer than 50
MILLISECOND_DIGITS = 13  # an epoch of 13 digits counts milliseconds (JavaScript's Date.now)

MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)

SPAN_SECONDS = {
    "s": 1,
    "min": 60,
    "h": 3_600,
    "d": 86_400,
    "w": 7 * 86_400,
    "mo": 30 * 86_400,
    "y": 365 * 86_400,
}
"""Units of a span, in seconds. A month is 30 days and a year 365: a span is a rough measure."""

_NUMBER = re.compile(r"-?\d{1,12}(?:\.\d{1,9})?", re.ASCII)
_COMPACT = re.compile(r"\d{8}(?:\d{4}(?:\d{2})?)?", re.ASCII)
_GERMAN = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})(?!\d)", re.ASCII)
_YEAR_MONTH = re.compile(r"(\d{4})-(\d{1,2})", re.ASCII)
_YEAR_FIRST = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)", re.ASCII)
_ZONE = re.compile(
    r"\s*(?:(?P<utc>Z|UTC|GMT)|(?:UTC|GMT)?(?P<sign>[+-])(?P<h>\d{2}):?(?P<m>\d{2})?)$", re.I
)
_WORDS = (
    re.compile(r"(?P<d>\d{1,2})\.? (?P<m>[a-z]{3,})\.?,? (?P<y>\d{4})", re.I | re.ASCII),
    re.compile(
        r"(?P<m>[a-z]{3,})\.? (?P<d>\d{1,2})(?:st|nd|rd|th)?,? (?P<y>\d{4})", re.I | re.ASCII
    ),
)
_CLOCK = re.compile(
    r",?(?: at)? (?P<h>\d{1,2}):(?P<rest>\d\d(?::\d\d)?)(?: ?(?P<half>[ap])\.?m\.?)?(?![\w.:])",
    re.I | re.ASCII,
)
_THIN_BLANKS = str.maketrans({"\u202f": " ", "\xa0": " "})  # before AM and PM, as CLDR has it
_WEEKDAY = re.compile(r"(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,?\s+", re.I | re.ASCII)
_SPAN = re.compile(r"(\d{1,9})\s*([a-z]+)", re.I | re.ASCII)
_AMBIGUOUS = re.compile(r"\d{1,2}/\d{1,2}/\d{2,4}", re.ASCII)
_YEAR = re.compile(r"\d{4}", re.ASCII)
_PERIODS = (
    ("day", re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}\.\d{1,2}\.\d{4}|\d{8}", re.ASCII)),
    *(("day", form) for form in _WORDS),
    ("month", _YEAR_MONTH),
    ("year", _YEAR),
)


def format_time(moment: datetime) -> str:
    """``2024-05-01T09:30:00Z``; microseconds are written only when there are any."""
    utc = moment.astimezone(UTC).replace(tzinfo=None)
    return utc.isoformat(timespec="microseconds" if utc.microsecond else "seconds") + "Z"


def format_epoch(seconds: float) -> str:
    """:func:`format_time` of seconds since 1970; raises :class:`BadInputError` out of range."""
    try:
        return format_time(_from_epoch(seconds))
    except (OverflowError, ValueError):
        raise BadInputError(f"{seconds} seconds since 1970 is out of range") from None


def parse_time(value: object, *, parameter: str = "date") -> str:
    """One point in time as ISO 8601 UTC.

    Reads ISO 8601 in all its usual spellings, ``20240501`` and ``202405010930`` (Zettelkasten
    ids), ``2024``, ``2024/05/01``, ``01.05.2024``, ``1 May 2024``, ``May 1, 2024 9:30 AM``, mail
    dates (RFC 5322), seconds or milliseconds since 1970, and ``date``/``datetime`` objects. Raises
    :class:`BadInputError` naming ``parameter`` for anything else.
    """
    return format_time(_read(value, parameter))


def epoch(value: object, *, parameter: str = "date") -> float:
    """:func:`parse_time` as seconds since 1970."""
    return (_read(value, parameter) - EPOCH).total_seconds()


def parse_moment(
    text: str,
    now: float | None = None,
    *,
    parameter: str = "since",
    end: bool = False,
    ahead: bool = False,
) -> float:
    """Seconds since 1970 for a time, a day's name or a span counted back from ``now``, or
    ``ahead`` of it.

    Spans are a number and one of ``s min h d w mo y`` (``7d``, ``3w``); also ``now``, ``today``
    and ``yesterday``. ``end`` makes a bare day, month or year mean its last microsecond, as
    ``until`` wants it. Raises :class:`BadInputError` naming ``parameter``.
    """
    current = time.time() if now is None else now
    word = text.strip().lower()
    if word == "now":
        return current
    if word in ("today", "yesterday"):
        today = current - current % SPAN_SECONDS["d"]
        day = today if word == "today" else today - SPAN_SECONDS["d"]
        return _last_instant(day, "day") if end else day
    if span := _SPAN.fullmatch(word):
        before = _before(current, int(span[1]), span[2], text, parameter)
        return 2 * current - before if ahead else before
    moment = (_read(text, parameter, LIKE_SPANS) - EPOCH).total_seconds()
    bare = _WEEKDAY.sub("", word, count=1)
    period = next((name for name, form in _PERIODS if form.fullmatch(bare)), None)
    return _last_instant(moment, period) if end and period else moment


def period(since: str | None, until: str | None, now: float | None = None) -> dict[str, Any]:
    """The moments that a search or a list lies between, as :class:`Filters` takes them.

    Raises BadInputError, also for a period that ends before it begins.
    """
    first = parse_moment(since, now, parameter="since") if since else None
    last = parse_moment(until, now, parameter="until", end=True) if until else None
    if first is not None and last is not None and last < first:
        raise BadInputError(f"until: {until} is before since, {since}: nothing is between", "until")
    return {"since": first, "until": last}


def validity(as_of: str | None, superseded: bool, now: float | None = None) -> dict[str, Any]:
    """The moments that a search or a list goes by, as :class:`Filters` takes them.

    It is about the present, or about ``as_of``; what had ended by then is ``superseded``.
    """
    now = time.time() if now is None else now
    known_at = parse_moment(as_of, now, parameter="as_of", end=True) if as_of else None
    ends_after = now if known_at is None else known_at
    return {"known_at": known_at, "valid_at": None if superseded else ends_after}


def date_in_name(stem: str) -> str | None:
    """The time a file's name begins with (``2024-05-01 Walk``, ``202405010930``), or ``None``."""
    found = re.match(r"\d{4}-\d{2}-\d{2}(?!\d)|\d{14}(?!\d)|\d{12}(?!\d)|\d{8}(?!\d)", stem, re.A)
    if found is None:
        return None
    try:
        return parse_time(found[0])
    except BadInputError:
        return None


def _before(now: float, count: int, unit: str, text: str, parameter: str) -> float:
    if unit == "m":
        raise BadInputError(
            f"{parameter}: {text.strip()!r} could be minutes or months; write {count}min or "
            f"{count}mo",
            parameter,
        )
    moment = now - count * SPAN_SECONDS.get(unit, math.inf)
    if not moment >= EARLIEST:
        raise _refusal(text, parameter, LIKE_SPANS)
    return moment


def _last_instant(start: float, period: str) -> float:
    """The last microsecond of the day, month or year that begins at ``start``."""
    first = _from_epoch(start)
    month, year = calendar.monthrange(first.year, first.month)[1], calendar.isleap(first.year) + 365
    days = {"day": 1, "month": month, "year": year}[period]
    return start + days * SPAN_SECONDS["d"] - 1e-6


def _read(value: object, parameter: str, like: str = LIKE) -> datetime:
    try:
        moment = _moment(value)
        utc = moment.astimezone(UTC) if moment else None
    except (ValueError, OverflowError, TypeError):
        utc = None
    if utc is None:
        raise _refusal(value, parameter, like)
    return utc


def _refusal(value: object, parameter: str, like: str = LIKE) -> BadInputError:
    text = str(value).strip()
    shown = repr(text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "…")
    if _AMBIGUOUS.fullmatch(text):
        return BadInputError(
            f"{parameter}: {shown} could be day/month or month/day; write YYYY-MM-DD", parameter
        )
    return BadInputError(f"{parameter}: {shown} is not a date; write it like {like}", parameter)


def _moment(value: object) -> datetime | None:
    """The value as an aware datetime; ``None`` or a ValueError when it is none."""
    if isinstance(value, datetime):
        return _aware(value)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return _from_number(value)
    text = str(value).strip().translate(_THIN_BLANKS) if isinstance(value, (int, str)) else ""
    if not text or len(text) > LONGEST_TIME or not text.isascii():
        return None
    if _COMPACT.fullmatch(text):
        form = "%Y%m%d%H%M%S"[: {8: 6, 12: 10, 14: 12}[len(text)]]
        return datetime.strptime(text, form).replace(tzinfo=UTC)
    if _YEAR.fullmatch(text):
        return datetime(int(text), 1, 1, tzinfo=UTC)
    if _NUMBER.fullmatch(text) or (text.isdigit() and len(text) == MILLISECOND_DIGITS):
        # at least nine digits (1973 on): a bare year is not an epoch
        return _from_number(float(text)) if len(text.split(".")[0].lstrip("-")) >= 9 else None
    bare = _WEEKDAY.sub("", text, count=1) if text[0].isalpha() else text
    moment = _from_iso(bare) or _from_words(bare) or _from_mail(bare)
    return _aware(moment) if moment else None


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _from_number(seconds: float) -> datetime:
    return _from_epoch(seconds / 1_000 if abs(seconds) >= 1e11 else seconds)


def _from_epoch(seconds: float) -> datetime:
    return EPOCH + timedelta(seconds=seconds)


def _from_iso(text: str) -> datetime | None:
    """ISO 8601, with the looseness of ``2024/5/1 9:30 +0200`` and ``01.05.2024 09:30``."""
    if not text[0].isdigit():
        return None
    text = _YEAR_FIRST.sub(lambda m: f"{m[1]}-{int(m[2]):02}-{int(m[3]):02}", text, count=1)
    text = _GERMAN.sub(lambda m: f"{m[3]}-{int(m[2]):02}-{int(m[1]):02}", text, count=1)
    if month := _YEAR_MONTH.fullmatch(text):
        return datetime(int(month[1]), int(month[2]), 1, tzinfo=UTC)
    head, zone = text, ""
    if len(text) > len("2024-05-01") and (found := _ZONE.search(text, len("2024-05-01"))):
        head = text[: found.start()]
        zone = "+00:00" if found["utc"] else f"{found['sign']}{found['h']}:{found['m'] or '00'}"
    head = re.sub(r"(?<=\d),?(?:T|\s+)(?=\d:)", "T0", head, count=1)
    head = re.sub(r"(?<=\d),?\s+(?=\d)", "T", head, count=1)
    try:
        return datetime.fromisoformat(head + zone)
    except ValueError:
        return None


def _from_words(text: str) -> datetime | None:
    """``1 May 2024`` and ``May 1, 2024``, also with a clock: ``May 1, 2024 9:30 PM``."""
    found = next(filter(None, (form.match(text) for form in _WORDS)), None)
    name = found["m"].lower() if found else ""
    numbers = [number for number, month in enumerate(MONTHS, 1) if month.startswith(name)]
    if not found or not numbers:
        return None
    day = f"{int(found['y']):04}-{numbers[0]:02}-{int(found['d']):02}"
    if found.end() == len(text):
        return _from_iso(day)
    clock = _CLOCK.match(text, found.end())
    if clock is None:
        return None
    hour = int(clock["h"])
    if half := clock["half"]:
        hour = hour % 12 + (12 if half.lower() == "p" else 0) if 1 <= hour <= 12 else 24
    return _from_iso(f"{day} {hour:02}:{clock['rest']}{text[clock.end() :]}")


def _from_mail(text: str) -> datetime | None:
    """RFC 5322, as in ``1 May 2024 10:00:00 +0200``."""
    if not re.match(r"\d{1,2} [A-Za-z]{3,} \d{4} \d", text):
        return None
    from email.utils import parsedate_to_datetime  # 5 ms, and few dates come from mails

    return parsedate_to_datetime(text)
