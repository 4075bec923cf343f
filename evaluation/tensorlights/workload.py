"""The jobs of the claim ``tensorlights``: equal ones, whose parameter servers stand together or apart.

Twelve jobs of one parameter server and twelve workers each, a worker on every other of thirteen hosts, all launched
within two seconds. An iteration alone takes 2 s, of which a quarter is communication, half of that the fan-out;
with all servers on one host, what they fan out in an iteration fills its link for 2.9 s.
"""

from __future__ import annotations

from random import Random

from simulator.workloads import curves
from topologies.experiments.experiment import Experiment, JobPlan
from topologies.experiments.workload import FIRST_PORT, LINK_BPS, PERIOD_SECONDS

HOSTS = 13
JOBS = 12
MODEL_BYTES = 25_000
COMPUTE_SECONDS = 1.5
LAUNCH_SECONDS = 2.0
LIMIT_SECONDS = 600.0
NIC_QUEUE_BYTES = 16 * 2**20
"""Deep enough for what all jobs fan out at once: fair sharing must lose no packet there that TensorLights would not."""


def experiment(server_hosts: int, seed: int, iterations: int) -> Experiment:
    """The jobs, with their servers on ``server_hosts`` hosts in turn.

    From the seed come those hosts, the order in which each job has its workers, and when jobs are launched.
    """
    random = Random(f"trainyard tensorlights {server_hosts} {seed}")  # noqa: S311 - to be repeated
    names = [f"h{number}" for number in range(1, HOSTS + 1)]
    servers = random.sample(names, server_hosts)
    curve = next(curve.name for curve in curves.index() if curve.use == "claim" and curve.iterations >= iterations)
    jobs = []
    for number, arrival in enumerate(sorted(random.uniform(0.0, LAUNCH_SECONDS) for _ in range(JOBS))):
        server = servers[number % server_hosts]
        workers = [name for name in names if name != server]
        random.shuffle(workers)
        jobs.append(
            JobPlan(
                id=f"job{number + 1:02d}",
                arrival=round(arrival, 3),
                architecture="ps",
                hosts=(server, *workers),
                port=FIRST_PORT + number,
                model="equal",
                model_bytes=MODEL_BYTES,
                compute_seconds=COMPUTE_SECONDS,
                iterations=iterations,
                curve=curve,
            )
        )
    return Experiment(
        name=f"servers-on-{server_hosts}-{seed}",
        seed=seed,
        hosts=HOSTS,
        link_bps=LINK_BPS,
        jobs=tuple(jobs),
        limit_seconds=LIMIT_SECONDS,
        period_seconds=PERIOD_SECONDS,
        barriers=True,
        nic_queue_bytes=NIC_QUEUE_BYTES,
    )
