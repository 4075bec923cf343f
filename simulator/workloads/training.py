"""Deep-learning jobs that alternate computing and communication, with Poisson arrivals, models and learning curves.

Every job draws a model of the table, a way to exchange gradients (``architecture``), how its workers keep in step
(``sync``), its hosts, and a recorded learning curve of the half that no policy was designed on, spread over its
iterations. Everything random comes from the seed, so every policy is given the same jobs.

Bytes shrink by the ratio of the port rate to the 10 Gbit/s that the model table speaks of, so a transfer's seconds, and
their ratio to compute, are those of such a cluster at any port rate.

Workers differ in speed by a few percent, fixed for a job's life. With a barrier (BSP) an iteration computes as long as
its slowest worker does. SSP and ASP need a parameter server, so there every job has one. With SaSP computing and
sending overlap (``decoupled``), over all-reduce too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from controller.model import Host
from simulator.errors import InputError
from simulator.jobs import SimJob, Step, Workload
from simulator.workloads import curves, models
from simulator.workloads.arrivals import job_bytes, poisson
from simulator.workloads.decoupled import decoupled_lanes
from simulator.workloads.sizes import check_reports
from simulator.workloads.transfers import ARCHITECTURES, Architecture, barrier_lane, tasks, worker_lanes

FIRST_PORT = 20_000
SPEED_SPREAD = 0.05
"""Standard deviation of a worker's compute time, as a share of the model's."""


@dataclass(frozen=True, slots=True)
class Training:
    """A mix of training jobs. ``load`` is that of the mean port (0..1); ranges are inclusive.

    ``staleness``: 0 is BSP, s > 0 is SSP(s), None is ASP. ``lead``: with SaSP, and a worker's computing may lead its
    own communication by so many iterations; None: without. ``iterations`` None: as many as the drawn curve has rows.
    """

    hosts: int = 40
    jobs: int = 40
    load: float = 0.5
    seed: int = 1
    port_rate_bps: float = 1e9
    workers: tuple[int, int] = (4, 8)
    iterations: tuple[int, int] | None = None
    architectures: tuple[Architecture, ...] = ("ps", "ring")
    staleness: int | None = 0
    lead: int | None = None


def generate(mix: Training) -> Workload:
    """The jobs of a mix. Raises InputError for a mix that cannot be made."""
    check(mix)
    random = Random(f"trainyard training {mix.seed}")  # noqa: S311 - an experiment, to be repeated from its seed
    names = [f"h{number}" for number in range(1, mix.hosts + 1)]
    jobs = [_job(mix, random, names, number) for number in range(mix.jobs)]
    times = poisson(random, [job_bytes(job) for job in jobs], mix.load, mix.hosts, mix.port_rate_bps)
    return Workload(
        name="training",
        hosts={name: Host(name, ingress_bps=mix.port_rate_bps, egress_bps=mix.port_rate_bps) for name in names},
        jobs=tuple(replace(job, arrival=time) for job, time in zip(jobs, times, strict=True)),
        seed=mix.seed,
    )


def check(mix: Training) -> None:
    """Raises InputError with what would be right."""
    low, high = mix.workers
    if not 0 < mix.load <= 1:
        raise InputError(f"load: {mix.load:g}; it must be above 0 and at most 1, the share of the mean port in use")
    if mix.jobs < 1:
        raise InputError(f"jobs: {mix.jobs}; there must be at least 1")
    if not 2 <= low <= high:
        raise InputError(f"workers: {low} to {high}; a job needs at least 2 workers")
    if mix.hosts < high + 1:
        raise InputError(f"hosts: {mix.hosts}; jobs of up to {high} workers and a server need at least {high + 1}")
    if mix.iterations is not None and not 2 <= mix.iterations[0] <= mix.iterations[1]:
        raise InputError(f"iterations: {mix.iterations[0]} to {mix.iterations[1]}; a job needs at least 2")
    if mix.iterations is not None:
        check_reports(mix.jobs * mix.iterations[1])
    if not mix.architectures or not set(mix.architectures) <= set(ARCHITECTURES):
        raise InputError(f"architecture: {mix.architectures}; choose from {', '.join(ARCHITECTURES)}")
    if mix.staleness is not None and mix.staleness < 0:
        raise InputError(f"staleness: {mix.staleness}; it must be 0 or more")
    if mix.lead is not None and not 0 <= mix.lead <= (mix.lead if mix.staleness is None else mix.staleness):
        raise InputError(f"lead: {mix.lead}; it must be 0 or more, and at most the staleness, {mix.staleness}")
    alone = mix.staleness is None or (mix.staleness > 0 and mix.lead is None)
    if alone and mix.architectures != ("ps",):
        raise InputError("sync: SSP and ASP need a parameter server; all-reduce is a barrier (architecture: ps)")


def draw_compute(random: Random, seconds: float, workers: int) -> list[float]:
    """Seconds that each worker computes an iteration: the model's, a few percent apart."""
    return [seconds * max(0.5, random.gauss(1.0, SPEED_SPREAD)) for _ in range(workers)]


def _job(mix: Training, random: Random, names: list[str], number: int) -> SimJob:
    model = models.scaled(random.choice(models.MODELS), mix.port_rate_bps)
    architecture = random.choice(mix.architectures)
    workers = random.randint(*mix.workers)
    placed = random.sample(names, workers + (architecture == "ps"))
    rows = curves.load(random.choice(curves.names("claim")))
    iterations = len(rows) if mix.iterations is None else random.randint(*mix.iterations)
    computes = draw_compute(random, model.compute_seconds, workers)
    lanes: tuple[tuple[Step, ...], ...]
    staleness = mix.staleness
    if mix.lead is not None:
        barrier, staleness = mix.staleness is not None, None
        lanes = decoupled_lanes(architecture, placed, model.model_bytes, computes, lead=mix.lead, barrier=barrier)
    elif mix.staleness == 0:
        lanes = (barrier_lane(architecture, placed, model.model_bytes, max(computes)),)
    else:
        lanes = worker_lanes(placed, model.model_bytes, computes)
    return SimJob(
        id=f"job{number + 1:0{len(str(mix.jobs))}d}-{model.name}-{architecture}",
        lanes=lanes,
        iterations=iterations,
        staleness=staleness,
        curve=curves.replay(rows, iterations),
        tasks=tasks(architecture, placed, FIRST_PORT + number),
        model=model.name,
    )
