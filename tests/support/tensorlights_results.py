"""Results of arms of the claim ``tensorlights``, as the lab would return them."""

from __future__ import annotations

from topologies.lab.results import ArmResult, Control, JobResult, LabResult
from topologies.lab.use.meters import LinkUse
from topologies.lab.use.tcp_use import TcpUse
from topologies.trainer.barriers.waits import BarrierWait, Spread, WaitCauses


def job(jct: float | None, wait: float = 1.0, variance: float = 0.5, *, asked: bool = True) -> JobResult:
    causes = WaitCauses(wait, 0.01, 2 * wait, 0.9)
    barrier = BarrierWait(19, wait, variance, Spread(wait / 2, variance / 2), causes) if asked else None
    return JobResult(1.0, 2.0, jct, jct is None, 99.0, history=((1.0, 1, 0.5),), barrier=barrier)


def arm(name: str, seed: int, *jobs: JobResult, idle: float = 0.5) -> ArmResult:
    """An arm whose jobs are those given, one after the other and again, up to 21."""
    control = Control(3, 0.05, 0.09, plans=10, flow_mods=20, gate_renewals=5)
    links = tuple(LinkUse(f"h{n}", 0.1, 0.25) for n in range(1, 22))
    made = {f"job{number + 1:02d}": jobs[number % len(jobs)] for number in range(21)}
    return ArmResult("x", seed, name, made, control, (1,) * 8, idle, 60.0, links, tcp=(TcpUse("h1", 9, 1, 2, 0),))


def lab(*arms: ArmResult) -> LabResult:
    return LabResult("user", 21, 1e7, 8, None, {}, arms)
