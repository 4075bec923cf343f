"""Poisson arrivals that offer the network a stated load."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from controller.model import BITS_PER_BYTE
from simulator.jobs import SimJob, Transfer, Workload


def job_bytes(job: SimJob) -> float:
    """All bytes that a job sends over its iterations."""
    once = sum(flow.bytes for lane in job.lanes for step in lane if isinstance(step, Transfer) for flow in step.flows)
    return once * job.iterations


def flows(workload: Workload) -> int:
    """Flows that the jobs of a workload have, an iteration."""
    steps = (step for job in workload.jobs for lane in job.lanes for step in lane)
    return sum(len(step.flows) for step in steps if isinstance(step, Transfer))


def poisson(random: Random, sizes: Sequence[float], load: float, hosts: int, port_rate_bps: float) -> list[float]:
    """Arrival times (seconds) of things of ``sizes`` bytes: exponential gaps; the first arrives at 0.

    The mean gap is such that the mean port is used to ``load`` (0..1) while arrivals last: every byte loads one of
    the ``hosts`` egress ports and one of the ingress ports, each of ``port_rate_bps``.
    """
    if not sizes:
        return []
    mean_gap = sum(sizes) / len(sizes) * BITS_PER_BYTE / (load * hosts * port_rate_bps)
    times = [0.0]
    for _ in sizes[1:]:
        times.append(times[-1] + (random.expovariate(1 / mean_gap) if mean_gap > 0 else 0.0))
    return times
