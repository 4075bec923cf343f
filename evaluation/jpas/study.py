"""``python -m evaluation.jpas.study``: what a declared target is worth to JPAS, in the simulator.

It simulates the claim's loads (``topologies.experiments.workload``) with the claim's curves, which teach nothing, on
seeds of its own: fair sharing, JPAS without a target, and JPAS with a target that all jobs declare. That is the metric
at 90 % of the job's own gap, exactly or wrong: times 1 + e, e from a normal distribution with the given standard
deviation. An error is the same share of that deviation in all arms. t90 is always the time to the true 90 %.

Intervals are paired bootstraps over the seeds. The headroom is what fair sharing takes longer to t90 than each job
alone on the network.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from random import Random
from statistics import fmean

import numpy as np
from rich.console import Console
from rich.table import Table

from controller.policies.fair import Fair
from controller.policies.jpas import Jpas
from evaluation.jpas.claim import PERIOD_SECONDS
from evaluation.simulated import workload
from simulator.engine import Limits, simulate
from simulator.network import Hose
from simulator.reports.statistics import Array, paired_bootstrap
from simulator.reports.targets import target_iteration, target_value
from simulator.sweep.facts import solo_seconds
from simulator.workloads import curves
from topologies.experiments.declaration import Declaration
from topologies.experiments.experiment import Experiment
from topologies.experiments.workload import HEAVY, LOADS, Load, generate

FIRST_SEED = 1001
"""Neither the claim nor an earlier measurement uses these seeds."""
FRACTION = 0.9
BASELINE, NO_TARGET = "fair", "no target"
ERRORS: Mapping[str, float | None] = {NO_TARGET: None, "exact": 0.0, "5 % wrong": 0.05, "10 % wrong": 0.10}
"""The arms of JPAS: the standard deviation of the declared targets' relative error; None: none is declared."""
ARMS = (BASELINE, *ERRORS)
ALONE = "alone"


@dataclass(frozen=True, slots=True)
class Means:
    """Means over the jobs of one run, in seconds; of ``ALONE``, of each job alone on the network."""

    t90: float
    jct: float


def declarations(experiment: Experiment, error: float | None) -> dict[str, Declaration]:
    """Returns what an experiment's jobs declare, by id. ``error`` is as in ``ERRORS``."""
    if error is None:
        return {}
    random = Random(f"declared targets {experiment.name}")  # noqa: S311 - an experiment, to be repeated from its seed
    found = {}
    for job in experiment.jobs:
        truth = target_value(curves.replay(job.rows, job.iterations), FRACTION)
        found[job.id] = Declaration(target=truth * (1.0 + error * random.gauss(0.0, 1.0)))
    return found


def measure(load: Load, seed: int, options: Mapping[str, float]) -> dict[str, Means]:
    """Simulates one seed under every arm. ``options`` are JPAS's."""
    experiment = generate(load, seed, period_seconds=PERIOD_SECONDS)
    limits = Limits(classes=experiment.queues - 1, period=experiment.period_seconds)
    plain = workload(experiment)
    reached = {job.id: target_iteration(job.curve, FRACTION) or job.iterations for job in plain.jobs}
    network = Hose(plain.hosts)
    alone = {job.id: solo_seconds(job, plain.hosts, network) for job in plain.jobs}
    lone = [alone[job.id] * reached[job.id] / job.iterations for job in plain.jobs]
    means = {ALONE: Means(fmean(lone), fmean(alone.values()))}
    for arm in ARMS:
        policy = Fair() if arm == BASELINE else Jpas(**options)  # type: ignore[arg-type]  # all of them are numbers
        error = None if arm == BASELINE else ERRORS[arm]
        outcome = simulate(workload(experiment, declarations(experiment, error)), policy, limits).jobs
        means[arm] = Means(
            fmean(float(outcome[job].iteration_ends[k - 1]) - outcome[job].arrival for job, k in reached.items()),
            fmean(job.end - job.arrival for job in outcome.values()),
        )
    return means


def add_up(runs: Sequence[Mapping[str, Means]]) -> dict[str, dict[str, object]]:
    """Returns, by arm of JPAS, what it saves against fair sharing over the seeds, with 95 % intervals."""
    return {arm: dict(_figures(runs, arm)) for arm in ERRORS}


def _figures(runs: Sequence[Mapping[str, Means]], arm: str) -> Iterator[tuple[str, object]]:
    t90 = [(run[BASELINE].t90, run[arm].t90) for run in runs]
    yield "mean_t90_seconds", fmean(run[arm].t90 for run in runs)
    yield from _with_interval("t90_reduction", t90)
    yield from _with_interval("jct_reduction", [(run[BASELINE].jct, run[arm].jct) for run in runs])
    above = [(run[BASELINE].t90 - run[ALONE].t90, run[arm].t90 - run[ALONE].t90) for run in runs]
    yield from _with_interval("headroom_won", above)
    # What a target is worth beside none, in seconds of the headroom.
    gained = [
        (run[BASELINE].t90 - run[ALONE].t90, run[BASELINE].t90 - run[ALONE].t90 - (run[NO_TARGET].t90 - run[arm].t90))
        for run in runs
    ]
    yield from _with_interval("headroom_more_than_no_target", gained)


def _with_interval(name: str, pairs: Sequence[tuple[float, float]]) -> Iterator[tuple[str, object]]:
    yield name, float(_reduction(np.array(pairs)[None])[0])
    yield f"{name}_ci95", list(paired_bootstrap(pairs, _reduction))


def _reduction(pairs: Array) -> Array:
    reduced: Array = 1.0 - pairs[..., 1].mean(axis=1) / pairs[..., 0].mean(axis=1)
    return reduced


def table(load: Load, seeds: int, arms: Mapping[str, Mapping[str, object]]) -> Table:
    """Returns the figures as people read them."""
    shown = Table(title=f"JPAS against fair sharing, {load.name} load, {seeds} seeds, simulated (95 % intervals)")
    shown.add_column("target", no_wrap=True)
    names = {
        "t90_reduction": "t90 saved",
        "jct_reduction": "JCT saved",
        "headroom_won": "headroom won",
        "headroom_more_than_no_target": "more than without",
    }
    for title in names.values():
        shown.add_column(title, justify="right")
    for arm, figures in arms.items():
        shown.add_row(arm, *(_cell(figures, name) for name in names))
    return shown


def _cell(figures: Mapping[str, object], name: str) -> str:
    value, interval = figures[name], figures[f"{name}_ci95"]
    assert isinstance(value, float)
    assert isinstance(interval, list)
    return f"{value:.1%} ({interval[0]:.1%} to {interval[1]:.1%})"


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate JPAS without and with declared targets, and print what each saves against fair sharing."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.jpas.study", description=main.__doc__)
    parser.add_argument("--seeds", type=int, default=20, metavar="N", help="so many seeds; the default is 20")
    parser.add_argument("--load", choices=sorted(LOADS), default=HEAVY.name, help="the default is heavy")
    parser.add_argument("--option", action="append", default=[], metavar="KEY=NUMBER", help="an option of JPAS")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), metavar="N", help="the default is all cores")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args(arguments)
    load = LOADS[options.load]
    given = {key: float(value) for key, _, value in (text.partition("=") for text in options.option)}
    seeds = range(FIRST_SEED, FIRST_SEED + options.seeds)
    with get_context("spawn").Pool(options.processes) as pool:
        runs = pool.map(partial(_measure, load, given), seeds, chunksize=1)
    arms = add_up(runs)
    if options.json:
        document = {"load": load.name, "seeds": list(seeds), "options": given, "arms": arms}
        sys.stdout.write(json.dumps(document, indent=1) + "\n")
    else:
        Console().print(table(load, len(seeds), arms))
    return 0


def _measure(load: Load, options: Mapping[str, float], seed: int) -> dict[str, Means]:
    return measure(load, seed, options)


if __name__ == "__main__":
    sys.exit(main())
