from datetime import UTC, date, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.inputs.frames.dates import DateCell, date_order, days_of, hours_of, read_compact, read_dates

DAYS = st.dates(date(1800, 1, 1), date(2200, 12, 31))
CLEAR = ["%Y-%m-%d", "%Y/%m/%d", "%d %b %Y", "%d-%b-%Y", "%B %d, %Y", "%b %d %Y", "%d. %B %Y", "%a, %d %b %Y"]


def since_1970(day):
    return float((day - date(1970, 1, 1)).days)


@given(day=DAYS, form=st.sampled_from(CLEAR))
def test_dates_in_clear_forms_are_read_in_both_orders(day, form):
    assert set(DateCell.of(day.strftime(form)).days.values()) == {since_1970(day)}


@given(day=DAYS, mark=st.sampled_from("/.-"))
def test_days_and_months_as_numbers_are_read_in_either_order(day, mark):
    cell = DateCell.of(day.strftime(f"%d{mark}%m{mark}%Y"))
    assert cell.days["day-first"] == since_1970(day)
    assert DateCell.of(day.strftime(f"%m{mark}%d{mark}%Y")).days["month-first"] == since_1970(day)


@given(when=st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)), hours=st.integers(-12, 14))
def test_times_and_zones_are_part_of_the_day(when, hours):
    utc = (when - datetime(1970, 1, 1)) / timedelta(days=1)
    local = when.replace(tzinfo=UTC) + timedelta(hours=hours)
    assert DateCell.of(when.isoformat()).days["day-first"] == pytest.approx(utc, abs=1e-10)
    written = local.strftime("%Y-%m-%d %H:%M:%S.%f") + f"{hours:+03d}:00"
    assert DateCell.of(written).days["day-first"] == pytest.approx(utc, abs=1e-10)
    whole = (when.replace(microsecond=0) - datetime(1970, 1, 1)) / timedelta(days=1)
    for form in ("%Y%m%dT%H%M%SZ", "%d/%b/%Y:%H:%M:%S", "%d %b %Y %H:%M:%S"):
        assert DateCell.of(when.strftime(form)).days["day-first"] == pytest.approx(whole, abs=1e-10)
    minutes = (when.replace(second=0, microsecond=0) - datetime(1970, 1, 1)) / timedelta(days=1)
    assert DateCell.of(when.strftime("%m/%d/%Y %I:%M %p")).days["month-first"] == pytest.approx(minutes, abs=1e-10)


@pytest.mark.parametrize(
    "word",
    [
        "31/31/2000",
        "2020-13-45",
        "May 5",
        "1.2.10",
        "20160702",
        "1988",
        "20160702T2561",
        "20161302T1000",
        "12/Apr:10",
        "12:30",
        "abc 12",
        "10.0.0.1",
        "",
    ],
)
def test_what_is_no_date(word):
    assert DateCell.of(word) is None


@pytest.mark.parametrize(
    ("cells", "order", "first"),
    [
        (["03/04/2020", "13/06/2021"], "day-first", date(2020, 4, 3)),
        (["03/04/2020", "06/13/2021"], "month-first", date(2020, 3, 4)),
        (["01/02/2020", "01/03/2020", "01/04/2020"], "day-first", date(2020, 2, 1)),  # the first of each month
        (["02/01/2020", "03/01/2020", "04/01/2020"], "month-first", date(2020, 2, 1)),
        (["03.04.2020", "05.06.2021"], "day-first", date(2020, 4, 3)),
        (["03/04/2020", "05/06/2021"], "month-first", date(2020, 3, 4)),
    ],
)
def test_the_order_of_day_and_month_is_settled_by_the_whole_column(cells, order, first):
    reading = read_dates(pd.Series([*cells, None]))
    assert reading.order == order
    assert reading.days[0] == since_1970(first)
    assert np.isnan(reading.days[-1])


def test_an_ambiguous_column_says_how_it_was_read():
    reading = read_dates(pd.Series(["03/04/2020", "05/06/2021"]))
    assert reading.remark("day") == (
        "day: '03/04/2020' can be read in two ways and was read as 2020-03-04. --dates day-first reads it as "
        "2020-04-03 (in Python, convert the column with pandas.to_datetime(..., dayfirst=True))."
    )
    assert read_dates(pd.Series(["03/04/2020", "13/06/2021"])).remark("day") == ""
    assert read_dates(pd.Series(["03/04/2020", "05/06/2021"]), "day-first").days[0] == since_1970(date(2020, 4, 3))
    with pytest.raises(ValueError, match="must be 'day-first' or 'month-first'"):
        date_order("dmy")


def test_a_known_order_is_kept_for_new_cells():
    reading = read_dates(pd.Series(["28/04/1988", "04/28/1988"]), "month-first", told=True)
    assert reading.odd.tolist() == [True, False]


def test_times_of_day():
    hours, odd = hours_of(pd.Series(["0:00", "23:59:30", "12:15 am", "noon", None]))
    np.testing.assert_allclose(hours[:3], [0.0, 23 + 59.5 / 60, 0.25])
    assert odd.tolist() == [False, False, False, True, False]


@given(when=st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)))
def test_dates_as_programs_print_them(when):
    seconds = (when.replace(microsecond=0) - datetime(1970, 1, 1)) / timedelta(days=1)
    for form in ("%a %b %d %H:%M:%S %Y", "%a %b %d %H:%M:%S +0000 %Y"):
        assert DateCell.of(when.strftime(form)).days["month-first"] == pytest.approx(seconds, abs=1e-10)
    month, quarter = when.date().replace(day=1), when.date().replace(day=1, month=when.month - (when.month - 1) % 3)
    assert DateCell.of(when.strftime("%m/%Y")).days["day-first"] == since_1970(month)
    for written in (f"{when.year}Q{quarter.month // 3 + 1}", f"Q{quarter.month // 3 + 1} {when.year}"):
        assert DateCell.of(written).days["day-first"] == since_1970(quarter)


def test_whole_numbers_are_dates_only_if_all_of_many_are():
    days = pd.date_range("2019-12-20", periods=30)
    words = pd.Series([*days.strftime("%Y%m%d"), None])
    reading = read_compact(words)
    assert reading.days[:-1].tolist() == [since_1970(day.date()) for day in days]
    assert np.isnan(reading.days[-1])
    assert read_compact(words[:9]) is None
    assert read_compact(pd.Series([*words[:20], "20201301"])) is None
    assert read_compact(pd.Series(["20201301", "20200230", "20200201"]), told=True).odd.tolist() == [True, True, False]


@given(seconds=st.integers(-(10**7), 10**7))
def test_durations_as_python_and_pandas_write_them(seconds):
    length = timedelta(seconds=seconds)
    words = pd.Series([str(length), str(pd.Timedelta(length)), "soon"])
    days, odd = days_of(words)
    assert days[:2] == pytest.approx([seconds / 86_400] * 2, abs=1e-9)
    assert odd.tolist() == [False, False, True]
