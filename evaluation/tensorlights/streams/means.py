"""The means of simulated jobs: completion times and waits, by the order at the servers' NICs. Pure."""

from __future__ import annotations

from itertools import groupby
from statistics import fmean
from typing import NamedTuple

from evaluation.tensorlights.streams.host import Simulated, simulate
from evaluation.tensorlights.streams.orders import Order
from topologies.experiments.experiment import Experiment


class Means(NamedTuple):
    """Means over jobs: completion time, wait at the worker, its variance, and wait at the server."""

    jct: float
    wait: float
    variance: float
    server_wait: float


def means(experiment: Experiment, order: Order) -> Means:
    """Returns the means under an order at every host with servers.

    Hosts do not meet here: what workers send and get takes nothing of the links of other servers. So it is right where
    all servers share one host, and too fast by several per cent where several hosts have some. Raises ValueError where
    tasks share processors.
    """
    if experiment.processors is not None:
        raise ValueError(f"experiment {experiment.name}: its tasks share processors; here none do")
    by_server = sorted(experiment.jobs, key=lambda job: job.hosts[0])
    jobs: list[Simulated] = []
    for _host, plans in groupby(by_server, key=lambda job: job.hosts[0]):
        jobs += simulate(list(plans), experiment.link_bps, order).values()
    barriers = [job.barrier for job in jobs if job.barrier is not None]
    return Means(
        jct=fmean(job.jct for job in jobs),
        wait=fmean(barrier.mean_seconds for barrier in barriers),
        variance=fmean(barrier.variance for barrier in barriers),
        server_wait=fmean(barrier.at_server.mean_seconds for barrier in barriers if barrier.at_server is not None),
    )
