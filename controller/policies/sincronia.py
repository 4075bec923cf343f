"""Sincronia: the order that BSSI finds over all jobs.

[known] S. Agarwal, S. Rajakrishnan, A. Narayan, R. Agarwal, D. Shmoys, A. Vahdat: Sincronia: Near-Optimal Network
Design for Coflows, SIGCOMM 2018, doi:10.1145/3230543.3230569. Offline: BSSI over all jobs (see
``controller.ordering.bssi``), within 4x of the optimal mean completion time without release times. Online: the length
of epochs doubles. At the start of an epoch a small LP chooses the jobs that fit into it, and BSSI orders them. The
other jobs follow, so that no capacity is wasted.

[ours] A job's load is that of all iterations it has left. Online, a job fits when the LP (most weight, no port loaded
for longer than the epoch) takes at least half of it. Epochs are 1, 2, 4 ... times ``unit_seconds`` long; after
``epochs`` of them the length starts again from one unit. An epoch begins at the first plan after the one before has
ended. The other jobs, and those that arrive during an epoch, are ordered by gamma / waiting time, least first, where
gamma is the time of the job's bottleneck port; this also ages them. The policy remembers the epoch's end and number,
and the places of the chosen jobs.

Cost: BSSI over n jobs (offline: at every plan); online an LP of n unknowns and a row a port at the start of an epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from controller.model import Ordering, Snapshot
from controller.ordering.bssi import bssi
from controller.ordering.loads import Floats, LoadMatrix, load_matrix, loads_left
from controller.policies.base import Policy, next_look
from controller.policies.parts.options import Number, Truth, Whole
from controller.quantities import duration

_ENDS = "epoch:ends"
_NUMBER = "epoch:number"
_PLACE = "place:"

_ONLINE, _UNIT_SECONDS, _EPOCHS = Truth(), Number(1e-6), Whole(1, 60)


class Sincronia(Policy):
    """BSSI orders all jobs together, one job in each band."""

    name = "sincronia"

    def __init__(
        self,
        *,
        online: Annotated[bool, _ONLINE, "Whether jobs are chosen for epochs whose length doubles."] = False,
        unit_seconds: Annotated[float, _UNIT_SECONDS, "The length of the first epoch, in seconds."] = 0.1,
        epochs: Annotated[int, _EPOCHS, "How many epochs there are until the first length again."] = 8,
    ) -> None:
        self.online = _ONLINE.check("online", online)
        self.unit_seconds = _UNIT_SECONDS.check("unit_seconds", unit_seconds)
        self.epochs = _EPOCHS.check("epochs", epochs)
        # The solver loads slowly, and only epochs need it.
        self._fitting: Callable[[LoadMatrix, Floats, float], NDArray[np.bool_]] = (
            import_module("controller.policies.parts.epoch_fit").fitting if online else _all_jobs
        )

    def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
        """Orders jobs by BSSI; with epochs, the memory holds the current epoch."""
        left = loads_left(snapshot, load_matrix(snapshot))
        gamma = left.bottlenecks()
        weight = np.array([job.weight for job in snapshot.jobs], dtype=float)
        if self.online:
            return self._by_epochs(snapshot, left, gamma, weight, previous.memory if previous is not None else {})
        order = bssi(left, weight).order
        return Ordering(
            policy=self.name,
            bands=tuple((snapshot.jobs[j].id,) for j in order),
            reasons={
                snapshot.jobs[j].id: f"number {place} of {len(order)} so that jobs end early on average (BSSI): "
                f"{duration(gamma[j])} left at its busiest port, weight {weight[j]:g}"
                for place, j in enumerate(order, 1)
            },
            until=next_look(snapshot),
        )

    def _by_epochs(
        self, snapshot: Snapshot, left: LoadMatrix, gamma: Floats, weight: Floats, memory: Mapping[str, float]
    ) -> Ordering:
        jobs = snapshot.jobs
        # A microsecond of slack ensures that a plan at an epoch's end does not miss it by rounding.
        if _ENDS not in memory or snapshot.now >= memory[_ENDS] - 1e-6:
            epoch_number = int(memory.get(_NUMBER, -1.0) + 1) % self.epochs
            length = self.unit_seconds * 2**epoch_number
            ends = snapshot.now + length
            fit = np.flatnonzero(self._fitting(left, weight, length))
            places = {jobs[fit[k]].id: place for place, k in enumerate(bssi(left.rows(fit), weight[fit]).order)}
        else:
            epoch_number, ends = int(memory[_NUMBER]), memory[_ENDS]
            places = {job.id: int(memory[_PLACE + job.id]) for job in jobs if _PLACE + job.id in memory}
        waited = np.array([max(snapshot.now - job.arrival, 1e-9) for job in jobs])
        urgency = gamma / waited
        rest = sorted((j for j, job in enumerate(jobs) if job.id not in places), key=urgency.__getitem__)
        epoch = f"epoch {epoch_number + 1} of {self.epochs}, which ends in {duration(max(ends - snapshot.now, 0.0))}"
        reasons = {
            job: f"number {place + 1} of the {len(places)} that fit into {epoch}, "
            "so that jobs end early on average (BSSI)"
            for job, place in places.items()
        }
        for j in rest:
            reasons[jobs[j].id] = (
                f"not chosen for {epoch}, so it goes after those; {urgency[j]:.4g} = {duration(gamma[j])} left at its "
                f"busiest port / {duration(waited[j])} since its arrival (lowest goes first)"
            )
        order = [*sorted(places, key=places.__getitem__), *(jobs[j].id for j in rest)]
        return Ordering(
            policy=self.name,
            bands=tuple((job,) for job in order),
            reasons=reasons,
            until=ends,
            memory={
                _ENDS: ends,
                _NUMBER: float(epoch_number),
                **{_PLACE + job: float(place) for job, place in places.items()},
            },
        )


def _all_jobs(left: LoadMatrix, _weight: Floats, _seconds: float) -> NDArray[np.bool_]:
    """Returns that all jobs fit, because there are no epochs offline."""
    return np.ones(left.jobs, dtype=bool)
