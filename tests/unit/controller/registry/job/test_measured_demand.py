"""Bytes of an iteration from counts and progress that come at their own moments."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.model import Demand, Progress
from controller.pieces import whole
from controller.registry.job.measured_demand import MAX_SAMPLES, WINDOW_ITERATIONS, Measured, Measurement, disagreements

MB = 1e6


def measure(measured: Measured, points: Sequence[Progress]) -> bool:
    """Measures at once; returns whether the demand is another one."""
    return whole(measured.measure_in_steps(points))


def progress(until: float, every: float = 1.0, seconds: float = 1.0) -> list[Progress]:
    """An iteration takes ``seconds``; told every so many."""
    count = int(until / every)
    return [Progress(n * every, n * every * seconds) for n in range(count + 1)]


def steady(measured: Measured, host: str, peer: str, *, until: float, sent: float = MB, received: float = 0.0) -> None:
    for time in range(0, int(until) + 1, 5):
        measured.note(host, "s", float(time), {(host, peer): (sent * time, received * time)})


def demand_of(measured: Measured) -> dict[tuple[str, str], float]:
    assert measured.value is not None
    return {(demand.src, demand.dst): demand.bytes for demand in measured.value.demand}


def test_bytes_of_an_iteration_are_those_that_its_connections_carried() -> None:
    measured = Measured()
    steady(measured, "h1", "h2", until=30)
    steady(measured, "h2", "h1", until=30, sent=2 * MB, received=MB)
    assert measure(measured, progress(40))
    assert demand_of(measured) == pytest.approx({("h1", "h2"): MB, ("h2", "h1"): 2 * MB})
    assert measured.value is not None and measured.value.iterations >= WINDOW_ITERATIONS


def test_a_peer_without_an_agent_is_measured_by_what_comes_from_it() -> None:
    measured = Measured()
    steady(measured, "h1", "h2", until=30, received=3 * MB)
    measure(measured, progress(40))
    assert demand_of(measured) == pytest.approx({("h1", "h2"): MB, ("h2", "h1"): 3 * MB})


def test_what_is_sent_once_at_the_start_leaves_with_the_window() -> None:
    measured = Measured()
    for time in range(0, 61, 5):
        measured.note("h1", "s", float(time), {("h1", "h2"): ((500 * MB if time else 0) + MB * time, 0.0)})
        measure(measured, progress(time + 1))
        if time == 10:
            assert demand_of(measured)["h1", "h2"] > 10 * MB
    assert demand_of(measured)["h1", "h2"] == pytest.approx(MB)


def test_without_progress_there_is_no_measurement() -> None:
    measured = Measured()
    steady(measured, "h1", "h2", until=30)
    assert not measure(measured, [])
    assert not measure(measured, progress(1))
    assert not measure(measured, [Progress(0, 0.0), Progress(2, 40.0)]), "two iterations tell nothing"
    assert measured.value is None


def test_noise_changes_nothing_and_another_load_does() -> None:
    measured = Measured()
    steady(measured, "h1", "h2", until=30)
    assert measure(measured, progress(40))
    before = measured.value
    measured.note("h1", "s", 35.0, {("h1", "h2"): (35.5 * MB, 0.0)})
    assert not measure(measured, progress(40)) and measured.value is before
    for time in range(40, 101, 5):
        measured.note("h1", "s", float(time), {("h1", "h2"): (35.5 * MB + 3 * MB * (time - 35), 0.0)})
    assert measure(measured, progress(110))
    assert demand_of(measured)["h1", "h2"] == pytest.approx(3 * MB)


def test_another_count_begins_anew_and_late_ones_add_nothing() -> None:
    measured = Measured()
    steady(measured, "h1", "h2", until=30)
    measured.note("h1", "s", 12.0, {("h1", "h2"): (99 * MB, 0.0)})
    measure(measured, progress(40))
    assert demand_of(measured)["h1", "h2"] == pytest.approx(MB)
    # The agent was restarted: its count is not below the one before, it is another one.
    for time in range(40, 61, 5):
        measured.note("h1", "t", float(time), {("h1", "h2"): (MB * (time - 40), 0.0)})
    assert not measure(measured, progress(70)), "the same as before"
    # A clock that is set back by more than a late report can be.
    for time in range(-500, -400, 5):
        measured.note("h1", "t", float(time), {("h1", "h2"): (20 * MB + 5 * MB * (time + 500), 0.0)})
    assert measure(measured, [Progress(n, n - 500.0) for n in range(120)])
    assert demand_of(measured)["h1", "h2"] == pytest.approx(5 * MB)


def test_small_talk_is_no_demand_and_memory_is_bounded() -> None:
    measured = Measured()
    for time in range(10_000):
        measured.note("h1", "s", float(time), {("h1", "h2"): (MB * time, 10.0 * time)})
    assert len(measured._series["h1"].samples) <= MAX_SAMPLES
    measure(measured, progress(10_000))
    assert demand_of(measured) == pytest.approx({("h1", "h2"): MB})


@settings(max_examples=200, deadline=None)
@given(
    st.floats(1e4, 1e9),
    st.floats(0.05, 20.0),
    st.integers(1, 10),
    st.lists(st.floats(0.5, 9.0), min_size=8, max_size=60),
)
def test_a_steady_job_is_measured_whatever_the_moments(
    one: float, seconds: float, every: int, gaps: list[float]
) -> None:
    measured, time = Measured(), 0.0
    for gap in gaps:
        time += gap
        measured.note("h1", "s", time, {("h1", "h2"): (one * time / seconds, 0.0)})
    points = progress(time / seconds + every, every, seconds)
    if measure(measured, points):
        assert demand_of(measured)["h1", "h2"] == pytest.approx(one, rel=1e-3)
    else:
        assert (time - gaps[0]) / seconds < 3.0 + every


def test_what_is_declared_and_measured_otherwise_is_said_by_host() -> None:
    measured = Measurement((Demand("h1", "h2", 10 * MB), Demand("h1", "h3", 10 * MB)), 20.0, frozenset({"h1", "h4"}))
    measured = measured._replace(missed={"h1": 0.0, "h4": 0.0})
    assert disagreements([Demand("h1", "h2", 15 * MB)], measured) == ()
    (problem,) = disagreements([Demand("h1", "h2", 4 * MB)], measured)
    assert "4e+06 bytes an iteration from h1" in problem and "2e+07 were measured over 20" in problem
    assert len(disagreements([Demand("h1", "h2", 20 * MB), Demand("h4", "h1", MB)], measured)) == 1
    # Of a host that tells nothing, nothing is known; and small differences are none.
    assert (
        disagreements([Demand("h1", "h2", 20 * MB), Demand("h5", "h1", 90 * MB), Demand("h4", "h1", 60_000)], measured)
        == ()
    )


def test_too_much_is_declared_only_if_no_short_connection_can_have_carried_it() -> None:
    seen = Measurement((Demand("h1", "h2", MB),), 20.0, frozenset({"h1"}), {"h1": 0.0})
    declared = [Demand("h1", "h2", 10 * MB)]
    assert len(disagreements(declared, seen)) == 1
    assert disagreements(declared, seen._replace(missed={"h1": 5 * MB})) == ()
    assert len(disagreements(declared, seen._replace(missed={"h1": MB}))) == 1
    assert disagreements(declared, seen._replace(missed={})) == (), "the host does not know what it missed"
    # More than what is declared was seen, whatever was not.
    assert len(disagreements([Demand("h1", "h2", MB / 4)], seen._replace(missed={}))) == 1


def test_missed_bytes_are_an_iterations_and_follow_what_is_known() -> None:
    measured = Measured()
    for time in range(0, 31, 5):
        measured.note("h1", "s", float(time), {("h1", "h2"): (MB * time, 0.0)}, 1000.0 + 5.0 * time)
        measured.note("h2", "s", float(time), {("h2", "h1"): (MB * time, 0.0)}, None if time == 0 else 0.0)
    assert measure(measured, progress(40))
    assert measured.value is not None and measured.value.missed == pytest.approx({"h1": 5.0, "h2": 0.0})
    for time in range(35, 61, 5):
        measured.note("h1", "s", float(time), {("h1", "h2"): (MB * time, 0.0)}, None)
        measured.note("h2", "s", float(time), {("h2", "h1"): (MB * time, 0.0)}, 0.0)
    assert not measure(measured, progress(70)), "the demand is the same"
    assert measured.value.missed == {"h2": 0.0}
