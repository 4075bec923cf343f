"""What is known of a job before it runs: its time alone, which slowdown is measured against, and its targets."""

from __future__ import annotations

from collections.abc import Mapping

from controller.model import Host
from controller.policies.fair import Fair
from simulator.engine import simulate
from simulator.jobs import Await, SimJob, Transfer, Workload
from simulator.limits import Limits
from simulator.network import Network
from simulator.reports.measures import TARGETS, Facts
from simulator.reports.targets import declared_iteration, target_iteration


def facts_of(job: SimJob, hosts: Mapping[str, Host], network: Network) -> Facts:
    """The facts of a job. A trial of a study has no targets: it is there to be compared, not to converge."""
    targets: dict[str, int | None] = {}
    if job.curve and job.stage is None:
        targets = {name: target_iteration(job.curve, share, job.metric.direction) for name, share in TARGETS.items()}
        if job.target is not None:
            targets["t90"] = declared_iteration(job.curve, job.target, job.metric.direction)
    return Facts(solo_seconds(job, hosts, network), targets)


def solo_seconds(job: SimJob, hosts: Mapping[str, Host], network: Network) -> float:
    """Seconds from its arrival to its end on ``network``, on its own.

    One lane takes its steps in turn, each transfer as long as its busiest link is, which no rate allocation beats. The
    links of a relay may wait for others, so an iteration with one is simulated. Lanes share the network among
    themselves, so a job of several is simulated as a whole.
    """
    if len(job.lanes) > 1:
        return _simulated(job, job.iterations, hosts, network)
    (lane,) = job.lanes
    if any(isinstance(step, Transfer) and step.after for step in lane):
        return job.iterations * _simulated(job, 1, hosts, network)
    return job.iterations * sum(
        bottleneck_seconds(step, network) if isinstance(step, Transfer) else step.seconds
        for step in lane
        if not isinstance(step, Await)
    )


def _simulated(job: SimJob, iterations: int, hosts: Mapping[str, Host], network: Network) -> float:
    single = SimJob(id=job.id, lanes=job.lanes, iterations=iterations, staleness=job.staleness)
    outcome = simulate(Workload(name="alone", hosts=hosts, jobs=(single,)), Fair(), Limits(), network=network)
    return outcome.jobs[job.id].end - outcome.jobs[job.id].arrival


def bottleneck_seconds(transfer: Transfer, network: Network) -> float:
    """Seconds that the busiest link of a transfer needs; 0 without bytes."""
    return float((network.bytes_on(transfer.flows) / network.capacity).max(initial=0.0))
