"""``python -m evaluation.beamer.study``: what orders of studies win in the simulator, and what there is to win at all.

It simulates experiments of a kind (``evaluation.beamer.kinds``) under fair sharing and other arms
(``evaluation.beamer.arms``). ``--keep`` names a folder of results, a file for each kind and seed; arms that stand there
are not simulated again. Intervals are over the seeds, by pairs.
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
from pathlib import Path
from statistics import fmean
from typing import Any, get_args

from rich.table import Table

from controller.policies.registry import PolicyError
from evaluation.beamer.arms import FAIR, Results, limits_of, measure, policy_of
from evaluation.beamer.kinds import FIRST_SEED, HALVING_27, KINDS, Kind
from evaluation.beamer.simulation import Times, studies
from evaluation.beamer.workload import experiment
from simulator.reports.statistics import reduction, reduction_interval
from simulator.reports.terminal import output
from simulator.workloads.curves import Use
from topologies.signals import exit_status

ARMS = ("sincronia", "fifo-lm", "beamer", "least")
BASELINES = ("sincronia", "fifo-lm")
EVALUATIONS = 400


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is simulated of each seed. ``curves``: the half of the recorded runs; ``keep``: the folder of results."""

    kind: Kind
    arms: tuple[str, ...]
    evaluations: int = EVALUATIONS
    keep: Path | None = None
    curves: Use = "study"


def simulate_seed(wanted: Wanted, seed: int) -> Results:
    """Returns the results of a seed, those that are kept, too. Raises OSError, and ValueError for a damaged file."""
    path = None if wanted.keep is None else wanted.keep / f"{wanted.kind.name}-{seed}.json"
    results = read(path) if path is not None and path.exists() else {}
    sim = studies(experiment(wanted.kind, seed, use=wanted.curves))
    for arm in (FAIR, *wanted.arms):
        if arm not in results:
            results |= measure(arm, sim, wanted.evaluations)
            if path is not None:
                write(path, results)
    return results


def read(path: Path) -> Results:
    """Returns the results that a file keeps. Raises OSError, ValueError."""
    try:
        return {
            arm: Times(kept["sct"], {int(until): seconds for until, seconds in kept["rungs"].items()}, kept["best"])
            for arm, kept in json.loads(path.read_text()).items()
        }
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{path}: no results of arms: {error!r}") from error


def write(path: Path, results: Results) -> None:
    """Keeps results in one piece, so that a run that is stopped leaves no half of a file. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = {
        arm: {
            "sct": round(times.sct, 4),
            "rungs": {str(until): round(seconds, 4) for until, seconds in times.rungs.items()},
            "best": None if times.best is None else round(times.best, 4),
        }
        for arm, times in results.items()
    }
    scratch = path.with_suffix(".tmp")
    scratch.write_text(json.dumps(kept, indent=1) + "\n")
    scratch.replace(path)


def add_up(runs: Sequence[Results], baselines: Sequence[str] = (FAIR,)) -> dict[str, dict[str, Any]]:
    """Returns the means of each arm over the seeds, and what it saves of each baseline's, with 95 % intervals."""
    return {arm: dict(_figures(runs, arm, baselines)) for arm in runs[0]}


def _figures(runs: Sequence[Results], arm: str, baselines: Sequence[str]) -> Iterator[tuple[str, Any]]:
    yield "sct", fmean(run[arm].sct for run in runs)
    yield "rungs", {until: fmean(run[arm].rungs[until] for run in runs) for until in runs[0][arm].rungs}
    for baseline in baselines:
        pairs = [(run[baseline].sct, run[arm].sct) for run in runs]
        yield f"sct_against_{baseline}", _saved(pairs)
    best = [(run[FAIR].best, run[arm].best) for run in runs]
    if all(subject is not None for _, subject in best):
        yield "best", fmean(run[arm].best or 0.0 for run in runs)
        yield "best_against_fair", _saved([(before or 0.0, after or 0.0) for before, after in best])


def _saved(pairs: Sequence[tuple[float, float]]) -> dict[str, Any]:
    before, after = zip(*pairs, strict=True)
    return {"reduction": reduction(before, after), "ci95": list(reduction_interval(before, after))}


def table(kind: Kind, seeds: int, arms: Mapping[str, Mapping[str, Any]]) -> Table:
    """Returns the figures as people read them."""
    shown = Table(title=f"{kind.name}: mean stage completion time, {seeds} seeds, simulated")
    for number, name in enumerate(("arm", "SCT (s)", "by rung (s)", "saved", "best (s)", "saved")):
        shown.add_column(name, justify="right" if number else "left", no_wrap=not number)
    for arm, figures in arms.items():
        rungs = " ".join(f"{seconds:.1f}" for seconds in figures["rungs"].values())
        best = (f"{figures['best']:.1f}", _share(figures["best_against_fair"])) if "best" in figures else ("", "")
        shown.add_row(arm, f"{figures['sct']:.1f}", rungs, _share(figures["sct_against_fair"]), *best)
    return shown


def _share(saved: Mapping[str, Any]) -> str:
    low, high = saved["ci95"]
    return f"{saved['reduction']:.1%} ({low:.1%} to {high:.1%})"


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate studies that share a network, and print what each arm saves against fair sharing."""
    parser = argparse.ArgumentParser(prog="python -m evaluation.beamer.study", description=main.__doc__)
    parser.add_argument("--kind", choices=sorted(KINDS), default=HALVING_27.name, help="the default is %(default)s")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED, metavar="N", help="the default is %(default)s")
    parser.add_argument("--seeds", type=int, default=8, metavar="N", help="so many seeds; the default is %(default)s")
    parser.add_argument("--curves", choices=get_args(Use), default="study", help="the half of the recorded runs")
    parser.add_argument("--arm", action="append", metavar="ARM", help=f"an arm; the default is {', '.join(ARMS)}")
    parser.add_argument("--evaluations", type=int, default=EVALUATIONS, metavar="N", help="simulations of a search")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="the folder of results")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), metavar="N", help="the default is all cores")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args(arguments)
    arms = [arm for arm in options.arm or ARMS if arm != FAIR]
    try:
        for arm in arms:
            _check(arm)
    except PolicyError as error:
        parser.error(f"argument --arm: {error}")
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    wanted = Wanted(KINDS[options.kind], tuple(arms), options.evaluations, options.keep, options.curves)
    runs = _simulate(wanted, seeds, options.processes)
    asked = [{arm: run[arm] for arm in run if arm.partition(" ")[0] in (FAIR, *arms)} for run in runs]
    figures = add_up(asked, [FAIR, *(arm for arm in BASELINES if arm in arms)])
    if options.json:
        document = {"kind": wanted.kind.name, "seeds": list(seeds), "curves": options.curves, "arms": figures}
        sys.stdout.write(json.dumps(document, indent=1) + "\n")
    else:
        output().print(table(wanted.kind, len(seeds), figures))
    return 0


def _simulate(wanted: Wanted, seeds: Sequence[int], processes: int) -> list[Results]:
    if processes == 1:
        return [simulate_seed(wanted, seed) for seed in seeds]
    with get_context("spawn").Pool(processes) as pool:
        return pool.map(partial(simulate_seed, wanted), seeds, chunksize=1)


def _check(arm: str) -> None:
    """Raises PolicyError where there is no such arm."""
    name, _, limits = arm.partition("@")
    limits_of(limits)
    if name not in ("least", "search"):
        policy_of(name)


if __name__ == "__main__":
    sys.exit(exit_status(main))
