"""How long workers wait for each other at barriers, and what makes them wait."""

from __future__ import annotations

import pytest

from topologies.trainer.barriers.record import ServerMoments, WorkerMoments
from topologies.trainer.barriers.waits import BarrierWait, Spread, waits

NO_SERVER = ServerMoments((), ())


def workers(*entered: tuple[float, ...]) -> list[WorkerMoments]:
    """Workers that compute for a second, of whom only the moments at barriers are given."""
    return [WorkerMoments(tuple(moment - 1.0 for moment in moments), moments) for moments in entered]


def test_workers_wait_for_the_last_that_comes() -> None:
    assert waits([], NO_SERVER, 1.0) is None
    assert waits(workers((), ()), NO_SERVER, 1.0) is None
    found = waits(workers((0.0, 10.0, 20.0), (5.0, 12.0, 24.0, 30.0)), NO_SERVER, 1.0)
    assert found is not None
    assert found.barriers == 2, "the first is left out, and what not all came to"
    assert found.mean_seconds == pytest.approx((2.0 + 0.0 + 4.0 + 0.0) / 4)
    assert found.variance == pytest.approx((1.0 + 4.0) / 2)
    assert waits(workers((1.0,), (4.0,)), NO_SERVER, 1.0) == BarrierWait(1, 1.5, 2.25)


def test_at_the_server_a_wait_begins_when_the_push_is_there() -> None:
    server = ServerMoments(((2.0, 12.0), (9.0, 18.0)), (9.0, 18.0))
    found = waits(workers((1.0, 11.0), (1.0, 11.0)), server, 1.0)
    assert found is not None
    assert (found.mean_seconds, found.variance) == (0.0, 0.0), "both had computed at once"
    assert found.at_server == Spread(3.0, 9.0), "and one push took 6 s longer; the first barrier is left out"


def test_models_that_come_apart_and_workers_that_wake_late_are_told_apart() -> None:
    server = ServerMoments(((1.0, 12.0), (1.0, 12.0)), (1.0, 12.0))
    apart = waits(
        [WorkerMoments((0.0, 2.0, 13.0), (1.0, 3.0)), WorkerMoments((0.0, 6.0, 15.0), (1.0, 7.0))], server, 1.0
    )
    late = waits(
        [WorkerMoments((0.0, 2.0, 13.0), (1.0, 3.0)), WorkerMoments((0.0, 2.0, 15.0), (1.0, 7.0))], server, 1.0
    )
    assert apart is not None
    assert late is not None
    assert apart.mean_seconds == late.mean_seconds == pytest.approx(2.0)
    assert apart.causes is not None
    assert late.causes is not None
    assert (apart.causes.models_seconds, apart.causes.late_seconds) == (pytest.approx(2.0), pytest.approx(0.0))
    assert (late.causes.models_seconds, late.causes.late_seconds) == (pytest.approx(0.0), pytest.approx(2.0))
    assert apart.causes.fan_out_seconds == pytest.approx(3.0), "from 12 s to 15 s; the first fan-out is left out"


@pytest.mark.parametrize(
    ("received", "order"),
    [
        ((1.0, 2.0, 3.0), 1.0),
        ((3.0, 2.0, 1.0), -1.0),
        ((2.0, 1.0, 3.0), 0.5),
        ((1.0, 2.0, 2.0), 0.866),
        ((2.0, 1.0, 2.0), 0.0),
        ((2.0, 2.0, 2.0), None),
    ],
)
def test_the_order_of_arrival_is_compared_with_that_of_ranks(received: tuple[float, ...], order: float | None) -> None:
    server = ServerMoments(((0.0,),) * 3, (0.5,))
    found = waits([WorkerMoments((0.0, moment), (0.0,)) for moment in received], server, 0.0)
    assert found is not None
    assert found.causes is not None
    assert found.causes.order == pytest.approx(order, abs=1e-3)


def test_a_single_worker_has_no_order_and_waits_for_nobody() -> None:
    found = waits([WorkerMoments((0.0, 2.0), (1.0,))], ServerMoments(((1.1,),), (1.2,)), 1.0)
    assert found is not None
    assert found.mean_seconds == 0.0
    assert found.causes is not None
    assert found.causes.order is None
