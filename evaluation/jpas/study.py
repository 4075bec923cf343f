"""``python -m evaluation.jpas.study``: what JPAS wins by what it knows of the jobs, in the simulator.

It simulates the jobs of the claim (``evaluation.jpas.arms``), on seeds that the claim does not use: under fair sharing,
and under JPAS that knows more or less. In two arms more each declared target is wrong: times 1 + e, e from a normal
distribution with a standard deviation of 5 or 10 %. An error is the same share of that deviation in both. t90 is always
the time to the true 90 % of the job's own gap.

Intervals are paired bootstraps over the seeds. The headroom is what fair sharing takes longer to t90 than each job
alone on the network.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from multiprocessing import get_context
from random import Random
from statistics import fmean
from typing import get_args

import numpy as np
from rich.table import Table

from evaluation.jpas.arms import AT_HEAVY, FAIR, Group, WorkloadName
from evaluation.jpas.simulation import Means, means, means_alone
from simulator.reports.statistics import Array, paired_bootstrap
from simulator.reports.terminal import output
from topologies.experiments.declaration import Declaration
from topologies.experiments.workload import HEAVY, LOADS, Load
from topologies.lab.results import PolicyChoice
from topologies.signals import exit_status

FIRST_SEED = 1001
"""Neither the claim nor an earlier measurement uses these seeds."""
ERRORS: Mapping[str, float] = {"5 % wrong": 0.05, "10 % wrong": 0.10}
"""Arms with wrong targets: the standard deviation of the relative error."""
ARMS: Mapping[WorkloadName, tuple[str, ...]] = {
    "families": (*AT_HEAVY, *ERRORS),
    "old": ("none", "everything", "target", *ERRORS),
}
ALONE = "alone"


def choices(group: Group) -> dict[str, PolicyChoice]:
    """Returns the arms of a group by name, those with wrong targets too."""
    made = {choice.name: choice for choice in group.request().policies}
    random = Random(f"declared targets {group.name}")  # noqa: S311 - an experiment, to be repeated from its seed
    wrong = {job.id: random.gauss(0.0, 1.0) for job in group.experiment.jobs}
    for name, error in ERRORS.items():
        made[name] = PolicyChoice(
            "jpas",
            label=name,
            declares={
                job: Declaration(target=declared.target * (1.0 + error * wrong[job]))
                for job, declared in made["target"].declares.items()
                if declared.target is not None
            },
        )
    return made


def measure(
    name: WorkloadName, load: Load, arms: Sequence[str], options: Mapping[str, float], seed: int
) -> dict[str, Means]:
    """Simulates one seed under fair sharing and every arm. ``options`` are JPAS's."""
    group = Group(name, load, seed, AT_HEAVY if name == "families" else ("none", "everything", "target"))
    found = {ALONE: means_alone(group.experiment)}
    for arm, choice in choices(group).items():
        if arm == FAIR or arm in arms:
            found[arm] = means(group.experiment, choice, options if choice.policy == "jpas" else None)
    return found


def add_up(runs: Sequence[Mapping[str, Means]]) -> dict[str, dict[str, object]]:
    """Returns, by arm, what it saves against fair sharing over the seeds, with 95 % intervals."""
    return {arm: dict(_figures(runs, arm)) for arm in runs[0] if arm not in (ALONE, FAIR)}


def _figures(runs: Sequence[Mapping[str, Means]], arm: str) -> Iterator[tuple[str, object]]:
    yield "mean_t90_seconds", fmean(run[arm].t90 for run in runs)
    yield from _with_interval("t90_reduction", [(run[FAIR].t90, run[arm].t90) for run in runs])
    yield from _with_interval("jct_reduction", [(run[FAIR].jct, run[arm].jct) for run in runs])
    headroom = [run[FAIR].t90 - run[ALONE].t90 for run in runs]
    yield from _with_interval(
        "headroom_won", [(whole, run[arm].t90 - run[ALONE].t90) for whole, run in zip(headroom, runs, strict=True)]
    )
    if "none" in runs[0]:
        # What is known is worth this share of the headroom beside knowing nothing.
        gained = [(whole, whole - (run["none"].t90 - run[arm].t90)) for whole, run in zip(headroom, runs, strict=True)]
        yield from _with_interval("headroom_more_than_none", gained)
    if "everything" in runs[0]:
        best = [(run[FAIR].t90 - run["everything"].t90, run[arm].t90 - run["everything"].t90) for run in runs]
        yield from _with_interval("of_everything", best)


def _with_interval(name: str, pairs: Sequence[tuple[float, float]]) -> Iterator[tuple[str, object]]:
    yield name, float(_reduction(np.array(pairs)[None])[0])
    yield f"{name}_ci95", list(paired_bootstrap(pairs, _reduction))


def _reduction(pairs: Array) -> Array:
    reduced: Array = 1.0 - pairs[..., 1].mean(axis=1) / pairs[..., 0].mean(axis=1)
    return reduced


TITLES = {
    "t90_reduction": "t90 saved",
    "jct_reduction": "JCT saved",
    "headroom_won": "headroom won",
    "headroom_more_than_none": "more than none",
    "of_everything": "of everything",
}


def table(name: str, load: Load, seeds: int, arms: Mapping[str, Mapping[str, object]]) -> Table:
    """Returns the figures as people read them."""
    shown = Table(title=f"JPAS against fair sharing, {name} workload, {load.name} load, {seeds} seeds, simulated")
    shown.add_column("knows", no_wrap=True)
    for title in TITLES.values():
        shown.add_column(title, justify="right")
    for arm, figures in arms.items():
        shown.add_row(arm, *(_cell(figures, figure) for figure in TITLES))
    return shown


def _cell(figures: Mapping[str, object], name: str) -> str:
    value, interval = figures.get(name), figures.get(f"{name}_ci95")
    if not isinstance(value, float) or not isinstance(interval, list):
        return ""
    return f"{value:.1%} ({interval[0]:.1%} to {interval[1]:.1%})"


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate JPAS that knows more or less of its jobs, and print what each arm saves against fair sharing."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.jpas.study", description=main.__doc__)
    parser.add_argument(
        "--workload", choices=get_args(WorkloadName), default="families", help="the default is families"
    )
    parser.add_argument("--seeds", type=int, default=20, metavar="N", help="so many seeds; the default is 20")
    parser.add_argument("--load", choices=sorted(LOADS), default=HEAVY.name, help="the default is heavy")
    parser.add_argument("--arm", action="append", metavar="NAME", help="an arm; the default is all of the workload")
    parser.add_argument("--option", action="append", default=[], metavar="KEY=NUMBER", help="an option of JPAS")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), metavar="N", help="the default is all cores")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args(arguments)
    name: WorkloadName = options.workload
    arms = options.arm or list(ARMS[name])
    if unknown := [arm for arm in arms if arm not in ARMS[name]]:
        parser.error(f"argument --arm: there is no arm {unknown[0]!r}; there are {', '.join(ARMS[name])}")
    load = LOADS[options.load]
    given = {key: float(value) for key, _, value in (text.partition("=") for text in options.option)}
    seeds = range(FIRST_SEED, FIRST_SEED + options.seeds)
    with get_context("spawn").Pool(options.processes) as pool:
        runs = pool.map(partial(measure, name, load, arms, given), seeds, chunksize=1)
    figures = add_up(runs)
    if options.json:
        document = {"workload": name, "load": load.name, "seeds": list(seeds), "options": given, "arms": figures}
        sys.stdout.write(json.dumps(document, indent=1) + "\n")
    else:
        output().print(table(name, load, len(seeds), figures))
    return 0


if __name__ == "__main__":
    sys.exit(exit_status(main))
