"""When a service says to come back: the words of real messages, read at one fixed moment."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinate_agents.sessions.retry_times import MAX_RETRY_S, retry_time

ZONE = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 10, 1, 14, 0, tzinfo=ZONE).timestamp()


def at(*time: int, zone: ZoneInfo = ZONE) -> float:
    return datetime(2026, *time, tzinfo=zone).timestamp()  # type: ignore[arg-type, misc]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Upgrade to Pro or try again in 3 hours 20 minutes.", 12_000),
        ("try again in 2h 5m", 7_500),
        ("Please try again in 5 days, 2 hours and 1 minute.", 439_260),
        ("Rate limit reached for x. Please try again in 20.5s.", 20.5),
        ("try again in 350ms", 0.35),
        ("retry in about 2 minutes", 120),
        ("Fast limit reached and temporarily disabled · resets in 45m", 2_700),
        ("litellm.RateLimitError: retry-after: 30", 30),
        ('{"retry_after": 12}', 12),
        ("retry-after-ms: 1500", 1.5),
        ("available again in 10 seconds", 10),
        (f"limit reached|{NOW + 60:.0f}", 60),
        (f'"resets_at": {NOW + 90:.0f}', 90),
    ],
)
def test_length_of_a_wait_is_read(text: str, seconds: float) -> None:
    assert retry_time(text, now=NOW, zone=ZONE) == pytest.approx(NOW + seconds)


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("try again at 3:05 PM.", at(10, 1, 15, 5)),
        ("try again at 3:05 AM.", at(10, 2, 3, 5)),
        ("try again at Oct 3rd, 2026 3:05 PM.", at(10, 3, 15, 5)),
        ("You've hit your session limit · resets 3pm (Europe/Berlin)", at(10, 1, 15)),
        ("resets 3pm (America/New_York)", at(10, 1, 15, zone=ZoneInfo("America/New_York"))),
        ("resets at 15:00 (Europe/Berlin)", at(10, 1, 15)),
        ("Your limit will reset at 3pm.", at(10, 1, 15)),
        ("resets at 13:59", at(10, 1, 13, 59)),
        ("resets at 13:00", at(10, 2, 13)),
        ("resets 12am", at(10, 2, 0)),
        ("resets Oct 3, 9am (UTC)", at(10, 3, 9, zone=ZoneInfo("UTC"))),
        ("resets at 2026-10-01T15:00:00Z", at(10, 1, 15, zone=ZoneInfo("UTC"))),
        ("try again at 2026-10-01 15:00:00+02:00", at(10, 1, 15)),
        ("reset_time: 2026-10-01T15:00", at(10, 1, 15)),
        ("Retry-After: Thu, 01 Oct 2026 15:00:00 GMT", at(10, 1, 15, zone=ZoneInfo("UTC"))),
    ],
)
def test_time_of_day_is_the_next_one_in_its_zone(text: str, time: float) -> None:
    # A time that has just passed is meant, and then the wait is over.
    assert retry_time(text, now=NOW, zone=ZONE) == max(time, NOW)


@pytest.mark.parametrize(
    "text",
    [
        "come back later",
        "Try again.",
        "try again in a moment",
        "resets 3",
        "resets at 25:00",
        "try again at 13pm",
        "resets at 15:00 (Middle/Earth)",
        "retry-after: soon",
        "resets Feb 31, 9am (UTC)",
    ],
)
def test_words_that_name_no_time_give_none(text: str) -> None:
    assert retry_time(text, now=NOW, zone=ZONE) is None


def test_time_without_a_zone_is_this_machine_s(monkeypatch: pytest.MonkeyPatch) -> None:
    here = datetime.fromtimestamp(NOW, UTC).astimezone()
    later = here.replace(minute=here.minute // 2 + 29, second=0, microsecond=0)
    assert retry_time(f"resets at {later:%H:%M}", now=NOW) == later.timestamp()


def test_time_to_come_back_is_bounded_and_never_in_the_past() -> None:
    assert retry_time("try again in 9999 days", now=0.0) == MAX_RETRY_S
    assert retry_time("limit reached|1000000000", now=2e9) == 2e9
    assert retry_time("resets Jan 2, 2030 9am (UTC)", now=NOW) == NOW + MAX_RETRY_S


@given(st.text(max_size=60).map("resets at ".__add__) | st.text(alphabet="0123456789:apmAPM /(UTC)-TZ.", max_size=40))
def test_any_words_give_a_time_within_the_bound_or_none(text: str) -> None:
    found = retry_time(f"try again at {text}", now=NOW, zone=ZONE)
    assert found is None or NOW <= found <= NOW + MAX_RETRY_S
