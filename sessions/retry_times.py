"""When a service that refused says to come back: from the words of its message to a time. Pure.

Seen: "try again in 3 hours 20 minutes", "retry in 20.5s", "in 350ms", "retry-after: 30", a date behind Retry-After,
"limit reached|1700003600", "try again at 3:05 PM", "try again at Oct 3rd, 2026 3:05 PM", "resets 3pm (Europe/Berlin)",
"resets at 15:00", "resets Oct 3, 9am (UTC)", and ISO times. A time of day is the next one; without a zone it is meant
in the zone of this machine, where the program that printed it runs. What cannot be understood gives no time rather than
a wrong one.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import parsedate_to_datetime
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

# A longer wait than this is not believed; the service is asked again before.
MAX_RETRY_S: Final = 7 * 24 * 3600.0
# A time of day that has just passed is meant: the clocks of two machines differ a little.
_JUST_NOW: Final = timedelta(minutes=2)

_UNIT_S: Final = {"ms": 0.001, "d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
_UNIT = r"(ms|milliseconds?|d|days?|h|hrs?|hours?|m|mins?|minutes?|s|secs?|seconds?)(?![A-Za-z])"
_AMOUNT = rf"(\d{{1,6}}(?:\.\d{{1,6}})?)\s*{_UNIT}"
_COME_BACK = r"(?:try(?:ing)? again|retry(?:ing)?|resets?|wait|available)(?:\s+again)?"
_IN = re.compile(rf"(?i){_COME_BACK}(?:\s+(?:in|after))?:?\s+(?:about\s+)?((?:{_AMOUNT}[,\s]*(?:and\s+)?){{1,4}})")
_ONE_AMOUNT = re.compile(rf"(?i){_AMOUNT}")
_AFTER = re.compile(r"(?i)retry[-_ ]after(?:[-_](ms|seconds?))?\"?[:=\s]+\"?(\d{1,9}(?:\.\d{1,6})?)\b(?!\s*[-:/])")
_AFTER_DATE = re.compile(r"(?i)retry[- ]after\"?[:=\s]+\"?([a-z]{3}, \d{1,2} [a-z]{3} \d{4} \d\d:\d\d:\d\d GMT)")
_EPOCH = re.compile(r"(?i)(?:limit reached\||resets?_at\"?[:=]\s*\"?)(\d{10})(?:\d{3})?\b")
_ISO = re.compile(
    rf"(?i)(?:{_COME_BACK}|reset(?:s|ting)?[-_ ]?(?:at|time)?|until|after)\"?[:=\s]*(?:at\s+|on\s+)?\"?"
    r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?)"
)
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CLOCK = re.compile(
    rf"(?i)(?:{_COME_BACK}|until)(?:\s+(?:at|on|by))?:?\s+"
    rf"(?:(?P<month>{'|'.join(_MONTHS)})[a-z]{{0,6}}\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?:(?P<year>\d{{4}}),?\s+)?"
    r"(?:at\s+)?)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d)(?::\d\d)?)?\s*(?P<half>[ap]\.?m\b\.?)?"
    r"(?:\s*\(?(?P<zone>UTC|GMT|[A-Z][A-Za-z]+/[A-Za-z_]+(?:/[A-Za-z_]+)?)\)?)?"
)


def retry_time(text: str, *, now: float, zone: tzinfo | None = None) -> float | None:
    """When the text says to come back, as seconds since the epoch; None when it does not say so.

    Never before `now` and never later than a week after it. `zone`: that of times that name none; None: this machine's.
    """
    for read in _READERS:
        at = read(text, now, zone)
        if at is not None:
            return now + min(max(at - now, 0.0), MAX_RETRY_S)
    return None


def _epoch(text: str, now: float, zone: tzinfo | None) -> float | None:
    match = _EPOCH.search(text)
    return float(match[1]) if match else None


def _after(text: str, now: float, zone: tzinfo | None) -> float | None:
    match = _AFTER.search(text)
    return now + float(match[2]) * (0.001 if match[1] == "ms" else 1.0) if match else None


def _after_date(text: str, now: float, zone: tzinfo | None) -> float | None:
    match = _AFTER_DATE.search(text)
    try:
        return parsedate_to_datetime(match[1]).timestamp() if match else None
    except ValueError:
        return None


def _in(text: str, now: float, zone: tzinfo | None) -> float | None:
    match = _IN.search(text)
    return now + sum(float(n) * _unit_s(unit) for n, unit in _ONE_AMOUNT.findall(match[1])) if match else None


def _unit_s(unit: str) -> float:
    unit = unit.lower()
    return _UNIT_S["ms" if unit.startswith(("ms", "milli")) else unit[0]]


def _iso(text: str, now: float, zone: tzinfo | None) -> float | None:
    match = _ISO.search(text)
    if match is None:
        return None
    try:
        at = datetime.fromisoformat(match[1])
    except ValueError:
        return None
    return (at if at.tzinfo else at.replace(tzinfo=zone or _local(now))).timestamp()


def _clock(text: str, now: float, zone: tzinfo | None) -> float | None:
    match = _CLOCK.search(text)
    if match is None or (match["minute"] is None and match["half"] is None):
        return None  # "resets 3" is no time
    try:
        place = ZoneInfo(match["zone"].replace("GMT", "UTC")) if match["zone"] else zone or _local(now)
        return _next(match, datetime.fromtimestamp(now, place)).timestamp()
    except (ValueError, ZoneInfoNotFoundError):
        return None  # no such zone, day or hour


def _next(match: re.Match[str], here: datetime) -> datetime:
    """The time that the words mean, seen from `here`. Raises: ValueError."""
    hour = int(match["hour"])
    if match["half"]:
        if not 1 <= hour <= 12:
            raise ValueError(f"hour {hour}")
        hour = hour % 12 + (12 if match["half"].lower().startswith("p") else 0)
    at = here.replace(hour=hour, minute=int(match["minute"] or 0), second=0, microsecond=0)
    if match["month"] is None:
        return at if at > here - _JUST_NOW else at + timedelta(days=1)
    year = int(match["year"] or here.year)
    at = at.replace(year=year, month=_MONTHS.index(match["month"].lower()) + 1, day=int(match["day"]))
    if match["year"] is None and at < here - timedelta(days=180):
        at = at.replace(year=year + 1)
    return at


def _local(now: float) -> tzinfo:
    return datetime.fromtimestamp(now, UTC).astimezone().tzinfo or UTC


_READERS: Final[tuple[Callable[[str, float, tzinfo | None], float | None], ...]] = (
    _epoch,
    _after_date,
    _after,
    _in,
    _iso,
    _clock,
)
