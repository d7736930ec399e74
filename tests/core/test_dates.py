"""Dates in whatever form they were written."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlane.core.dates import iso, moment


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2025-01-10T10:00:00Z", datetime(2025, 1, 10, 10, tzinfo=UTC)),
        ("2025-01-10T12:00:00+02:00", datetime(2025, 1, 10, 10, tzinfo=UTC)),
        ("2025-01-10T10:00:00", datetime(2025, 1, 10, 10, tzinfo=UTC)),
        ("2025-01-10 10:00", datetime(2025, 1, 10, 10, tzinfo=UTC)),
        ("2025-01-10", datetime(2025, 1, 10, tzinfo=UTC)),
        (date(2025, 1, 10), datetime(2025, 1, 10, tzinfo=UTC)),
        (20200131, datetime(2020, 1, 31, tzinfo=UTC)),
        (1642564062, datetime(2022, 1, 19, 3, 47, 42, tzinfo=UTC)),
        (1642564062835, datetime(2022, 1, 19, 3, 47, 42, 835000, tzinfo=UTC)),
    ],
)
def test_dates_of_all_kinds_are_understood(value: Any, expected: datetime) -> None:
    assert moment(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        "yesterday",
        "2025-13-01",
        "",
        None,
        True,
        [],
        10**30,
        -5,
        float("nan"),
        "0000-00-00",
        "9999-12-31T23:59:59-23:00",
    ],
)
def test_what_is_no_date_is_none(value: Any) -> None:
    assert moment(value) is None


@given(st.datetimes(min_value=datetime(1970, 1, 2)))
def test_iso_is_read_back(when: datetime) -> None:
    aware = when.replace(tzinfo=UTC)
    assert moment(iso(aware)) == aware
