"""How streams share a link under each order."""

from __future__ import annotations

import pytest

from evaluation.tensorlights.streams.orders import (
    Bands,
    FirstCome,
    HashedQueues,
    Load,
    OneQueue,
    Order,
    Shares,
    Stream,
    orders,
)

JOBS = range(21)
ALL = [Stream(job, worker) for job in JOBS for worker in range(4)]


def shares(order: Order, streams: list[Stream], now: float = 0.0, living: range = JOBS) -> Shares:
    return order.shares(Load(streams, living, now))


@pytest.mark.parametrize("name", orders(1))
@pytest.mark.parametrize("streams", [ALL, ALL[8:30], ALL[:1]])
def test_no_share_of_the_link_is_wasted_and_none_is_given_twice(name: str, streams: list[Stream]) -> None:
    found = shares(orders(1)[name], streams)
    assert sum(found.values()) == pytest.approx(1.0)
    assert set(found) <= set(streams)
    assert min(found.values()) > 0.0


def test_in_one_queue_all_are_alike() -> None:
    assert set(shares(OneQueue(), ALL).values()) == {1 / 84}


def test_in_one_queue_that_holds_all_who_came_first_goes_first() -> None:
    assert shares(FirstCome(), [Stream(5, 1), Stream(0, 0)]) == {Stream(5, 1): 1.0}


def test_in_hashed_queues_streams_of_a_full_queue_are_slower_for_life() -> None:
    order = HashedQueues(4, 3)
    first = shares(order, ALL)
    assert len(set(first.values())) > 1, "chance fills no four queues alike"
    by_share: dict[float, int] = {}
    for share in first.values():
        by_share[share] = by_share.get(share, 0) + 1
    assert all(count * share * 4 == pytest.approx(round(count * share * 4)) for share, count in by_share.items())
    assert shares(order, ALL) == first
    assert shares(HashedQueues(4, 3), ALL) == first
    assert shares(HashedQueues(4, 4), ALL) != first


def test_of_21_jobs_three_share_the_first_band_and_its_link() -> None:
    found = shares(Bands(), ALL)
    assert set(found) == {stream for stream in ALL if stream.job < 3}
    assert all(share == pytest.approx(1 / 12) for share in found.values())
    uneven = shares(Bands(), [Stream(0, 1), *(Stream(1, worker) for worker in range(4)), Stream(9, 1)])
    assert uneven[Stream(0, 1)] == pytest.approx(0.5), "jobs of a band share alike, whatever their streams"
    assert uneven[Stream(1, 1)] == pytest.approx(0.125)


def test_a_band_is_served_when_those_before_it_have_nothing_to_send() -> None:
    assert set(shares(Bands(), [Stream(4, 0), Stream(20, 0)])) == {Stream(4, 0)}
    assert set(shares(Bands(), [Stream(20, 0)])) == {Stream(20, 0)}


def test_fewer_jobs_have_bands_of_their_own() -> None:
    of_seven = [stream for stream in ALL if stream.job < 7]
    assert {stream.job for stream in shares(Bands(), of_seven, living=range(7))} == {0}
    assert {stream.job for stream in shares(Bands(alone=True), ALL)} == {0}


def test_jobs_take_turns() -> None:
    order = Bands(rotate_seconds=20.0)
    served = [{stream.job for stream in shares(order, ALL, now=20.0 * turn + 1)} for turn in range(7)]
    assert set.union(*served) == set(JOBS)
    assert all(len(jobs) == 3 for jobs in served)


def test_workers_may_get_the_model_one_by_one() -> None:
    found = shares(Bands(one_by_one=True), ALL)
    assert found == {Stream(job, 0): pytest.approx(1 / 3) for job in range(3)}
