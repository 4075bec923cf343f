"""How many iterations an epoch has, of a job whose progress counts epochs. Pure.

It is what the job sends in an epoch, as hosts have measured it, by what it declares to send in an iteration.
Bytes alone do not tell iterations: without a declared demand an epoch stays one, and its demand is that of an epoch.
"""

from __future__ import annotations

from collections.abc import Sequence

from controller.model import Demand
from controller.registry.job.measured_demand import LEAST_BYTES, Measurement, sent_by_host

AGREEMENT = 1.25
"""The hosts may say different numbers, up to such a factor from the one of all hosts: a validation is no training."""


def iterations_of_epoch(declared: Sequence[Demand], measured: Measurement) -> float | None:
    """Returns the iterations of an epoch as a whole number; None where hosts disagree, or nothing tells it.

    ``declared`` is of one iteration, ``measured`` of one epoch. Only hosts count that have counted their own bytes.
    """
    said, seen = sent_by_host(declared), sent_by_host(measured.demand)
    hosts = [host for host in measured.sources if said.get(host, 0.0) >= LEAST_BYTES]
    if not hosts:
        return None
    count = sum(seen.get(host, 0.0) for host in hosts) / sum(said[host] for host in hosts)
    ratios = [seen.get(host, 0.0) / said[host] for host in hosts]
    if count < 1.0 or min(ratios) * AGREEMENT < count or max(ratios) > count * AGREEMENT:
        return None
    return float(round(count))
