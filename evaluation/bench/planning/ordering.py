"""Order and plan: BSSI with its bound, and a whole plan of 1,000 jobs, each beside a plain way in the same run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from controller.model import Demand, Flow, Host, Job, Progress, Role, Snapshot, Switch, Task
from controller.ordering.bssi import bssi
from controller.ordering.loads import LoadMatrix
from controller.planner import Plan, plan
from controller.policies.jpas import Jpas
from controller.process.startup import steady_the_interpreter
from controller.rules.compiler import compile_rules
from evaluation.bench.figures import Bench, Figure
from simulator.reports.statistics import mean_interval

Array = NDArray[np.float64]

ROUNDS = 7
GROWTH_ROUNDS = 21
PORTS_A_JOB = 32
WORKERS = 8
REPORTS, ITERATIONS = (150, 250), 2000
"""Each job has its own number of reports, so that every plan has its share of histories to fit anew."""
PLAN_LIMIT_MS = 100.0
GROWTH_LIMIT = 4.4
PERIOD_SECONDS = 5.0


def run(_folder: Path, _data: Path | None) -> Bench:
    """Measure, as the controller runs."""
    steady_the_interpreter()
    return Bench(
        figures=(
            *(_order(jobs, dense=dense) for jobs in (1000, 10_000) for dense in (False, True)),
            *_plan(1000),
            _growth(),
        )
    )


def textbook(loads: Array, weights: Array) -> tuple[list[int], float]:
    """BSSI as it is written down, a line of NumPy a step: the peer. Loads (jobs, ports) in seconds."""
    left, weight = np.ones(len(loads), dtype=bool), weights.copy()
    last_to_first: list[int] = []
    bound = 0.0
    while left.any():
        column = loads[left].sum(axis=0).argmax()
        seconds = np.where(left, loads[:, column], 0.0)
        ratio = np.where(left & (seconds > 0), weight / np.where(seconds > 0, seconds, 1.0), np.inf)
        chosen = int(ratio.argmin())
        bound += ratio[chosen] * ((seconds**2).sum() + seconds.sum() ** 2) / 2
        weight = weight - ratio[chosen] * seconds
        left[chosen] = False
        last_to_first.append(chosen)
    return last_to_first[::-1], bound


def _order(jobs: int, *, dense: bool, ports: int = 2000) -> Figure:
    rng = np.random.default_rng(jobs)
    loads = rng.lognormal(0, 1, (jobs, ports))
    if not dense:
        chosen = rng.random((jobs, ports)).argpartition(PORTS_A_JOB, axis=1)[:, :PORTS_A_JOB]
        mask = np.zeros(loads.shape, dtype=bool)
        np.put_along_axis(mask, chosen, values=True, axis=1)
        loads = np.where(mask, loads, 0.0)
    weights = rng.uniform(0.5, 2, jobs)
    given = loads if dense else LoadMatrix.dense(loads)
    peer_jobs = min(jobs, 1000)  # a textbook's 10,000 would take an hour
    (peer,) = _seconds([partial(textbook, loads[:peer_jobs, :], weights[:peer_jobs])], 1)
    ours = _seconds([partial(bssi, given, weights)] * (ROUNDS if jobs <= 1000 else 3), 1)
    reductions = [1 - one / peer for one in ours] if peer_jobs == jobs else [float("nan")] * 2
    kind = "all of them" if dense else f"{PORTS_A_JOB} of them"
    return Figure(
        f"BSSI with its bound: {jobs:,} jobs on {ports:,} ports, each using {kind}",
        metric="bssi",
        unit="ms",
        value=float(np.median(ours)) * 1e3,
        baseline=peer * 1e3,
        baseline_name=f"BSSI as written down, in NumPy, of {peer_jobs:,} jobs",
        ci95=mean_interval(reductions),
        limit=20.0 if jobs <= 1000 else 1000.0,
    )


def snapshot(jobs: int, seed: int = 1) -> Snapshot:
    """As many hosts as jobs; each job a parameter server and 8 workers that have reported about 200 times."""
    rng = np.random.default_rng(seed)
    hosts = {
        f"h{i}": Host(f"h{i}", 1e10, 1e10, f"10.{i >> 16}.{(i >> 8) & 255}.{i & 255}", 1, i + 1) for i in range(jobs)
    }
    return Snapshot(
        now=1000.0,
        hosts=hosts,
        jobs=tuple(_job(j, [f"h{h}" for h in rng.choice(jobs, WORKERS + 1, replace=False)], rng) for j in range(jobs)),
        switches=(Switch(1),),
        period=PERIOD_SECONDS,
    )


def _job(number: int, hosts: list[str], rng: np.random.Generator) -> Job:
    server, *workers = hosts
    name, port = f"j{number}", 5000 + number
    done = int(rng.integers(*REPORTS))
    rising = _accuracy(number, np.arange(1, done + 1), rng)
    return Job(
        name,
        tuple(pair for w in workers for pair in (Demand(server, w, 5e7), Demand(w, server, 5e7))),
        arrival=float(number),
        iterations_left=float(ITERATIONS - done),
        iterations_total=float(ITERATIONS),
        compute_seconds=0.1,
        progress=tuple(Progress(float(k), float(k), float(value)) for k, value in enumerate(rising, 1)),
        flows=tuple(
            flow
            for w in workers
            for flow in (Flow(name, w, server, dst_port=port), Flow(name, server, w, src_port=port))
        ),
        tasks=(Task(Role.PS, server, port), *(Task(Role.WORKER, worker) for worker in workers)),
        sent_bytes=dict.fromkeys(hosts, 1e8 * done),
    )


def _accuracy(number: int, iterations: Array | NDArray[np.int64], rng: np.random.Generator) -> Array:
    """What a job reports after some of its iterations: each rises at its own pace, with noise."""
    pace = np.random.default_rng(number).uniform(5, 200)
    return 0.9 * (1 - np.exp(-iterations / pace)) + rng.normal(0, 0.01, len(iterations))


def reported(before: Snapshot, rng: np.random.Generator, share: float) -> Snapshot:
    """A period later: so many of the jobs have reported an iteration more."""
    jobs = list(before.jobs)
    for number in rng.choice(len(jobs), round(share * len(jobs)), replace=False).tolist():
        job = jobs[number]
        k = job.progress[-1].iteration + 1
        report = Progress(k, k, float(_accuracy(number, np.array([k]), rng)[0]))
        jobs[number] = replace(job, progress=(*job.progress, report), iterations_left=job.iterations_left - 1)
    return replace(before, jobs=tuple(jobs), now=before.now + PERIOD_SECONDS)


def _planning(jobs: int, seed: int = 1) -> Iterator[float]:
    """Seconds of plans, of the first of all and then of such before each of which every job has reported once more.

    Every series needs a seed of its own: what the same reports fit to is remembered.
    """
    compiled = partial(compile_rules, mode="classified", forwarding="paths")
    policy, rng, now = Jpas(), np.random.default_rng((2, seed)), snapshot(jobs, seed)
    held: Plan | None = None
    while True:
        begin = time.perf_counter()
        held = plan(now, held, policy=policy, compile_rules=compiled)
        yield time.perf_counter() - begin
        now = reported(now, rng, 1.0)


def _plan(jobs: int) -> tuple[Figure, Figure]:
    first, *found = islice(_planning(jobs), 1 + ROUNDS)
    what = f"of {jobs:,} jobs on {jobs:,} hosts (JPAS, layered classes, rules)"
    return (
        Figure(
            f"A plan {what}, every job having reported: the slowest of {ROUNDS}",
            metric="plan",
            unit="ms",
            value=max(found) * 1e3,
            baseline=first * 1e3,
            baseline_name="the first plan of all",
            ci95=mean_interval([1 - one / first for one in found]),
            limit=PLAN_LIMIT_MS,
        ),
        Figure(
            f"The first plan {what}: every history is fitted, every rule made",
            metric="first_plan",
            unit="ms",
            value=first * 1e3,
            baseline=float(np.median(found)) * 1e3,
            baseline_name="the median of those that follow",
            ci95=mean_interval([1 - first / one for one in found]),
        ),
    )


def _growth() -> Figure:
    # Few jobs before and after the many: the machine has slower moments than others.
    before, many, after = (
        [*islice(_planning(jobs, seed), 1 + GROWTH_ROUNDS)][1:] for seed, jobs in enumerate((500, 2000, 500), 2)
    )
    # Means: what comes with some of the plans only, as Python's collections do, counts as well.
    few = fmean(before + after)
    times = fmean(many) / few
    return Figure(
        "A plan's time with four times the jobs and hosts, in times of the plan of 500",
        metric="plan_growth",
        unit="times",
        value=times,
        baseline=4.0,
        baseline_name="in proportion to the input",
        ci95=mean_interval([1 - one / few / 4 for one in many]),
        limit=GROWTH_LIMIT,
    )


def _seconds(calls: Iterable[Callable[[], object]], rounds: int) -> list[float]:
    """The least of so many rounds, for each call."""
    found = []
    for call in calls:
        times = []
        for _ in range(rounds):
            begin = time.perf_counter()
            call()
            times.append(time.perf_counter() - begin)
        found.append(min(times))
    return found
