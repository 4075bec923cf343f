"""Numbers as people read them."""

from __future__ import annotations

import pytest

from controller.cli.top import words
from tests.support.controller.cli.pictures import job, target


@pytest.mark.parametrize(
    ("rate", "text"),
    [(None, "-"), (0.0, "0 B/s"), (999.0, "999 B/s"), (999.7, "1.00 kB/s"), (12_345_678.0, "12.3 MB/s"),
     (999_600.0, "1.00 MB/s"), (250e9, "250 GB/s")],
)  # fmt: skip
def test_a_rate_has_three_digits(rate: float | None, text: str) -> None:
    assert words.byte_rate(rate) == text


def test_a_target_is_shown_with_its_interval() -> None:
    predicted = {"t90": target(120.4, 100, 151), "t95": target(200, 190, 210)}
    assert words.target(job("a", 0, targets=predicted)) == "t90 0.9 at 120 (100-151)"
    assert words.target(job("a", 0, targets=predicted), is_short=True) == "t90 120 (100-151)"
    past = {name: each | {"reached": True} for name, each in predicted.items()}
    assert words.target(job("a", 0, targets=predicted | {"t90": past["t90"]})) == "t95 0.9 at 200 (190-210)"
    assert words.target(job("a", 0, targets=past)) == "past t95"
    declared = job("a", 0, targets=predicted | {"target": target(80, 70, 95, 0.85)}, spec={"target": 0.85})
    assert words.target(declared) == "target 0.85 at 80 (70-95)"
    assert words.target(job("a", 0, spec={"target": 0.85})) == "target 0.85"
    unknown = {"metric": None, "iteration": None, "low": None, "high": None}
    assert words.target(job("a", 0, targets={"t90": unknown})) == "-"


def test_a_metric_has_its_name_where_there_is_room() -> None:
    assert words.metric(job("a", 0, last_metric=0.87654)) == "accuracy 0.8765"
    assert words.metric(job("a", 0, last_metric=0.87654), is_short=True) == "0.8765"
    assert words.metric(job("a", 0, last_metric=None)) == "-"
