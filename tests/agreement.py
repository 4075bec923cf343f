"""One scenario for the simulator and the testbed: two jobs on three hosts, and how long each takes."""

from __future__ import annotations

from typing import Any

from controller.model import Host
from controller.policies.registry import make
from simulator.engine import Limits, simulate
from simulator.jobs import SimJob, Workload
from simulator.workloads import curves
from simulator.workloads.transfers import barrier_lane, tasks
from topologies.experiment import Experiment, JobPlan
from topologies.lab_result import PolicyChoice

TOLERANCE = 0.10
ITERATIONS = 6
MODEL_BYTES = 3_000_000
"""A transfer lasts a second and more: of shorter ones TCP's start is a good part, which no fluid model has."""
OPTIONS: dict[str, dict[str, Any]] = {"tensorlights-rr": {"rotate_seconds": 1.0}}
"""Rotation goes by the clock, which stands elsewhere in the simulator: it has to come round often in either."""
PAYLOAD_SHARE = 1448 / 1514
"""Of what a link carries, TCP's own bytes: a full frame has 14 bytes of Ethernet's, 20 of IP's and 32 of TCP's."""


def experiment() -> Experiment:
    """Two jobs whose servers share a host and whose workers share two others, so that every policy has what it orders.

    Their flows are alike: in one queue TCP gives unlike ones unlike shares, and no fluid model tells how unlike. They
    report often enough to be learned from.
    """
    curve = next(curve.name for curve in curves.index() if curve.iterations >= ITERATIONS)
    common: dict[str, Any] = {"model": "agreement", "architecture": "ps", "curve": curve, "iterations": ITERATIONS}
    return Experiment(
        name="agreement",
        hosts=3,
        link_bps=25e6,
        period_seconds=0.5,
        limit_seconds=180.0,
        jobs=(
            JobPlan(id="sooner", arrival=0.0, hosts=("h1", "h2", "h3"), port=5000, model_bytes=MODEL_BYTES,
                    compute_seconds=0.2, **common),
            JobPlan(id="later", arrival=0.5, hosts=("h1", "h2", "h3"), port=5001, model_bytes=MODEL_BYTES,
                    compute_seconds=0.6, **common),
        ),
    )  # fmt: skip


def choice(policy: str) -> PolicyChoice:
    """What the lab runs under a policy's name."""
    return PolicyChoice(policy, OPTIONS.get(policy, {}))


def simulated_seconds(policy: str) -> dict[str, float]:
    """Each job's JCT as the simulator has it."""
    asked = experiment()
    limits = Limits(classes=asked.queues - 1, period=asked.period_seconds)
    found = simulate(_workload(asked), make(policy, OPTIONS.get(policy, {})), limits).jobs
    return {job.id: found[job.id].end - found[job.id].arrival for job in asked.jobs}


def _workload(asked: Experiment) -> Workload:
    rate = asked.link_bps * PAYLOAD_SHARE
    return Workload(
        name=asked.name,
        hosts={f"h{i}": Host(f"h{i}", rate, rate) for i in range(1, asked.hosts + 1)},
        jobs=tuple(
            SimJob(
                id=job.id,
                lanes=(barrier_lane(job.architecture, job.hosts, job.model_bytes, job.compute_seconds),),
                arrival=job.arrival,
                iterations=job.iterations,
                curve=curves.replay(curves.load(job.curve), job.iterations),
                tasks=tasks(job.architecture, job.hosts, job.port),
            )
            for job in asked.jobs
        ),
    )
