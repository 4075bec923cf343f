"""Numbers and times as people and programs write them."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host_reporter.formats.numbers import NUMBER, finite, moment, number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("85.3%", 85.3),
        ("85.3 %", 85.3),
        ("1,234.5", 1234.5),
        ("1.234,5", 1234.5),
        ("0,853", 0.853),
        ("12,5", 12.5),
        ("1,234", 1234.0),
        ("12,345,678", 12345678.0),
        ("1_000", 1000.0),
        ("12k", 12000.0),
        ("1.5M", 1.5e6),
        ("2B", 2e9),
        ("1.2e-3", 0.0012),
        ("1.500000E-06", 1.5e-6),
        ("'0.5',", 0.5),
        ('"7"', 7.0),
        ("3,", 3.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("-0.25", -0.25),
        ("+3", 3.0),
        ("inf", math.inf),
        ("-Infinity", -math.inf),
        ("tensor(0.5, device='cuda:0')", 0.5),
        ("np.float64(0.25)", 0.25),
        (7, 7.0),
    ],
)
def test_a_number_is_read_as_it_is_meant(text: object, value: float) -> None:
    assert number(text) == value


@pytest.mark.parametrize("text", ["", "-", "abc", "1.2.3", "12kg", "0x10", "1,23,4", True, None, [], "١٢", "9" * 400])
def test_what_is_no_number_is_none(text: object) -> None:
    assert number(text) is None


@pytest.mark.parametrize("text", ["nan", "NaN", "-nan", "'nan'"])
def test_nan_is_read_but_not_finite(text: str) -> None:
    value = number(text)
    assert value is not None
    assert math.isnan(value)
    assert finite(text) is None


@given(
    st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["{!r}", "{:.6e}", "'{!r}'", "{!r},", "{!r}%"])
)
def test_what_python_prints_is_read_back(value: float, form: str) -> None:
    assert number(form.format(value)) == pytest.approx(value, rel=1e-6)


@given(st.integers(1, 10**14))
def test_thousands_are_read_back(value: int) -> None:
    assert number(f"{value:,}") == value
    assert number(f"{value:_}") == value


@given(st.text(max_size=100))
def test_no_text_raises(text: str) -> None:
    assert number(text) is None or isinstance(number(text), float)
    assert moment(text) is None or moment(text) >= 0


@given(st.text(alphabet="0123456789.,_-+eEkM%naif ", max_size=40))
def test_what_the_pattern_matches_is_a_number_or_none(text: str) -> None:
    for match in re.finditer(NUMBER, text):
        assert number(match.group()) is None or isinstance(number(match.group()), float)


@pytest.mark.parametrize(("text", "found"), [("10, ", "10"), ("1,234, ", "1,234"), ("5_", "5"), ("12.5,", "12.5")])
def test_the_pattern_leaves_the_sign_behind_a_number(text: str, found: str) -> None:
    match = re.match(NUMBER, text)
    assert match is not None
    assert match.group() == found
    assert re.match(NUMBER + re.escape(text.removeprefix(found)), text)


def test_a_time_is_seconds_milliseconds_or_a_date() -> None:
    assert moment("1714564800.5") == 1714564800.5
    assert moment(1714564800500) == 1714564800.5
    assert moment(1714564800500000) == 1714564800.5
    assert moment("2024-05-01T12:00:00+00:00") == 1714564800.0
    assert moment("2024/05/01 12:00:00") == moment("2024-05-01 12:00:00,000")
    assert moment("yesterday") is None
