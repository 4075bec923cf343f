"""The simulator's speed and memory: a trace of 526 coflows under every policy, and a million training iterations; many
coflows in flight at once, and Varys's rates beside max-min's.

With ``--data FOLDER`` the trace is ``FOLDER/coflow/FB2010-1Hr-150-0.txt``, the Facebook trace of the coflow benchmark
(github.com/coflow/coflow-benchmark); without it one that is made here, of as many ports and coflows, of widths and
sizes as skewed. What is timed is the whole command ``trainyard sim`` in a process of its own: reading, simulating,
measuring, writing; and that process's peak memory. Its floor: the same command on a trace of no coflows.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from evaluation.bench.figures import Bench, Figure
from simulator.compiling import prepare
from simulator.reports.statistics import mean_interval
from simulator.sweep.request import COARSE, COARSE_MADD

TRACE = "coflow/FB2010-1Hr-150-0.txt"
POLICIES = ("sincronia", "sebf", "fifo", "las", "fair")
LIMIT_SECONDS = {"fair": 60.0}
USUAL_LIMIT_SECONDS = 10.0
LIMIT_MEGABYTES = 1000.0
QUANTUM_LIMIT = 0.005
MADD_LIMIT = 3.0
"""Varys's rates take at most so many times as long as max-min's."""
BURST_COFLOWS = 3_000
BURST_LIMIT_SECONDS = 2.0
ROUNDS = 3
MIX = (
    *("--workload", "training-heavy", "--hosts", "1000", "--jobs", "500", "--load", "0.7", "--workers", "8"),
    *("--iterations", "2000", "--port-rate", "1e10", "--classes", "7", "--period", "5"),
)
MIX_ITERATIONS = 1_000_000
MIX_LIMIT_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Found:
    """One command: its seconds, the processor's of simulating alone, its peak memory, and the mean CCT or JCT."""

    seconds: float
    cpu_seconds: float
    peak_megabytes: float
    mean_seconds: float


def run(folder: Path, data: Path | None) -> Bench:
    """Measure. Raises RuntimeError where a simulation failed."""
    trace = data / TRACE if data is not None else made_trace(folder / "trace.txt")
    name = "the Facebook trace" if data is not None else "a made trace of 526 coflows"
    nothing = folder / "empty-trace.txt"
    nothing.write_text("150 0\n")
    prepare()
    figures: list[Figure] = []
    details: dict[str, Any] = {}
    coarse: dict[str, Found] = {}
    exact: dict[str, Found] = {}
    for policy in POLICIES:
        floor = [_found(policy, "--trace", nothing) for _ in range(ROUNDS)]
        usual = [_found(policy, "--trace", trace) for _ in range(ROUNDS)]
        figures += _trace_figures(policy, name, usual, floor)
        details[policy] = {"default": [asdict(one) for one in usual]}
        coarse[policy] = usual[0]
    for policy in sorted(COARSE):
        exact[policy] = _found(policy, "--trace", trace, "--exact")
        figures.append(_quantum_figure(policy, coarse.get(policy) or _found(policy, "--trace", trace), exact[policy]))
        details[f"{policy}, exact"] = asdict(exact[policy])
    for policy in sorted(COARSE_MADD):
        usual_madd = _found(policy, "--trace", trace, "--rates", "madd")
        exact_madd = _found(policy, "--trace", trace, "--rates", "madd", "--exact")
        figures.append(_quantum_figure(f"{policy}, MADD", usual_madd, exact_madd))
        details[f"{policy}, MADD"] = {"default": asdict(usual_madd), "exact": asdict(exact_madd)}
        if policy in ("fair", "sebf"):
            figures.append(_madd_figure(f"{policy}, with the default quantum", usual_madd, coarse[policy]))
            figures.append(_madd_figure(f"{policy}, exact", exact_madd, exact[policy]))
    apart = [_found("fair", "--trace", burst(folder / "apart.txt", 10.0)) for _ in range(ROUNDS)]
    at_once = [_found("fair", "--trace", burst(folder / "burst.txt", 0.1)) for _ in range(ROUNDS)]
    figures.append(_burst_figure(at_once, apart))
    details["burst"] = [asdict(one) for one in at_once]
    floor = [_found("jpas", "--trace", nothing)]
    mix = [_found("jpas", *MIX)]  # takes minutes
    details["mix"] = [asdict(one) for one in mix]
    title = f"{MIX_ITERATIONS:,} iterations of 500 training jobs of 8 workers on 1,000 hosts, JPAS, load 0.7"
    figures.append(_seconds(title, "sim_training", mix, floor, MIX_LIMIT_SECONDS))
    return Bench(figures=tuple(figures), details=details)


def _trace_figures(policy: str, name: str, usual: list[Found], floor: list[Found]) -> list[Figure]:
    limit = LIMIT_SECONDS.get(policy, USUAL_LIMIT_SECONDS)
    memory = [1 - one.peak_megabytes / other.peak_megabytes for one, other in zip(usual, floor, strict=True)]
    return [
        _seconds(f"{name} under {policy}, with the default quantum", "sim_trace", usual, floor, limit),
        Figure(
            f"its memory under {policy}",
            metric="sim_trace_memory",
            unit="MB",
            value=max(one.peak_megabytes for one in usual),
            baseline=max(one.peak_megabytes for one in floor),
            baseline_name="the command on no coflows",
            ci95=mean_interval(memory),
            limit=LIMIT_MEGABYTES,
        ),
    ]


def _quantum_figure(policy: str, usual: Found, exact: Found) -> Figure:
    return Figure(
        f"what the quantum moves the mean CCT by under {policy}",
        metric="sim_quantum_effect",
        unit="share",
        value=abs(usual.mean_seconds / exact.mean_seconds - 1),
        baseline=QUANTUM_LIMIT,
        baseline_name="what it may",
        ci95=(float("nan"), float("nan")),  # both are exact: there is nothing that another run would say otherwise
        limit=QUANTUM_LIMIT,
    )


def _madd_figure(name: str, madd: Found, maxmin: Found) -> Figure:
    return Figure(
        f"processor time of simulating the trace by MADD under {name}",
        metric="sim_madd",
        unit="s",
        value=madd.cpu_seconds,
        baseline=maxmin.cpu_seconds,
        baseline_name="max-min",
        ci95=(float("nan"), float("nan")),  # one run each: they take long
        limit=MADD_LIMIT * maxmin.cpu_seconds,
    )


def _burst_figure(at_once: list[Found], apart: list[Found]) -> Figure:
    return Figure(
        f"processor time of simulating {BURST_COFLOWS:,} coflows of 1 MB on two ports, 0.1 ms apart, under fair",
        metric="sim_burst",
        unit="s",
        value=float(np.median([one.cpu_seconds for one in at_once])),
        baseline=float(np.median([one.cpu_seconds for one in apart])),
        baseline_name="10 ms apart, so that one at a time is in flight",
        ci95=mean_interval(
            [1 - one.cpu_seconds / other.cpu_seconds for one, other in zip(at_once, apart, strict=True)]
        ),
        limit=BURST_LIMIT_SECONDS,
    )


def _seconds(claim: str, metric: str, found: list[Found], floor: list[Found], limit: float) -> Figure:
    return Figure(
        claim,
        metric=metric,
        unit="s",
        value=float(np.median([one.seconds for one in found])),
        baseline=float(np.median([one.seconds for one in floor])),
        baseline_name="the command on no coflows",
        ci95=mean_interval([1 - one.seconds / other.seconds for one, other in zip(found, floor, strict=True)]),
        limit=limit,
    )


def made_trace(path: Path) -> Path:
    """Write a trace of 150 ports and 526 coflows in an hour, widths and sizes skewed as in a MapReduce cluster."""
    random = Random("trainyard bench trace")
    lines = ["150 526"]
    arrival = 0.0
    for number in range(1, 527):
        arrival += random.expovariate(526 / 3.6e6)
        mappers = _width(random)
        reducers = _width(random)
        sizes = [max(1.0, random.lognormvariate(3.0, 2.0)) for _ in range(reducers)]
        places = [f"{port}:{size:.1f}" for port, size in zip(random.sample(range(150), reducers), sizes, strict=True)]
        sources = random.sample(range(150), mappers)
        lines.append(" ".join(map(str, [number, round(arrival), mappers, *sources, reducers, *places])))
    path.write_text("\n".join(lines) + "\n")
    return path


def burst(path: Path, gap_milliseconds: float) -> Path:
    """Write a trace of coflows of 1 MB, one after the other at a gap, from one port to the other."""
    lines = [f"2 {BURST_COFLOWS}"]
    lines += [f"{i} {i * gap_milliseconds:.1f} 1 0 1 1:{1e6 / 2**20:.6f}" for i in range(BURST_COFLOWS)]
    path.write_text("\n".join(lines) + "\n")
    return path


def _width(random: Random) -> int:
    """Half of all are narrow, the rest anything up to all ports."""
    return random.randint(1, 4) if random.random() < 0.5 else min(150, max(1, round(10 ** random.uniform(0.5, 2.2))))


def _found(policy: str, *options: object) -> Found:
    given = ["--policy", policy, *map(str, options), "--json", "--processes", "1"]
    sys.stderr.write(f"bench simulator: trainyard sim {' '.join(given)}\n")
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-m", "controller.cli.main", "sim", *given], stdout=out, stderr=err)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            err.seek(0)
            raise RuntimeError(err.read().decode().strip() or f"ended with status {process.returncode}")
        out.seek(0)
        told = json.load(out)["policies"][policy]
    mean = told["mean_cct_seconds"] if told["mean_jct_seconds"] is None else told["mean_jct_seconds"]
    return Found(seconds, told["cpu_seconds"], usage.ru_maxrss / 1024, mean if mean is not None else 0.0)
