"""Hyper-parameter tuning in stages: studies by successive halving, Hyperband or ASHA that share a network.

Studies arrive by a Poisson process that offers the stated load. Each trains one model of the table with many
configurations; each trial is a job of a few workers with a barrier (BSP), which keeps its hosts from rung to rung.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Literal

from controller.model import Host
from simulator.errors import InputError
from simulator.jobs import SimJob, Workload
from simulator.workloads import halving
from simulator.workloads.arrivals import job_bytes, poisson
from simulator.workloads.asha import AshaFollower, Tuner
from simulator.workloads.scenario import Scenario
from simulator.workloads.sizes import check_reports
from simulator.workloads.study import Study, draw_study

Method = Literal["halving", "hyperband", "asha"]
FIRST_PORT = 20_000


@dataclass(frozen=True, slots=True)
class Tuning:
    """``jobs`` is the number of studies; a rung's iterations grow ``eta``-fold up to ``longest``.

    ``slots`` and ``batch`` are ASHA's: trials at once, and free slots that make a batch.
    """

    method: Method = "halving"
    hosts: int = 40
    jobs: int = 4
    load: float = 0.5
    seed: int = 1
    port_rate_bps: float = 1e9
    workers: tuple[int, int] = (2, 4)
    eta: int = 3
    shortest: int = 6
    longest: int = 162
    slots: int = 12
    batch: int = 4


def generate(tuning: Tuning, offline: bool = False) -> Scenario:
    """The studies of a setting; ``offline``: all arrive at 0. Raises InputError for a setting that cannot be."""
    check(tuning)
    random = Random(f"trainyard tuning {tuning.seed}")  # noqa: S311 - an experiment, to be repeated from its seed
    names = [f"h{number}" for number in range(1, tuning.hosts + 1)]
    rungs = halving.geometric(tuning.shortest, tuning.longest, tuning.eta)
    hyperband = tuning.method == "hyperband"
    configs = _configs(tuning)
    studies = [
        draw_study(
            random,
            name=f"study{number + 1}",
            names=names,
            configs=configs,
            rungs=rungs,
            eta=tuning.eta,
            workers=tuning.workers,
            port_rate_bps=tuning.port_rate_bps,
            port=FIRST_PORT + number * configs,
        )
        for number in range(tuning.jobs)
    ]
    jobs_of = halving.hyperband_jobs if hyperband else halving.halving_jobs
    # ASHA promotes about as many trials as halving does, so its load is reckoned as if it did.
    sizes = [sum(job_bytes(job) for job in jobs_of(study, 0.0)) for study in studies]
    times = poisson(random, sizes, tuning.load, tuning.hosts, tuning.port_rate_bps)
    times = [0.0] * len(times) if offline else times
    follower = None
    if tuning.method == "asha":
        follower = partial(_asha, tuple(zip(studies, times, strict=True)), tuning.slots, tuning.batch)
        jobs = follower().first
    else:
        jobs = [job for study, time in zip(studies, times, strict=True) for job in jobs_of(study, time)]
    workload = Workload(
        name=f"tuning-{tuning.method}",
        hosts={name: Host(name, ingress_bps=tuning.port_rate_bps, egress_bps=tuning.port_rate_bps) for name in names},
        jobs=tuple(jobs),
        seed=tuning.seed,
        stages=stages(jobs),
    )
    return Scenario(workload, follower)


def stages(jobs: Sequence[SimJob]) -> dict[str, tuple[str, ...]]:
    """Job ids by the stage that jobs name."""
    members_of: dict[str, list[str]] = {}
    for job in jobs:
        if job.stage is not None:
            members_of.setdefault(job.stage, []).append(job.id)
    return {stage: tuple(members) for stage, members in members_of.items()}


def check(tuning: Tuning) -> None:
    """Raises InputError with what would be right."""
    low, high = tuning.workers
    if not 0 < tuning.load <= 1:
        raise InputError(f"load: {tuning.load:g}; it must be above 0 and at most 1, the share of the mean port in use")
    if tuning.jobs < 1:
        raise InputError(f"jobs: {tuning.jobs}; there must be at least 1 study")
    if not 2 <= low <= high:
        raise InputError(f"workers: {low} to {high}; a trial needs at least 2 workers")
    if tuning.hosts < high + 1:
        raise InputError(f"hosts: {tuning.hosts}; trials of up to {high} workers and a server need at least {high + 1}")
    if tuning.eta < 2:
        raise InputError(f"eta: {tuning.eta}; it must be at least 2, and is 3 or 4 as a rule")
    if not 2 <= tuning.shortest <= tuning.longest:
        raise InputError(f"iterations: {tuning.shortest} to {tuning.longest}; a rung needs at least 2")
    check_reports(tuning.jobs * _configs(tuning) * tuning.longest)
    if not 1 <= tuning.batch <= tuning.slots:
        raise InputError(f"batch: {tuning.batch}; it must be between 1 and the {tuning.slots} slots")


def _configs(tuning: Tuning) -> int:
    """Of one study."""
    rungs = halving.geometric(tuning.shortest, tuning.longest, tuning.eta)
    count = halving.hyperband_configs if tuning.method == "hyperband" else halving.halving_configs
    return count(len(rungs), tuning.eta)


def _asha(studies: Sequence[tuple[Study, float]], slots: int, batch: int) -> AshaFollower:
    return AshaFollower([(Tuner(study, slots, batch), arrival) for study, arrival in studies])
