"""What is known of a job before it runs: its time alone, which slowdown is measured against, and its targets."""

from __future__ import annotations

from collections.abc import Mapping

from controller.model import BITS_PER_BYTE, Direction, Host, Port
from controller.policies.fair import Fair
from simulator.engine import Limits, simulate
from simulator.jobs import Compute, SimJob, Transfer, Workload
from simulator.metrics import TARGETS, Facts
from simulator.reports.targets import target_iteration


def facts_of(job: SimJob, hosts: Mapping[str, Host]) -> Facts:
    """The facts of a job. A trial of a study has no targets: it is there to be compared, not to converge."""
    targets: dict[str, int | None] = {}
    if job.curve and job.stage is None:
        targets = {name: target_iteration(job.curve, share, job.metric.direction) for name, share in TARGETS.items()}
    return Facts(alone_seconds(job, hosts), targets)


def alone_seconds(job: SimJob, hosts: Mapping[str, Host]) -> float:
    """Seconds from its arrival to its end on a network of its own.

    One lane takes its steps in turn, each transfer as long as its busiest port is, which no rate allocation beats.
    Lanes share the network among themselves, so such a job is simulated.
    """
    if len(job.lanes) == 1:
        return job.iterations * sum(
            step.seconds if isinstance(step, Compute) else bottleneck_seconds(step, hosts) for step in job.lanes[0]
        )
    single = SimJob(id=job.id, lanes=job.lanes, iterations=job.iterations, staleness=job.staleness)
    outcome = simulate(Workload(name="alone", hosts=hosts, jobs=(single,)), Fair(), Limits())
    return outcome.jobs[job.id].end - outcome.jobs[job.id].arrival


def bottleneck_seconds(transfer: Transfer, hosts: Mapping[str, Host]) -> float:
    """Seconds that the busiest port of a transfer needs; 0 without bytes."""
    egress: dict[str, float] = {}
    ingress: dict[str, float] = {}
    for flow in transfer.flows:
        egress[flow.src] = egress.get(flow.src, 0.0) + flow.bytes
        ingress[flow.dst] = ingress.get(flow.dst, 0.0) + flow.bytes
    loads = [(Port(host, Direction.EGRESS), size) for host, size in egress.items()]
    loads += [(Port(host, Direction.INGRESS), size) for host, size in ingress.items()]
    return max((size * BITS_PER_BYTE / hosts[port.host].rate_bps(port.direction) for port, size in loads), default=0.0)
