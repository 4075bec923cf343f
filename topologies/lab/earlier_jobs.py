"""Fills the journal of an arm's controller with the jobs that ended before, as if it had restarted after them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from controller.families.families import Families
from controller.families.names import FamilyKey, Owner
from controller.journal.store import Store
from controller.pieces import whole
from controller.registry.families import KeptFamilies
from simulator.families import finished_run
from topologies.errors import LabError
from topologies.experiments.earlier import EarlierJob
from topologies.experiments.family_plan import USER

APART_SECONDS = 1.0
"""The jobs ended so long after each other, and the last one so long before the controller starts."""


def note(journal: Path, earlier: Sequence[EarlierJob], now: float) -> None:
    """Write the runs of jobs, oldest first, into the journal of a controller that starts at ``now``.

    ``now`` is in seconds since the epoch. Raises LabError where the journal cannot be written, and
    simulator.workloads.curves.CurveError where there is no such curve.
    """
    store = Store(journal)
    try:
        families = KeptFamilies(Families(), store)
        for number, job in enumerate(earlier, start=1):
            ended_at = now - (len(earlier) + 1 - number) * APART_SECONDS
            run = finished_run((job.id, ended_at), job.metrics, ended_at=ended_at)
            families.keep_run(FamilyKey(Owner(user=USER), job.family), run)
        failure = store.failure or store.write(whole(store.dequeue_in_steps()))
    finally:
        store.close()
    if failure is not None:
        raise LabError(f"the journal cannot be written: {failure}")
