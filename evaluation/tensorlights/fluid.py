"""The jobs of the claim as fluid flows: what the order alone does to completion times, without packets and processors.

A simulated policy orders both ends of every link, and TensorLights in a lab only what servers send. Equal flows of a
fan-out end at the same moment here, so a simulation says nothing of waits at barriers.
"""

from __future__ import annotations

from statistics import fmean

from controller.policies.registry import make
from evaluation.simulated import workload
from simulator.engine import Limits, simulate
from topologies.experiments.experiment import Experiment

POLICIES = {"fair": "fair", "tls-one": "tensorlights-one", "tls-rr": "tensorlights-rr", "tls-each": "fifo"}
"""The simulator's policies by the names of the arms. In the last one every job has a band of its own, by launch."""


def mean_jct(experiment: Experiment, arm: str) -> float:
    """Returns the mean completion time of an arm in seconds."""
    outcome = simulate(workload(experiment), make(POLICIES[arm]), Limits()).jobs.values()
    return fmean(job.end - job.arrival for job in outcome)
