"""One experiment under one choice of a policy, in the simulator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from controller.curves.fit import T90
from controller.policies.base import Policy
from controller.policies.registry import make
from evaluation.jpas.everything import Everything
from evaluation.simulated import workload
from simulator.engine import Limits, simulate
from simulator.network import Hose
from simulator.reports.targets import target_iteration
from simulator.sweep.facts import solo_seconds
from topologies.experiments.experiment import Experiment
from topologies.lab.results import PolicyChoice


@dataclass(frozen=True, slots=True)
class Means:
    """Means over the jobs of one run, in seconds from each one's arrival: to 90 % of its own gap, and to its end."""

    t90: float
    jct: float


def means(experiment: Experiment, choice: PolicyChoice, options: Mapping[str, float] | None = None) -> Means:
    """Simulates an experiment. ``options`` are further ones of the policy."""
    limits = Limits(classes=experiment.queues - 1, period=experiment.period_seconds)
    outcome = simulate(workload(experiment, choice.declares), _policy(choice, options or {}), limits).jobs
    return Means(
        fmean(
            float(outcome[job].iteration_ends[k - 1]) - outcome[job].arrival for job, k in _reached(experiment).items()
        ),
        fmean(job.end - job.arrival for job in outcome.values()),
    )


def means_alone(experiment: Experiment) -> Means:
    """Returns the means of each job alone on the network."""
    plain, reached = workload(experiment), _reached(experiment)
    network = Hose(plain.hosts)
    alone = {job.id: solo_seconds(job, plain.hosts, network) for job in plain.jobs}
    return Means(
        fmean(alone[job.id] * reached[job.id] / job.iterations for job in plain.jobs),
        fmean(alone.values()),
    )


def _reached(experiment: Experiment) -> dict[str, int]:
    """Returns the iteration at which each job closes 90 % of its own gap."""
    return {job.id: target_iteration(job.metrics, T90.fraction) or job.iterations for job in experiment.jobs}


def _policy(choice: PolicyChoice, options: Mapping[str, float]) -> Policy:
    if choice.policy == Everything.name:
        return Everything(**choice.options)
    return make(choice.policy, {**choice.options, **options})
