"""Small runs made by hand, for tests of what is said of runs."""

from __future__ import annotations

import numpy as np

from controller.model import Demand, Direction, Host, Port
from simulator.jobs import Compute, SimJob, Transfer
from simulator.network import Hose
from simulator.outcome import JobOutcome, Outcome
from simulator.reports.measures import Facts, Measures, measure
from simulator.reports.results import Results

HOSTS = {name: Host(name, ingress_bps=8e6, egress_bps=8e6) for name in ("a", "b")}
NETWORK = Hose(HOSTS)
SEND = Transfer((Demand("a", "b", 1e6),))
CURVE = (0.1, 0.5, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 0.99, 1.0)


def coflow(name: str) -> SimJob:
    return SimJob(name, lanes=((SEND,),))


def training_job(name: str, iterations: int = 10, curve: tuple[float, ...] = CURVE) -> SimJob:
    return SimJob(name, lanes=((Compute(0.5), SEND),), iterations=iterations, curve=curve)


def outcome(policy: str, found: list[JobOutcome], port_bytes: dict[Port, float] | None = None) -> Outcome:
    sent = {Port("a", Direction.EGRESS): 4e6} if port_bytes is None else port_bytes
    return Outcome(
        policy, {job.id: job for job in found}, sent, plans=3, iterations=12, wall_seconds=0.5, cpu_seconds=0.25
    )


def training_run(policy: str, seconds: float, names: tuple[str, ...] = ("j", "k")) -> Measures:
    """Two jobs from 1 s on; every iteration takes ``seconds``; j reaches t90 at its 5th, k never."""
    jobs = [training_job(names[0]), training_job(names[1])]
    ends = 1.0 + seconds * np.arange(1, 11)
    found = [JobOutcome(name, 1.0, float(ends[-1]), 10e6, ends) for name in names]
    facts = {names[0]: Facts(15.0, {"t90": 5, "t95": 6}), names[1]: Facts(15.0, {"t90": None, "t95": None})}
    return measure(jobs, NETWORK, outcome(policy, found), facts)


def coflow_run(policy: str, ends: dict[str, float]) -> Measures:
    jobs = [coflow(name) for name in ends]
    found = [JobOutcome(name, 0.5, end, 1e6) for name, end in ends.items()]
    return measure(jobs, NETWORK, outcome(policy, found), {name: Facts(1.0, {}) for name in ends})


def results(runs: dict[float | None, dict[str, list[Measures]]], seeds: tuple[int, ...] = (1,)) -> Results:
    baseline = next(iter(next(iter(runs.values()))))
    return Results(
        title="made <by hand>",
        command="trainyard sim --policy 'a<b>'",
        seeds=seeds,
        seeded=True,
        baseline=baseline,
        detail=True,
        runs=runs,
    )
