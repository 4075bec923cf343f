"""The choice of layers whose gradients may be late, against schedules that were computed by hand."""

from __future__ import annotations

import pytest

from sasp.core.in_flight import Carried, InFlight
from sasp.core.partial import LayerTimes, Times, choose_leads, explained, iteration_seconds


def even(layers: int, transfer: float, latency: float = 0.0) -> Times:
    """Layers of equal size: a third of a second forward, two thirds backward; all transfers take ``transfer`` s."""
    return Times(
        1.0,
        tuple(LayerTimes(i / 3 / layers, 1 - 2 / 3 * i / layers, transfer / layers) for i in range(layers)),
        latency,
    )


def test_an_iteration_takes_what_the_hand_computes() -> None:
    # One layer: computing and transfer alternate without staleness; with it the longer of the two is what counts.
    one = Times(1.0, (LayerTimes(0.0, 1.0, 0.5),))
    assert iteration_seconds(one, [0]) == pytest.approx(1.5)
    assert iteration_seconds(one, [1]) == pytest.approx(1.0)
    assert iteration_seconds(one._replace(latency=0.25), [0]) == pytest.approx(1.75)
    assert iteration_seconds(one._replace(latency=0.75), [1]) == pytest.approx(1.125)
    assert iteration_seconds(Times(1.0, (LayerTimes(0.0, 1.0, 1.5),)), [1]) == pytest.approx(1.5)
    # Two layers: the back one's transfer hides behind the front one's backward pass, which ends at 1.
    two = Times(1.0, (LayerTimes(0.0, 1.0, 0.2), LayerTimes(0.25, 0.5, 0.4)))
    assert iteration_seconds(two, [0, 0]) == pytest.approx(1.2)
    assert iteration_seconds(two, [1, 0]) == pytest.approx(1.0)
    # The back one's transfer takes too long: it ends at 1.4, after the front one's, which goes before it from 1 to 1.2.
    slow = Times(1.0, (LayerTimes(0.0, 1.0, 0.2), LayerTimes(0.25, 0.5, 0.7)))
    assert iteration_seconds(slow, [0, 0]) == pytest.approx(1.2)
    # Late, the front one goes after it, which then ends at 1.2 and is needed at 1.25.
    assert iteration_seconds(slow, [1, 0]) == pytest.approx(1.0)


def test_nothing_is_late_where_there_is_nothing_to_win() -> None:
    assert choose_leads(even(8, 0.01), 1) == (0,) * 8
    assert choose_leads(even(8, 0.9, 0.5), 0) == (0,) * 8


@pytest.mark.parametrize("transfer", [0.5, 0.9, 1.0, 1.5])
@pytest.mark.parametrize("latency", [0.1, 0.3])
def test_no_more_layers_are_late_than_the_time_needs(transfer: float, latency: float) -> None:
    times = even(8, transfer, latency)
    leads = choose_leads(times, 1)
    late = sum(leads)
    assert late > 0
    assert leads == (1,) * late + (0,) * (8 - late)
    limit = 1.02 * iteration_seconds(times, (1,) * 8)
    assert iteration_seconds(times, leads) <= limit
    assert iteration_seconds(times, (1,) * (late - 1) + (0,) * (9 - late)) > limit


def test_more_layers_are_late_the_later_the_network_answers() -> None:
    late = [sum(choose_leads(even(12, 0.3, latency), 1)) for latency in (0.0, 0.1, 0.2, 0.3)]
    assert late == sorted(late)
    assert late[0] == 0
    assert 0 < late[1] < late[-1]


def test_more_than_one_iteration_late_only_if_it_pays() -> None:
    # With one iteration late the network or the processor is busy all the time already.
    assert max(choose_leads(even(8, 1.0, 0.2), 3)) == 1
    assert max(choose_leads(even(8, 0.5, 1.5), 3)) == 2


@pytest.mark.parametrize("leads", [(0,) * 6, (1,) * 3 + (0,) * 3])
def test_the_latency_is_what_explains_the_measured_time(leads: tuple[int, ...]) -> None:
    times = even(6, 0.8, 0.4)
    found = explained(times._replace(latency=0.0), leads, iteration_seconds(times, leads))
    assert found.latency == pytest.approx(0.4, abs=0.001)
    assert explained(times, leads, 0.5).latency == 0


def test_what_is_in_flight_is_timed_once_however_much_it_is() -> None:
    flight = InFlight()
    flight.sent(10, 1.0)
    flight.sent(20, 2.0)
    flight.came(10, 3.0)
    flight.came(20, 4.0)
    flight.sent(5, 10.0)
    assert flight.look(11.0) == Carried(30, 4.0)
    flight.came(5, 12.0)
    assert flight.look(13.0) == Carried(5, 1.0)
