"""Workloads by name, and what a workload is made from: a value that another process can make the same from."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from simulator.errors import InputError
from simulator.workloads import coflow_trace, training, tuning
from simulator.workloads.scenario import Scenario
from simulator.workloads.training import Training
from simulator.workloads.tuning import Tuning

LIGHT, MIDDLE, HEAVY = 0.3, 0.5, 0.7


@dataclass(frozen=True, slots=True)
class Trace:
    """A coflow trace: its text, so that whoever simulates it needs no file; ``source`` is what errors call it."""

    source: str
    text: str
    port_rate_bps: float = coflow_trace.DEFAULT_PORT_RATE_BPS


Source = Trace | Training | Tuning

NAMED: Mapping[str, tuple[Training | Tuning, str]] = {
    "training-light": (Training(load=LIGHT), "parameter server and ring jobs (BSP), load 0.3"),
    "training-middle": (Training(load=MIDDLE), "the same, load 0.5"),
    "training-heavy": (Training(load=HEAVY), "the same, load 0.7"),
    "training-tree": (Training(load=MIDDLE, architectures=("tree",)), "tree all-reduce (BSP), load 0.5"),
    "training-ssp": (Training(load=MIDDLE, architectures=("ps",), staleness=3), "parameter server, SSP(3), load 0.5"),
    "training-asp": (Training(load=MIDDLE, architectures=("ps",), staleness=None), "parameter server, ASP, load 0.5"),
    "training-sasp": (Training(load=MIDDLE, lead=0), "the first three's jobs (BSP) with SaSP, load 0.5"),
    "training-ssp-sasp": (
        Training(load=MIDDLE, architectures=("ps",), staleness=3, lead=3),
        "parameter server, SSP(3) with SaSP, load 0.5",
    ),
    "tuning-halving": (Tuning("halving"), "studies by successive halving, load 0.5"),
    "tuning-hyperband": (Tuning("hyperband", jobs=2), "studies by Hyperband, load 0.5"),
    "tuning-asha": (Tuning("asha"), "studies by ASHA, load 0.5"),
}


def named(name: str) -> Training | Tuning:
    """The workload of that name with its defaults. Raises InputError with the names that there are."""
    if name not in NAMED:
        near = difflib.get_close_matches(name, NAMED, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(NAMED)}"
        raise InputError(f"--workload {name}: no such workload; {hint}")
    return NAMED[name][0]


@lru_cache(maxsize=1)
def build(source: Source, offline: bool = False) -> Scenario:
    """Make a workload; ``offline`` puts all arrivals at 0. The last one is kept. Raises InputError."""
    if isinstance(source, Trace):
        return Scenario(
            coflow_trace.parse(source.text, source.source, port_rate_bps=source.port_rate_bps, offline=offline)
        )
    scenario = Scenario(training.generate(source)) if isinstance(source, Training) else tuning.generate(source, offline)
    if not offline:
        return scenario
    jobs = tuple(replace(job, arrival=0.0) for job in scenario.workload.jobs)
    return replace(scenario, workload=replace(scenario.workload, jobs=jobs))
