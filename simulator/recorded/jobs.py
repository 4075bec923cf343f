"""From the runs of a recording to the jobs of a workload, and what each is made of. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from controller.endpoints.servers import Servers
from controller.endpoints.spread import spread
from controller.model import Demand, Host, Metric, Role, Task, server_of
from simulator.jobs import Compute, SimJob, Step, Transfer, Workload
from simulator.network import PAYLOAD_SHARE, Hose
from simulator.recorded.lines import Description
from simulator.recorded.pace import Array, begin_of, end_of, gap_of, least_seconds, metrics_at, times_at
from simulator.recorded.recording import Recording, Run

MOST_ITERATIONS = 4000
"""A job with more iterations is simulated with so many, each of which stands for several."""
FEWEST_ITERATIONS = 2
_NOTHING: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Estimated:
    """A job that ran, as it is simulated.

    ``iterations`` were seen of it, and ``bytes`` and ``compute_seconds`` are those of one iteration, which computes for
    at most ``most_compute``. ``least_seconds`` are those of an iteration when least slowed. ``gap`` is the time between
    two events that show progress. ``ends`` are when the iterations of ``job`` were done, in the recording's clock,
    shape (job.iterations,). ``is_whole``: its start and its end are in the recording.
    """

    job: SimJob
    iterations: float
    bytes: float
    compute_seconds: float
    most_compute: float
    least_seconds: float
    gap: float
    ends: Array
    is_whole: bool

    @property
    def seconds(self) -> float:
        """How long it ran as observed."""
        return float(self.ends[-1]) - self.job.arrival


@dataclass(frozen=True, slots=True)
class RecordedWorkload:
    """A recording as a workload. ``left_out`` says of each run that could not be used why."""

    workload: Workload
    estimated: Mapping[str, Estimated]
    left_out: Mapping[str, str]
    unknown_rates: tuple[str, ...]
    """The hosts whose rates the recording does not have."""


def workload_of(
    recording: Recording, port_rate_bps: float, computes: Mapping[str, float] = _NOTHING
) -> RecordedWorkload:
    """Returns the jobs of a recording. A host without known rates has ``port_rate_bps`` each way.

    ``computes`` has the seconds that an iteration of some jobs computes. One of another job computes for all the time
    that its transfers would leave it if the job had the network alone.
    """
    left_out: dict[str, str] = {}
    usable: list[tuple[Run, Description, tuple[Demand, ...]]] = []
    for run in recording.runs:
        why = _why_not(run)
        if why is not None:
            left_out[run.id] = why
        elif run.description is not None and run.description.demand is not None:
            demand = tuple(Demand(pair.src, pair.dst, pair.bytes) for pair in run.description.demand if pair.bytes > 0)
            usable.append((run, run.description, demand))
    names = sorted({server_of(end) for _, _, demand in usable for pair in demand for end in (pair.src, pair.dst)})
    hosts = {
        end: _host(end, rates, port_rate_bps)
        for name in names
        for end, rates in recording.interfaces.get(name, {name: recording.rates.get(name)}).items()
    }
    servers = Servers(hosts)
    usable = [(run, described, spread(servers, demand)) for run, described, demand in usable]
    network = Hose(hosts)
    estimated = {
        run.id: _estimated(run, described, demand, network, computes.get(run.id)) for run, described, demand in usable
    }
    jobs = tuple(each.job for each in estimated.values())
    stages: dict[str, tuple[str, ...]] = {}
    for job in jobs:
        if job.stage is not None:
            stages[job.stage] = (*stages.get(job.stage, ()), job.id)
    return RecordedWorkload(
        workload=Workload(name=recording.source, hosts=hosts, jobs=jobs, stages=stages),
        estimated=estimated,
        left_out=left_out,
        unknown_rates=tuple(name for name in names if name not in recording.rates),
    )


def _why_not(run: Run) -> str | None:
    """Returns why a run cannot be simulated; None: it can."""
    if not run.points or run.points[-1].done - begin_of(run).done < FEWEST_ITERATIONS:
        return "fewer than 2 of its iterations are in the recording"
    if run.points[-1].time <= run.points[0].time:
        return "its iterations were all told of at once"
    if run.description is None:
        return "the recording does not say what it is, because it was registered before and nothing has changed since"
    if run.description.demand is None:
        return (
            "the bytes of its iterations are not known: it declares none and no host has measured them, or it has too "
            "many pairs of hosts"
        )
    return None


def _host(name: str, rates: tuple[float, float] | None, port_rate_bps: float) -> Host:
    egress, ingress = rates if rates is not None else (port_rate_bps, port_rate_bps)
    return Host(name, ingress_bps=ingress * PAYLOAD_SHARE, egress_bps=egress * PAYLOAD_SHARE)


def _estimated(
    run: Run, described: Description, demand: Sequence[Demand], network: Hose, computes: float | None
) -> Estimated:
    begin, last = begin_of(run), end_of(run)
    seen = last.done - begin.done
    iterations = min(max(round(seen), 1), MOST_ITERATIONS)
    each = seen / iterations  # how many of its iterations one of the simulation stands for
    done = np.arange(1, iterations + 1, dtype=np.float64) * each
    steps = _transfers(demand, described.servers or ())
    alone = sum(float((network.bytes_on(step.flows) / network.capacity).max(initial=0.0)) for step in steps)
    least = least_seconds(run.points)
    most_compute = max(least - alone, 0.0)
    if described.compute_seconds > 0:
        most_compute = min(most_compute, described.compute_seconds)
    compute = most_compute if computes is None else min(computes, most_compute)
    job = SimJob(
        id=run.id,
        lanes=((Compute(compute * each), *(_times(step, each) for step in steps)),),
        arrival=begin.time,
        iterations=iterations,
        weight=described.weight,
        stage=described.stage,
        metric=Metric(described.metric.name, described.metric.direction),
        target=described.target,
        curve=tuple(metrics_at(begin, run.points, done).tolist()),
        tasks=_tasks(demand, described.servers or ()),
        family=described.family or "",
    )
    return Estimated(
        job=job,
        iterations=seen,
        bytes=sum(pair.bytes for pair in demand),
        compute_seconds=compute,
        most_compute=most_compute,
        least_seconds=least,
        gap=gap_of(run.points),
        ends=times_at(begin, run.points, done),
        is_whole=run.begun_seen and run.ended,
    )


def _transfers(demand: Sequence[Demand], servers: Sequence[str]) -> tuple[Transfer, ...]:
    """Returns the transfers of an iteration: with parameter servers the pushes, then the pulls; else all at once."""
    pushes = tuple(pair for pair in demand if server_of(pair.dst) in servers and server_of(pair.src) not in servers)
    rest = tuple(pair for pair in demand if pair not in pushes)
    return tuple(Transfer(flows) for flows in (pushes, rest) if flows)


def _times(step: Transfer, count: float) -> Step:
    return Transfer(tuple(Demand(pair.src, pair.dst, pair.bytes * count) for pair in step.flows))


def _tasks(demand: Sequence[Demand], servers: Sequence[str]) -> tuple[Task, ...]:
    hosts = sorted({server_of(end) for pair in demand for end in (pair.src, pair.dst)})
    other = Role.WORKER if servers else Role.PEER
    return tuple(Task(Role.PS if host in servers else other, host) for host in hosts)
