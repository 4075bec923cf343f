"""The iterations of an epoch, by what a job declares and what its hosts have counted."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.model import Demand, Progress
from controller.pieces import whole
from controller.registry.job.epochs import iterations_of_epoch
from controller.registry.job.measured_demand import Measured, Measurement
from tests.support.paths import ROOT

RING = json.loads((ROOT / "tests/data/traffic/ring.json").read_text())


def measurement(*demand: Demand, on: str = "h1 h2") -> Measurement:
    return Measurement(demand, 5.0, frozenset(on.split()))


def both(size: float, other: float | None = None) -> tuple[Demand, Demand]:
    return Demand("h1", "h2", size), Demand("h2", "h1", size if other is None else other)


@given(st.integers(1, 10**6), st.floats(0.98, 1.02), st.floats(0.98, 1.02))
def test_an_epoch_has_as_many_iterations_as_its_bytes_are_of(count: int, one: float, other: float) -> None:
    """What is counted differs a little from host to host, and from what the job declares."""
    found = iterations_of_epoch(both(1e6), measurement(*both(count * 1e6 * one, count * 1e6 * other)))
    assert found is None or found == pytest.approx(count, rel=0.03, abs=0.5)
    assert found is not None or count * min(one, other) < 1


@pytest.mark.parametrize(
    ("declared", "measured", "why"),
    [
        ((), measurement(*both(1e9)), "bytes alone do not tell iterations"),
        (both(1e6), measurement(*both(1e9), on=""), "nobody has counted"),
        (both(1e6), measurement(*both(1e9, 1e8)), "the hosts disagree"),
        (both(1e6), measurement(Demand("h1", "h2", 1e9)), "one of the hosts sends nothing"),
        (both(1e6), measurement(*both(5e5)), "an epoch is no part of an iteration"),
        (both(100.0), measurement(*both(1e9)), "it declares next to nothing"),
    ],
)
def test_where_it_is_not_sure_nothing_is_told(declared: tuple[Demand, ...], measured: Measurement, why: str) -> None:
    assert iterations_of_epoch(declared, measured) is None, why


def test_a_host_that_does_not_count_itself_has_no_say() -> None:
    assert iterations_of_epoch(both(1e6), measurement(*both(1e8, 1e3), on="h1")) == 100


def test_the_recorded_epochs_of_a_ring_have_the_iterations_that_it_ran() -> None:
    """The bytes at the start, a validation in each epoch, and looks that cut iterations: see ring_traffic."""
    measured = Measured()
    for time, sent, received in RING["counts"]:
        measured.note("h1", "s", time, {("h1", "h2"): (float(sent), float(received))})
    points = [Progress(float(epoch), time) for epoch, time in RING["points"]]
    assert whole(measured.measure_in_steps(points)) and measured.value is not None
    found = iterations_of_epoch(both(RING["bytes_of_iteration"]), measured.value)
    assert found == pytest.approx(RING["iterations_of_epoch"], rel=0.05)
