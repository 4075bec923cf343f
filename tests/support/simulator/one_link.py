"""Jobs that share one link under an order by index: what an index is worth, apart from ports, classes and transfers.

A link serves ``AT_ONCE`` jobs at full speed; an iteration of a job takes equally long as another of it. Pure, and
random by its seed alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

JOBS = 24
MEAN_GAP_SECONDS = 1.0
ALONE_SECONDS = (20.0, 40.0)
AT_ONCE = 5.0
STEP_SECONDS = 0.1
PERIOD_SECONDS = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A run: its iterations, which of them reaches the target, and the index after 0, 1, ... of them."""

    iterations: int
    target: int
    index: Array


def headroom_won(runs: Sequence[Known], *, draws: int, seed: int) -> float:
    """The share of what equal shares take longer to the targets than each job alone that an order by index saves."""
    random = np.random.default_rng(seed)
    totals = {"fair": 0.0, "index": 0.0, "alone": 0.0}
    for _ in range(draws):
        jobs = [runs[place] for place in random.integers(0, len(runs), JOBS)]
        arrival = np.cumsum(random.exponential(MEAN_GAP_SECONDS, JOBS))
        seconds = random.uniform(*ALONE_SECONDS, JOBS)
        target = np.array([job.target / job.iterations for job in jobs])
        totals["alone"] += float((target * seconds).mean())
        totals["fair"] += _mean_time(jobs, arrival, seconds, target, by_index=False)
        totals["index"] += _mean_time(jobs, arrival, seconds, target, by_index=True)
    return (totals["fair"] - totals["index"]) / (totals["fair"] - totals["alone"])


def _mean_time(jobs: Sequence[Known], arrival: Array, seconds: Array, target: Array, *, by_index: bool) -> float:
    done, reached = np.zeros(JOBS), np.full(JOBS, np.inf)
    order = np.arange(JOBS)
    step = 0
    known = -1
    while not np.isfinite(reached).all():
        now = step * STEP_SECONDS
        here = (arrival <= now) & (done < 1.0)
        if by_index and (step % round(PERIOD_SECONDS / STEP_SECONDS) == 0 or int((arrival <= now).sum()) != known):
            known = int((arrival <= now).sum())
            index = [job.index[int(share * job.iterations)] for job, share in zip(jobs, done.tolist(), strict=True)]
            order = np.argsort(-np.array(index) * [job.iterations for job in jobs] / seconds, kind="stable")
        if by_index:
            turn = np.cumsum(here[order]) - here[order]
            rate = np.zeros(JOBS)
            rate[order] = here[order] * np.clip(AT_ONCE - turn, 0.0, 1.0)
        else:
            rate = here * min(1.0, AT_ONCE / max(int(here.sum()), 1))
        done = np.minimum(done + rate * STEP_SECONDS / seconds, 1.0)
        step += 1
        crossed = ~np.isfinite(reached) & (done >= target - 1e-9)
        reached[crossed] = step * STEP_SECONDS - arrival[crossed]
    return float(reached.mean())
