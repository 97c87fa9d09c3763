"""Times as people write them become one instant, or a refusal that names the value."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_store.dates import date_in_name, epoch, format_epoch, parse_moment, parse_time
from memory_store.errors import BadInputError

NINE_THIRTY = "2024-05-01T09:30:00Z"
OFFSETS = st.integers(-14 * 60, 14 * 60).map(lambda m: timezone(timedelta(minutes=m)))
MOMENTS = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=OFFSETS)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2024-05-01T09:30:00Z", NINE_THIRTY),
        ("2024-05-01 09:30", NINE_THIRTY),
        ("2024-05-01 9:30", NINE_THIRTY),
        ("2024-05-01, 09:30", NINE_THIRTY),
        ("2024-05-01T11:30+02:00", NINE_THIRTY),
        ("2024-05-01 11:30:00 +0200", NINE_THIRTY),
        ("2024-05-01 09:30 UTC", NINE_THIRTY),
        ("2024/05/01 09:30:00", NINE_THIRTY),
        ("202405010930", NINE_THIRTY),
        ("20240501093000", NINE_THIRTY),
        ("20240501T093000Z", NINE_THIRTY),
        ("01.05.2024 09:30", NINE_THIRTY),
        ("Wed, 01 May 2024 11:30:00 +0200", NINE_THIRTY),
        ("May 1, 2024 9:30 AM", NINE_THIRTY),
        ("May 1, 2024, 9:30:00\u202fAM UTC", NINE_THIRTY),
        ("1 May 2024 at 11:30 GMT+02:00", NINE_THIRTY),
        ("1 May 2024, 09:30", NINE_THIRTY),
        ("May 1, 2024 12:15 am", "2024-05-01T00:15:00Z"),
        ("May 1, 2024 12:15 p.m.", "2024-05-01T12:15:00Z"),
        ("1714555800", NINE_THIRTY),
        (1714555800, NINE_THIRTY),
        (1714555800000, NINE_THIRTY),
        ("1714555800000", NINE_THIRTY),
        (datetime(2024, 5, 1, 9, 30), NINE_THIRTY),
        (date(2024, 5, 1), "2024-05-01T00:00:00Z"),
        ("2024-5-1", "2024-05-01T00:00:00Z"),
        ("20240501", "2024-05-01T00:00:00Z"),
        ("1.5.2024", "2024-05-01T00:00:00Z"),
        ("1 May 2024", "2024-05-01T00:00:00Z"),
        ("May 1st, 2024", "2024-05-01T00:00:00Z"),
        ("Wednesday, 1 May 2024", "2024-05-01T00:00:00Z"),
        ("2024-05", "2024-05-01T00:00:00Z"),
        ("2024", "2024-01-01T00:00:00Z"),
    ],
)
def test_one_instant_in_every_usual_spelling(written: object, meant: str) -> None:
    assert parse_time(written) == meant


@pytest.mark.parametrize(
    "written",
    [
        *("", " ", "soon", "2023-02-30", "2024-13-01", "12:30", "{{date}}", "99999999999999"),
        *("2024-05-01T09:30:00 Europe/Berlin", "２０２４-05-01", "0001-01-01T00:00+10:00"),
        *("5", "-1", "May 1, 2024 13:30 PM", "May 1, 2024 0:30 AM", "May 1, 2024 24:30"),
        *("May 1, 2024 9:30 QM", "May 1, 2024 9:3", "May 1, 20244"),
        *(True, None, float("nan"), float("inf"), 1e300, ["2024"], "2" * 100_000),
    ],
)
def test_what_is_no_date_is_refused_by_name_and_briefly(written: object) -> None:
    with pytest.raises(BadInputError) as refusal:
        parse_time(written, parameter="lastmod")
    assert refusal.value.parameter == "lastmod"
    assert str(refusal.value).startswith("lastmod: ")
    assert len(str(refusal.value)) < 200


def test_a_date_whose_order_cannot_be_known_is_not_guessed() -> None:
    with pytest.raises(BadInputError, match="day/month or month/day; write YYYY-MM-DD"):
        parse_time("05/06/2024")


@given(MOMENTS)
def test_any_moment_survives_being_written_and_read(moment: datetime) -> None:
    written = parse_time(moment)
    assert written.endswith("Z")
    assert datetime.fromisoformat(written) == moment
    assert parse_time(written) == written
    assert parse_time(moment.isoformat()) == written
    assert parse_time(moment.isoformat(sep=" ")) == written


@given(st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=st.just(UTC)))
def test_seconds_since_1970_lead_back_to_the_same_moment(moment: datetime) -> None:
    assert format_epoch(epoch(moment)) == parse_time(moment)


@given(st.text() | st.from_regex(r"[-+0-9:/. TZ]{1,30}"))
def test_no_text_whatever_breaks_the_reader(text: str) -> None:
    try:
        written = parse_time(text)
    except BadInputError:
        return
    assert parse_time(written) == written


def test_spans_count_back_from_now() -> None:
    now = epoch("2024-05-08T00:00:00Z")
    assert format_epoch(parse_moment("7d", now)) == "2024-05-01T00:00:00Z"
    assert format_epoch(parse_moment("3W", now)) == "2024-04-17T00:00:00Z"
    assert format_epoch(parse_moment("90 min", now)) == "2024-05-07T22:30:00Z"
    assert parse_moment("now", now) == now
    assert format_epoch(parse_moment("yesterday", now + 60)) == "2024-05-07T00:00:00Z"


@pytest.mark.parametrize("span", ["7", "d", "7 days", "-7d", "7.5d", "999999999y", "seven days"])
def test_a_span_that_is_none_is_refused(span: str) -> None:
    with pytest.raises(BadInputError, match=r"since: .* 7d, 3w or today"):
        parse_moment(span, 1e9)


def test_an_m_might_be_minutes_or_months() -> None:
    with pytest.raises(BadInputError, match="write 6min or 6mo"):
        parse_moment("6m", 1e9)


@pytest.mark.parametrize(
    ("written", "last"),
    [
        ("2024-02-10", "2024-02-10T23:59:59.999999Z"),
        ("20240210", "2024-02-10T23:59:59.999999Z"),
        ("10 Feb 2024", "2024-02-10T23:59:59.999999Z"),
        ("Saturday, February 10th, 2024", "2024-02-10T23:59:59.999999Z"),
        ("2024-02", "2024-02-29T23:59:59.999999Z"),
        ("2024", "2024-12-31T23:59:59.999999Z"),
        ("2024-02-10T12:00", "2024-02-10T12:00:00Z"),
        ("10 Feb 2024 12:00", "2024-02-10T12:00:00Z"),
    ],
)
def test_until_a_day_means_to_its_end(written: str, last: str) -> None:
    assert format_epoch(parse_moment(written, end=True)) == last


def test_names_of_daily_notes_and_zettel_begin_with_their_date() -> None:
    assert date_in_name("2024-05-01 Walk") == "2024-05-01T00:00:00Z"
    assert date_in_name("2024-05-01-walk") == "2024-05-01T00:00:00Z"
    assert date_in_name("202405010930 A thought") == NINE_THIRTY
    assert date_in_name("20240501") == "2024-05-01T00:00:00Z"
    assert date_in_name("2024-05-011") is None
    assert date_in_name("12345678") is None
    assert date_in_name("Walk 2024-05-01") is None
