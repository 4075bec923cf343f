"""How long jobs compute: so long that under the recorded policy their fastest stretch takes as long as was observed.

A job that never had the network alone is slowed in its fastest stretch, too. So the stretch without the transfers alone
is more than it computes. A simulation of the recorded policy shows how much of it is waiting.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from controller.policies.base import Policy
from simulator.engine import simulate
from simulator.limits import Limits
from simulator.network import Network
from simulator.outcome import JobOutcome
from simulator.recorded.jobs import Estimated
from simulator.recorded.pace import least_seconds
from simulator.recorded.recording import Point
from simulator.recorded.source import Recorded, reading

ROUNDS = 3
"""Simulate so often. More rounds change the times no more than the events are exact."""
_MOST_POINTS = 100_000


def fitted(
    source: Recorded,
    policy: Policy,
    limits: Limits,
    network: Network,
    progress: Callable[[float], None] = lambda _share: None,
) -> Recorded:
    """Returns the recording with the seconds that its jobs compute. ``policy`` is what the network followed.

    ``progress`` is told the share of the fit that is done.
    """
    for number in range(ROUNDS):
        _, recorded = reading(source)
        outcome = simulate(recorded.workload, policy, limits, network=network, progress=_in_round(number, progress))
        computes = {
            name: _next(each, outcome.jobs[name]) for name, each in recorded.estimated.items() if each.most_compute > 0
        }
        source = replace(source, computes=tuple(sorted(computes.items())))
    return source


def _in_round(number: int, progress: Callable[[float], None]) -> Callable[[float], None]:
    """Returns what takes the share of a round that is done."""
    return lambda share: progress((number + share) / ROUNDS)


def _next(each: Estimated, ran: JobOutcome) -> float:
    """Returns how long an iteration computes, nearer to the truth than before."""
    simulated = least_seconds(_points(each, ran))
    return min(max(each.compute_seconds + each.least_seconds - simulated, 0.0), each.most_compute)


def _points(each: Estimated, ran: JobOutcome) -> list[Point]:
    """Returns what events would have shown of a simulated job, as often as they did of the real one."""
    ends = ran.iteration_ends if len(ran.iteration_ends) else np.array([ran.end])
    gap = max(each.gap, (ran.end - ran.arrival) / _MOST_POINTS)
    times = np.append(np.arange(ran.arrival, ran.end, gap), ran.end)
    done = np.searchsorted(ends, times, side="right") * (each.iterations / each.job.iterations)
    return [Point(time, count, None) for time, count in zip(times.tolist(), done.tolist(), strict=True)]
