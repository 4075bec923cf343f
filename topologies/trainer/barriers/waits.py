"""How long workers wait at a barrier for the slowest of them, and what makes them wait. Pure.

A worker of a parameter-server job comes to the barrier of an iteration when it has computed, and then pushes. The
barrier opens when the server has every push. A worker that gets its model late comes late, and all others wait.

The wait is measured in two ways. At the worker it is from the moment when a worker has computed to the moment when the
last one has. At the server it is from the arrival of a worker's push to the arrival of the last one. The authors of
TensorLights recorded the second [known, from their released code: both time stamps of a barrier are taken on the device
of its queues, which is the server].
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import correlation, fmean, pvariance

from topologies.trainer.barriers.record import ServerMoments, WorkerMoments

Barriers = list[tuple[float, ...]]
"""A moment of each worker, for each barrier."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The mean wait of a worker in seconds, and the mean variance among the workers of a barrier in seconds squared."""

    mean_seconds: float
    variance: float


@dataclass(frozen=True, slots=True)
class WaitCauses:
    """What makes workers wait. The two waits do not add up, because the same worker need not be the last in both.

    ``models_seconds`` is the mean wait if every worker computed for exactly the job's time: what the arrival of models
    does. ``late_seconds`` is the mean wait if all models came at once: what late wake-ups of computing workers do, and
    shared processors, where the experiment has some.
    ``fan_out_seconds`` is the mean time from the opening of a barrier to the last worker's model. ``order`` is the mean
    rank correlation (C. Spearman, 1904) between the workers' ranks, in whose order the server addresses them, and the
    order in which they get the model. It is 1 where one worker gets it after the other, and near 0 where all get it
    together. None: a single worker has no order, nor have those who get it at the same moment.
    """

    models_seconds: float
    late_seconds: float
    fan_out_seconds: float
    order: float | None


@dataclass(frozen=True, slots=True)
class BarrierWait:
    """The waits over the ``barriers`` of a job: at the workers, at the server, and what makes them.

    ``mean_seconds`` and ``variance`` are those at the workers.
    """

    barriers: int
    mean_seconds: float
    variance: float
    at_server: Spread | None = None
    causes: WaitCauses | None = None


def waits(workers: Sequence[WorkerMoments], server: ServerMoments, compute_seconds: float) -> BarrierWait | None:
    """Returns the waits of a job whose workers compute for so long; None where no barrier was reached by all.

    The first of several barriers does not count, because it includes the time to connect.
    """
    entered = _counted([worker.entered for worker in workers])
    if not entered:
        return None
    own = spread(entered)
    pushed = _counted(server.pushed)
    return BarrierWait(
        barriers=len(entered),
        mean_seconds=own.mean_seconds,
        variance=own.variance,
        at_server=spread(pushed) if pushed else None,
        causes=_causes(workers, server, compute_seconds),
    )


def spread(barriers: Barriers) -> Spread:
    """Returns the waits for the last worker of each barrier."""
    return Spread(
        mean_seconds=fmean(max(moments) - moment for moments in barriers for moment in moments),
        variance=fmean(pvariance(moments) for moments in barriers),
    )


def _causes(workers: Sequence[WorkerMoments], server: ServerMoments, compute_seconds: float) -> WaitCauses | None:
    ready = _counted([worker.ready[: len(worker.entered)] for worker in workers])
    late = _counted(
        [
            [entered - ready - compute_seconds for ready, entered in zip(worker.ready, worker.entered, strict=False)]
            for worker in workers
        ]
    )
    received = zip(*(worker.ready[1:] for worker in workers), strict=False)
    fan_outs = list(zip(server.opened, received, strict=False))
    fan_outs = fan_outs[1:] or fan_outs
    if not fan_outs:
        return None
    orders = [order for _, moments in fan_outs if (order := _order(moments)) is not None]
    return WaitCauses(
        models_seconds=spread(ready).mean_seconds,
        late_seconds=spread(late).mean_seconds,
        fan_out_seconds=fmean(max(moments) - opened for opened, moments in fan_outs),
        order=fmean(orders) if orders else None,
    )


def _counted(moments: Sequence[Sequence[float]]) -> Barriers:
    """Returns the barriers that count, from each worker's moments."""
    barriers = list(zip(*moments, strict=False))
    return barriers[1:] or barriers


def _order(moments: Sequence[float]) -> float | None:
    """Returns the rank correlation between the places of moments and the moments; None where all are the same."""
    if len(set(moments)) < 2:
        return None
    ordered = sorted(moments)
    # Equal moments have the mean of their ranks.
    ranks = [bisect_left(ordered, moment) + bisect_right(ordered, moment) for moment in moments]
    return correlation(range(len(moments)), ranks)
