"""Durations as people write them (`90s`, `45m`, `1h30m`, or plain seconds) to seconds and back."""

import re
from typing import Final

# A year: longer than any wait that somebody means, short enough that adding it to a clock never overflows.
MAX_DURATION_S: Final = 366 * 86400.0

DURATION_PATTERN: Final = r"(?:[0-9]{1,9}(?:\.[0-9]{1,6})?(?:ms|[dhms]))+|[0-9]{1,9}(?:\.[0-9]{1,6})?"
_WHOLE: Final = re.compile(DURATION_PATTERN)
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|[dhms])")
_SECONDS: Final = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def seconds(text: str) -> float | None:
    """The duration in seconds; None when the text is none, or is zero or longer than a year."""
    if not _WHOLE.fullmatch(text):
        return None
    parts = _PART.findall(text)
    units = [unit for _, unit in parts]
    if len(units) != len(set(units)) or units != sorted(units, key=lambda unit: -_SECONDS[unit]):
        return None
    total = sum(float(number) * _SECONDS[unit] for number, unit in parts) if parts else float(text)
    return total if 0 < total <= MAX_DURATION_S else None


def spell(duration_s: float) -> str:
    """The shortest text that `seconds` reads back, such as `1h30m`."""
    rest = round(duration_s * 1000)
    text = ""
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        count, rest = divmod(rest, size)
        if count:
            text += f"{count}{unit}"
    return text or "0s"
