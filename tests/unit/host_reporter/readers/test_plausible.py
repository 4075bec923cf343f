"""Which points are believed: one absurd number costs itself, and a true leap is taken when it goes on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.model import Progress
from host_reporter.readers.plausible import LEAP, SLACK, PlausibilityFilter


def sifted(*iterations: float, length: float | None = None) -> tuple[list[float], str | None]:
    plausible = PlausibilityFilter()
    taken = [point.iteration for i in iterations for point in plausible.accept(Progress(float(i), 0.0, None), length)]
    return taken, plausible.complaint


def test_beyond_the_declared_length_with_slack_nothing_is_believed() -> None:
    taken, complaint = sifted(5, 9e14, 100, 120, SLACK * 100, SLACK * 100 + 1, length=100.0)
    assert taken == [5, 100, 120, 200]
    assert complaint is not None and "9e+14" in complaint


@pytest.mark.parametrize("absurd", [9e14, 2e6])
def test_without_a_length_a_leap_that_does_not_go_on_is_left_out(absurd: float) -> None:
    taken, complaint = sifted(5, absurd, 6, 7)
    assert taken == [5, 6, 7]
    assert complaint is not None and f"{absurd:g}" in complaint


def test_a_leap_that_goes_on_is_taken_from_its_first_point() -> None:
    assert sifted(5_000_000, 5_000_001, 5_000_002) == ([5_000_000, 5_000_001, 5_000_002], None)


def test_two_absurd_numbers_do_not_confirm_one_another() -> None:
    assert sifted(5, 9e14, 9e14, 6)[0] == [5, 6]
    assert sifted(5, 9e9, 9e14, 6)[0] == [5, 6]


@given(st.lists(st.floats(0, LEAP), max_size=20))
def test_ordinary_progress_passes_as_it_is(iterations: list[float]) -> None:
    assert sifted(*iterations) == (iterations, None)
