"""Waits between tries: longer with every failure, up to a bound, and never in step with others."""

from __future__ import annotations

from host_reporter.uplink.backoff import Backoff


def waits(failures: int) -> list[float]:
    backoff = Backoff(first_seconds=0.2, most_seconds=5.0)
    return [backoff.next_seconds() for _ in range(failures)]


def test_the_bound_doubles_up_to_the_most() -> None:
    many = [waits(8) for _ in range(400)]
    for number, bound in enumerate((0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0)):
        drawn = [each[number] for each in many]
        assert 0.9 * bound < max(drawn) <= bound


def test_agents_that_lose_the_controller_together_do_not_come_back_together() -> None:
    # The fourth wait of many agents is spread over the whole of its bound.
    drawn = sorted(waits(4)[3] for _ in range(400))
    assert drawn[40] < 0.4
    assert drawn[-40] > 1.2


def test_a_success_begins_anew() -> None:
    backoff = Backoff(first_seconds=0.2, most_seconds=5.0)
    for _ in range(6):
        backoff.next_seconds()
    backoff.reset()
    assert backoff.next_seconds() <= 0.2
