"""Numbers with their units, as people read them. ``tests/browser/test_modules.py`` has the same for the console."""

from __future__ import annotations

import pytest

from controller.quantities import duration, pace, percent


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (-0.0, "0 s"), (4.2e-6, "4.2 µs"), (0.9996e-3, "1 ms"), (0.0192, "19.2 ms"), (0.25, "250 ms"),
     (0.9996, "1 s"), (8.04, "8 s"), (9.96, "10 s"), (59.9, "59.9 s"), (59.96, "1 min"), (200, "3 min 20 s"),
     (3599.4, "59 min 59 s"), (3599.7, "1 h"), (4500, "1 h 15 min"), (86_380, "1 d"), (90_000, "1 d 1 h"),
     (-90, "-1 min 30 s"), (float("inf"), "inf s")],
)  # fmt: skip
def test_a_duration_has_the_units_that_people_use(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("share", "digits", "text"),
    [(0.125, 0, "12 %"), (0.125, 1, "12.5 %"), (-0.0003, 0, "0 %"), (-0.5, 0, "-50 %")],
)
def test_a_share_that_is_rounded_to_nothing_has_no_sign(share: float, digits: int, text: str) -> None:
    assert percent(share, digits) == text


@pytest.mark.parametrize(
    ("per_second", "unit", "text"),
    [(1.24, "iteration", "1.2 iterations/s"), (0.1, "epoch", "0.1 epochs/s"), (0.05, "epoch", "3 epochs/min"),
     (0.001, "epoch", "3.6 epochs/h"), (0, "iteration", "0 iterations/s"), (1.0, "epoch", "1 epoch/s"),
     (9.96, "", "10/s"), (1234.4, "", "1,234/s")],
)  # fmt: skip
def test_a_pace_is_by_the_second_the_minute_or_the_hour(per_second: float, unit: str, text: str) -> None:
    assert pace(per_second, unit) == text
