"""The simulator's speed and memory: a trace of 526 coflows under every policy, and a million training iterations.

With ``--data FOLDER`` the trace is ``FOLDER/coflow/FB2010-1Hr-150-0.txt``, the Facebook trace of the coflow benchmark
(github.com/coflow/coflow-benchmark); without it one that is made here, of as many ports and coflows, of widths and
sizes as skewed. Every simulation has a process of its own, whose peak memory is measured.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from controller.policies.registry import make
from simulator.engine import Limits, simulate
from simulator.jobs import Workload
from simulator.sweep import warm
from simulator.workloads import coflow_trace
from simulator.workloads.training import Training, generate
from tests.bench.figures import Bench, Figure

TRACE = "coflow/FB2010-1Hr-150-0.txt"
POLICIES = ("sincronia", "sebf", "fifo", "las", "fair")
LIMIT_SECONDS = {"fair": 60.0}
USUAL_LIMIT_SECONDS = 10.0
LIMIT_MEGABYTES = 1000.0
QUANTUM_LIMIT = 0.005
ROUNDS = 3
MIX = Training(hosts=1000, jobs=500, load=0.7, workers=(8, 8), iterations=(2000, 2000), port_rate_bps=1e10)
MIX_LIMITS = Limits(classes=7, period=5.0)
MIX_LIMIT_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Found:
    """One process: seconds of reading and of simulating, its peak memory, mean completion time, and iterations."""

    read_seconds: float
    seconds: float
    peak_megabytes: float
    mean_seconds: float
    iterations: int


def run(folder: Path, data: Path | None) -> Bench:
    """Measure. Raises RuntimeError where a simulation failed."""
    trace = data / TRACE if data is not None else made_trace(folder / "trace.txt")
    name = "the Facebook trace" if data is not None else "a made trace of 526 coflows"
    warm()
    figures: list[Figure] = []
    details: dict[str, Any] = {}
    for policy in POLICIES:
        usual = [_found("trace", str(trace), policy, "default") for _ in range(ROUNDS)]
        exact = _found("trace", str(trace), policy, "exact")
        details[policy] = {"default": [asdict(one) for one in usual], "exact": asdict(exact)}
        figures += _trace_figures(policy, name, usual, exact)
    mix = [_found("mix", "", "jpas", "exact") for _ in range(ROUNDS)]
    details["mix"] = [asdict(one) for one in mix]
    figures.append(
        Figure(
            f"{mix[0].iterations:,} iterations of 500 training jobs of 8 workers on 1,000 hosts, JPAS, load 0.7",
            metric="sim_training",
            unit="s",
            value=float(np.median([one.seconds for one in mix])),
            baseline=float(np.median([one.read_seconds for one in mix])),
            baseline_name="making the workload",
            ci95=_interval([1 - one.seconds / one.read_seconds for one in mix]),
            limit=MIX_LIMIT_SECONDS,
        )
    )
    return Bench(figures=tuple(figures), details=details)


def _trace_figures(policy: str, name: str, usual: list[Found], exact: Found) -> list[Figure]:
    effect = abs(usual[0].mean_seconds / exact.mean_seconds - 1)
    return [
        Figure(
            f"{name} under {policy}, with the default quantum",
            metric="sim_trace",
            unit="s",
            value=float(np.median([one.seconds for one in usual])),
            baseline=exact.seconds,
            baseline_name="exact",
            ci95=_interval([1 - one.seconds / exact.seconds for one in usual]),
            limit=LIMIT_SECONDS.get(policy, USUAL_LIMIT_SECONDS),
        ),
        Figure(
            f"its memory under {policy}",
            metric="sim_trace_memory",
            unit="MB",
            value=max(one.peak_megabytes for one in usual),
            baseline=exact.peak_megabytes,
            baseline_name="exact",
            ci95=_interval([1 - one.peak_megabytes / exact.peak_megabytes for one in usual]),
            limit=LIMIT_MEGABYTES,
        ),
        Figure(
            f"what the quantum moves the mean CCT by under {policy}",
            metric="sim_quantum_effect",
            unit="share",
            value=effect,
            baseline=QUANTUM_LIMIT,
            baseline_name="what it may",
            ci95=(1 - effect / QUANTUM_LIMIT,) * 2,
            limit=QUANTUM_LIMIT,
        ),
    ]


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


def _width(random: Random) -> int:
    """Half of all are narrow, the rest anything up to all ports."""
    return random.randint(1, 4) if random.random() < 0.5 else min(150, max(1, round(10 ** random.uniform(0.5, 2.2))))


def _found(*what: str) -> Found:
    sys.stderr.write(f"bench simulator: {' '.join((what[0], *what[2:]))}\n")
    command = [sys.executable, "-m", "tests.bench.simulation", *what]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    if told.returncode:
        raise RuntimeError(told.stderr.strip().rpartition("\n")[2] or f"ended with status {told.returncode}")
    return Found(**json.loads(told.stdout))


def _interval(reductions: list[float]) -> tuple[float, float]:
    low, high = np.quantile(reductions, (0.025, 0.975)).tolist()
    return low, high


def main() -> int:
    """One simulation, in a process of its own; what it found is JSON on stdout."""
    kind, trace, policy, quantum = sys.argv[1:]
    warm()
    begin = time.perf_counter()
    workload: Workload
    if kind == "trace":
        workload = coflow_trace.parse(coflow_trace.read(Path(trace)), trace)
        limits = Limits(quantum=None if quantum == "default" else 0.0)
    else:
        workload, limits = generate(MIX), MIX_LIMITS
    read = time.perf_counter()
    outcome = simulate(workload, make(policy, {}), limits)
    done = time.perf_counter()
    times = [job.end - job.arrival for job in outcome.jobs.values()]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found = Found(read - begin, done - read, peak, float(np.mean(times)), outcome.iterations)
    json.dump(asdict(found), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
