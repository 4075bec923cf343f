"""Which layers are late while a worker chooses and afterwards, on a clock that the test keeps."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import pytest

from sasp.core.in_flight import InFlight
from sasp.training.partial import AGAIN, MEASURED, TRIED, WARM_UP, PartialStaleness

LAYERS = 4
COMPUTING = 1.0


class Alone:
    """The only worker."""

    def __init__(self) -> None:
        self.in_flight = InFlight()

    def largest(self, numbers: Sequence[float]) -> list[float]:
        return list(numbers)

    def first_ones(self, numbers: Sequence[int]) -> list[int]:
        return list(numbers)


def train(iterations: int, seconds: Callable[[int], float]) -> list[tuple[int, ...]]:
    """The leads of each iteration. With so many layers late it takes ``seconds``, transfers half of the computing."""
    meeting = Alone()
    partial = PartialStaleness(1, [100] * LAYERS, meeting)
    leads, now, all_leads = (0,) * LAYERS, 0.0, []
    for iteration in range(1, iterations + 1):
        waited = seconds(sum(leads)) - COMPUTING
        for layer in range(LAYERS):
            at = now + COMPUTING * layer / 3 / LAYERS + (waited if layer else 0.0)
            partial.stopwatch.needed(layer, at, at + (0.0 if layer else waited))
        for layer in reversed(range(LAYERS)):
            at = now + waited + COMPUTING * (1 - 2 / 3 * layer / LAYERS)
            partial.stopwatch.ready(layer, at)
            meeting.in_flight.sent(100, at)
            meeting.in_flight.came(100, at + COMPUTING / 2 / LAYERS)
        now += waited + COMPUTING
        all_leads.append(leads)
        leads = partial.after(iteration, now) or leads
    return all_leads


def test_layers_are_tried_until_an_iteration_is_about_as_short_as_with_all_late(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, "sasp"):
        leads = train(200, lambda late: 1.5 if late < 3 else 1.1)
    first = WARM_UP + MEASURED
    assert leads[:first] == [(0,) * LAYERS] * first
    assert leads[first : first + WARM_UP + TRIED] == [(1,) * LAYERS] * (WARM_UP + TRIED)
    assert leads[-1] == (1, 1, 1, 0)
    assert leads[-100:] == [leads[-1]] * 100
    assert caplog.messages == ["gradients of 3 of 4 layers may be late; without that 33% of an iteration was waiting"]


def test_nothing_is_late_where_it_does_not_pay() -> None:
    leads = train(200, lambda _late: 1.5)
    assert (1,) * LAYERS in leads, "it was tried"
    assert leads[-1] == (0,) * LAYERS
    assert set(train(200, lambda _late: 1.0)) == {(0,) * LAYERS}, "nothing waits, so nothing is tried"


def test_it_chooses_again_when_the_network_is_another() -> None:
    leads = train(AGAIN + 200, lambda late: 1.5 if late < 3 else 1.1)
    assert leads[AGAIN : AGAIN + WARM_UP + MEASURED] == [(0,) * LAYERS] * (WARM_UP + MEASURED)
    assert leads[-1] == (1, 1, 1, 0)
