"""A recording as an outcome, so that what was observed is measured as what is simulated. Pure."""

from __future__ import annotations

import numpy as np

from simulator.jobs import Transfer
from simulator.network import Network
from simulator.outcome import JobOutcome, Outcome
from simulator.recorded.jobs import RecordedWorkload


def observed(recorded: RecordedWorkload, network: Network, policy: str) -> Outcome:
    """Returns what was observed of the jobs. Times count from the first arrival, as those of a simulation."""
    jobs = recorded.estimated
    origin = min(each.job.arrival for each in jobs.values())
    carried = np.zeros(len(network.ports))
    outcomes = {}
    for name, each in jobs.items():
        steps = [step for lane in each.job.lanes for step in lane if isinstance(step, Transfer)]
        for step in steps:
            carried += network.bytes_on(step.flows) * each.job.iterations
        ends = each.ends - origin
        outcomes[name] = JobOutcome(
            id=name,
            arrival=each.job.arrival - origin,
            end=float(ends[-1]),
            bytes=each.bytes * each.iterations,
            iteration_ends=ends,
        )
    return Outcome(
        policy=policy,
        jobs=outcomes,
        port_bytes=dict(zip(network.ports, carried.tolist(), strict=True)),
        plans=0,
        iterations=sum(each.job.iterations for each in jobs.values()),
        wall_seconds=0.0,
        cpu_seconds=0.0,
    )
