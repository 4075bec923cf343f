"""LAS: least attained service first, in exponentially spaced bands; needs no size and no progress.

[known] The idea of D-CLAS: M. Chowdhury, I. Stoica: Efficient Coflow Scheduling Without Prior Knowledge (Aalo),
SIGCOMM 2015, doi:10.1145/2785956.2787480: K queues with exponentially spaced thresholds, FIFO within a queue.
[ours] Service counts in seconds of a job's own bottleneck port, so that links of different rates can be compared. The
jobs of a band share the network; a band lists them by arrival, then by id. Cost O(n log n).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated

from controller.model import Ordering, Snapshot
from controller.ordering.loads import load_matrix
from controller.ordering.service import attained
from controller.policies.base import Policy
from controller.policies.parts.options import Number
from controller.quantities import duration

_LATE = 0.02
"""Where plans are made only when needed, a job moves down at most this late, as a share of its band's end."""

_FIRST_SECONDS = Number(1e-6)
_FACTOR = Number(1.01, 1e6)


class Las(Policy):
    """Jobs go by the service that they have had, the least first: band q ends at ``first_seconds`` x ``factor``^q."""

    name = "las"

    def __init__(
        self,
        first_seconds: Annotated[float, _FIRST_SECONDS, "The service at which the first band ends, in seconds."] = 1.0,
        factor: Annotated[float, _FACTOR, "How many times as far each band reaches as the band before it."] = 2.0,
    ) -> None:
        self.first_seconds = _FIRST_SECONDS.check("first_seconds", first_seconds)
        self.factor = _FACTOR.check("factor", factor)

    def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
        """Puts each job into the band of the service that it has had."""
        seconds = attained(snapshot, load_matrix(snapshot).bottlenecks()).tolist()
        used_by = {job.id: used for job, used in zip(snapshot.jobs, seconds, strict=True)}
        band_of = {
            job: 0 if used < self.first_seconds else 1 + int(math.log(used / self.first_seconds, self.factor))
            for job, used in used_by.items()
        }
        ends = {job: self.first_seconds * self.factor**band for job, band in band_of.items()}
        bands: dict[int, list[str]] = {}
        for job in sorted(snapshot.jobs, key=lambda job: (job.arrival, job.id)):
            bands.setdefault(band_of[job.id], []).append(job.id)
        return Ordering(
            policy=self.name,
            bands=tuple(tuple(bands[band]) for band in sorted(bands)),
            reasons={
                job: f"has used {duration(used)} of its busiest port: it shares with jobs from "
                f"{duration(ends[job] / self.factor if band_of[job] else 0.0)} to {duration(ends[job])} "
                "(lowest goes first)"
                for job, used in used_by.items()
            },
            until=snapshot.now + self._unchanged_seconds(band_of, used_by),
        )

    def _unchanged_seconds(self, band_of: Mapping[str, int], used_by: Mapping[str, float]) -> float:
        """Returns the seconds in which the order cannot change.

        It changes when a job leaves a band that it shares, or enters a band where another job is. In a second, no job
        uses more than a second of a port. A job that is not always served gets there later.
        """
        jobs_in = Counter(band_of.values())
        taken = sorted(jobs_in)
        next_taken = dict(pairwise(taken))
        soonest = math.inf
        for job, used in used_by.items():
            band = band_of[job]
            last = band if jobs_in[band] > 1 else next_taken.get(band, 0) - 1
            if last >= band:
                end = self.first_seconds * self.factor**last
                soonest = min(soonest, max(end - used, _LATE * end))
        return soonest
