"""Dates in properties, names of files and metadata: what is read, and what is left alone."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from recallite_documents.written_dates import (
    day_first_of,
    own_time,
    read_written,
    readings_of,
    stated_time,
    time_in_name,
    time_named,
)

DAY = datetime(2021, 7, 9, tzinfo=UTC)
AFTERNOON = datetime(2021, 7, 9, 16, 5, tzinfo=UTC)
NOW = datetime(2025, 1, 1, tzinfo=UTC)
DAYS = """
2021-07-09|2021/07/09|2021.07.09|2021_07_09|2021 07 09|20210709|2021-7-9|2021-W27-5|2021W275|2021-190|2021190|
9.7.2021|09.07.21|July 9, 2021|July 9th, 2021|9 July 2021|9th of July 2021|9-Jul-2021|9-Jul-21|2021-Jul-09|
Friday, July 9th 2021|Fri 09/07/2021|[[2021-07-09]]|[[Daily/2021-07-09]]|"2021-07-09"|<2021-07-09 Fri>|
2021-07-09 (Friday)|2021\u201307\u201309|
2021-07-09 UTC|July 9 '21|2021-07-09Z|9. Juli 2021|Freitag, den 9. Juli 2021|9 juillet 2021|vendredi 9 juillet 2021|
ven. 9 juillet 2021|9 de julio de 2021|viernes, 9 de julio de 2021|9 de julho de 2021|
sexta-feira, 9 de julho de 2021|venerdì 9 luglio 2021|9 luglio 2021|vrijdag 9 juli 2021|2021年7月9日|2021년 7월 9일
"""
TIMES = """
202107091605|2021-07-09T16:05|2021-07-09 16:05|2021-07-09, 16:05|2021-07-09 @ 16:05|
09/Jul/2021:16:05:00 +0000|20210709160500Z|20210709180500+0200|
2021-07-09 4:05 PM|2021-07-09 04:05pm|
2021/07/09 16:05|20210709T160500Z|20210709-1605|2021-07-09T16-05-00|2021-07-09 16.05 Uhr|9 juillet 2021 à 16h05|
9. Juli 2021 um 16:05 Uhr|Fri, 09 Jul 2021 16:05:00 GMT|Fri Jul  9 16:05:00 2021|Friday, July 9th 2021, 4:05:00 pm|
2021-07-09T18:05+02:00|2021-07-09 18:05:00 +0200|2021-07-09 18:05 CEST|2021-07-09 12:05 EDT|
2021-07-09 18:05 Europe/Berlin|2021-07-09T18:05+02:00[Europe/Paris]|1625846700|1625846700000|
Fri Jul 09 2021 18:05:00 GMT+0200 (Central European Summer Time)
"""
UNREAD = """
2021-02-29|2021-06-31|2021-13-01|31.06.2021|Thursday, July 9 2021|2021-07-09 25:00|2021-07-09 16:61|
2021-07-09 16:05 pm|2021-07-09 16:05 IST|July 9|9.7.|tomorrow|3d|soon|next Friday|ca. 1990|~2021|{{date}}|21-07-09|
09/07/21|44386|7|2021-366|2021-000|2021-Q3|2021-07-01 to 2021-07-09|v2021.07.09|1.2.3|not 9 July 2021|16:05|TBD|-||
99999999999999999999
"""
OTHER_NAMES = """
1984|2021|2021-07|2021-W27|from 2021-07-09 to 2021-07-11|2021-02-30|12345678|room-12345678|99990101|Q3 2021|
02-07-2021|a12021-07-091|README
"""


@pytest.mark.parametrize(
    "value",
    DAYS.strip().split("|"),
)
def test_a_day_is_read_however_it_is_written(value):
    assert readings_of(value.strip()) == ((DAY, DAY + timedelta(1)),)


@pytest.mark.parametrize(
    "value",
    TIMES.strip().split("|"),
)
def test_a_time_of_day_is_read_with_its_zone_and_else_in_utc(value):
    assert readings_of(value.strip()) == ((AFTERNOON, AFTERNOON),)


@pytest.mark.parametrize("value", [202107091605, 1625846700, 1625846700.0, 1625846700_000_000, [["2021-07-09 16:05"]]])
def test_numbers_and_a_list_of_one_are_read(value):
    assert readings_of(value) == ((AFTERNOON, AFTERNOON),)


def test_the_last_day_of_the_calendar_is_read_and_digits_of_other_calendars_are_not():
    assert readings_of("9999-12-31")[0].end.year == 9999
    assert readings_of("\u06f1\u06f4\u06f0\u06f3-03-05") == ()


def test_dates_and_datetimes_are_taken_as_they_are():
    assert readings_of(date(2021, 7, 9)) == ((DAY, DAY + timedelta(1)),)
    assert readings_of(DAY.astimezone(timezone(timedelta(hours=5)))) == ((DAY, DAY),)


@pytest.mark.parametrize(
    ("value", "begin", "days"),
    [("2021-07", (2021, 7, 1), 31), ("July 2021", (2021, 7, 1), 31), ("2020", (2020, 1, 1), 366),
     (2020, (2020, 1, 1), 366), ("2021-W27", (2021, 7, 5), 7), ("29 February 2024", (2024, 2, 29), 1)],
)  # fmt: skip
def test_a_month_a_week_and_a_year_are_all_of_their_days(value, begin, days):
    first = datetime(*begin, tzinfo=UTC)
    assert readings_of(value) == ((first, first + timedelta(days)),)


@pytest.mark.parametrize(
    "value",
    UNREAD.strip().split("|"),
)  # fmt: skip
def test_what_names_no_day_for_certain_is_not_read(value):
    assert readings_of(value.strip()) == ()


@pytest.mark.parametrize(
    "value", [None, True, {}, [], ["2021-07-09", "2021-07-10"], math.nan, 10**40, -5, 0, "9" * 500]
)
def test_values_of_other_kinds_are_no_dates(value):
    assert readings_of(value) == ()


def test_a_numeric_date_of_two_readings_is_decided_only_by_other_dates_of_its_source():
    assert [reading.begin.month for reading in readings_of("02/07/2021")] == [7, 2]
    assert read_written("02/07/2021") is None
    assert day_first_of(["02/07/2021", "13/07/2021", 5, None]) is True
    assert day_first_of(["02/07/2021", "Shot on 13/07/2021"]) is None
    assert day_first_of([["07/13/2021"]]) is False
    assert day_first_of(["13/07/2021", "07/13/2021"]) is None
    assert day_first_of([]) is None
    read = read_written("02/07/2021", lambda: True)
    assert read is not None
    assert read.begin == datetime(2021, 7, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "moment"),
    [("2021_07_09", DAY), ("journals/2021_07_09", DAY), ("20210709", DAY), ("Review 2021-07-09", DAY),
     ("2021-07-09 Review", DAY), ("2021-07-09-review", DAY), ("a_2021.07.09_b", DAY), ("Bericht 09.07.2021", DAY),
     ("July 9th, 2021", DAY), ("2021/07/09", DAY), ("202107091605", AFTERNOON), ("202107091605 Idea", AFTERNOON),
     ("20210709160500-idea", AFTERNOON), ("2021-07-09 16-05", AFTERNOON), ("2021-07-09 to 2021-07-11", DAY),
     ("25-12-2021", datetime(2021, 12, 25, tzinfo=UTC))],
)  # fmt: skip
def test_the_name_of_a_file_names_a_day(name, moment):
    assert time_in_name(name) == moment


@pytest.mark.parametrize(
    "name",
    OTHER_NAMES.strip().split("|"),
)
def test_other_names_name_none(name):
    assert time_in_name(name.strip()) is None


@pytest.mark.parametrize(
    ("name", "known"),
    [("created", "created"), ("dateCreated", "created"), ("creation-date", "created"), ("date_created", "created"),
     ("Date Created", "created"), ("dcterms.created", "created"), ("article:published_time", "created"),
     ("date", "created"), ("erstellt am", "created"), ("Créé le", "created"), ("fecha de creación", "created"),
     ("last_modified", "modified"), ("updated", "modified"), ("due date", None), ("birthdate", None), ("time", None),
     ("data", None), ("created by", None), ("", None)],
)  # fmt: skip
def test_names_of_times_are_known_in_any_spelling(name, known):
    assert time_named(name) == known


def test_the_first_property_that_can_be_read_counts_and_the_rest_is_reported():
    written, changed, unread = stated_time({"updated": "2021-07-10", "created": "?", "date": "2021-07-09"}, NOW)
    assert written is not None
    assert changed is not None
    assert (written.begin, changed.begin, unread) == (DAY, DAY + timedelta(1), [])
    _, _, unread = stated_time({"created": "2021-02-30", "Published": True, "date": None}, NOW)
    assert [str(each) for each in unread] == [
        "created is '2021-02-30': no day can be read from it; write it as 2024-03-05"
    ]
    _, _, unread = stated_time({"date": "02/07/2021", "created": "2999-01-01"}, NOW)
    assert [each.why for each in unread] == [
        "2999-01-01 is to come", "it may be 2021-07-02 or 2021-02-07; write it as 2021-07-02"
    ]  # fmt: skip


def test_a_time_of_a_zone_ahead_of_utc_is_no_time_to_come():
    local = datetime.now(UTC) + timedelta(hours=9)
    moment, unread = own_time({"created": local.strftime("%Y-%m-%d %H:%M")}, "note")
    assert moment is not None
    assert moment <= datetime.now(UTC)
    assert not unread
