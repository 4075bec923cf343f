"""Many simulations: every policy on every workload, on all cores; each is a value in and a value out.

A task names all that it needs, so it can run in this process, in another, or on another machine.
"""

from __future__ import annotations

import gc
import multiprocessing
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from controller.model import Port
from controller.policies.registry import make
from simulator.compiling import prepare
from simulator.engine import simulate
from simulator.errors import InputError
from simulator.graph_file import GraphFile, parse
from simulator.jobs import Transfer
from simulator.limits import Limits
from simulator.network import Graph, Hose, Network
from simulator.reports.measures import Facts, Measures, measure
from simulator.sweep.facts import facts_of
from simulator.sweep.sources import Source, build

POLL_SECONDS = 0.2
Progress = Callable[[Sequence[float]], None]
"""Called with the share (0..1) that is done of each task."""


class SweepError(RuntimeError):
    """Simulations could not be carried out; the message says why."""


@dataclass(frozen=True, slots=True)
class Task:
    """One simulation. ``load`` and ``seed`` say where it belongs; None where the workload has none.

    ``graph`` is the network's; None: the hose model.
    """

    source: Source
    policy: str
    options: Mapping[str, object] = field(default_factory=dict)
    limits: Limits = Limits()  # noqa: RUF009 - frozen, so all may share it
    offline: bool = False
    load: float | None = None
    seed: int | None = None
    timeline: bool = False
    graph: GraphFile | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """A task and its measures."""

    task: Task
    measures: Measures


COLLECT_AFTER = (100_000, 20, 100)
"""Python's collections for cycles, of which simulations leave none: they walk through all jobs' histories."""


@contextmanager
def _collecting_seldom() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*COLLECT_AFTER)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@_collecting_seldom()
def run_task(task: Task, progress: Callable[[float], None] = lambda _share: None) -> Run:
    """Simulate. Raises InputError, PolicyError, PlanError."""
    scenario = build(task.source, task.offline)
    hosts, network = scenario.workload.hosts, network_of(task)
    follower = scenario.follower() if scenario.follower is not None else None
    outcome = simulate(
        scenario.workload,
        make(task.policy, task.options),
        task.limits,
        network=network,
        watch=_busiest(task.source, task.offline, task.graph) if task.timeline else (),
        follow=follower,
        progress=progress,
    )
    jobs = [*scenario.workload.jobs, *(follower.submitted if follower is not None else ())]
    known = facts_before(task)
    facts = {job.id: known[job.id] if job.id in known else facts_of(job, hosts, network) for job in jobs}
    return Run(task, measure(jobs, network, outcome, facts))


def network_of(task: Task) -> Network:
    """What a task's flows cross. Raises InputError where its graph does not fit its workload."""
    return _network(task.source, task.offline, task.graph)


def facts_before(task: Task) -> Mapping[str, Facts]:
    """Returns the facts of the jobs that a task's workload starts with."""
    return _facts(task.source, task.offline, task.graph)


@lru_cache(maxsize=1)
def _network(source: Source, offline: bool, graph: GraphFile | None) -> Network:
    hosts = build(source, offline).workload.hosts
    if graph is None:
        return Hose(hosts)
    try:
        return Graph(parse(graph), hosts)
    except InputError as error:
        raise InputError(f"{graph.source}: {error}") from None


def run_all(tasks: Sequence[Task], *, processes: int, progress: Progress = lambda _shares: None) -> list[Run]:
    """Run all tasks, in so many processes; the answers are in the order of the tasks. Raises as ``run_task``, and
    SweepError where a process died.
    """
    prepare()
    if min(processes, len(tasks)) <= 1:
        return _run_here(tasks, progress)
    context = multiprocessing.get_context("spawn")
    shares = context.RawArray("d", len(tasks))
    try:
        with ProcessPoolExecutor(min(processes, len(tasks)), context, _begin, (shares,)) as pool:
            try:
                futures = [pool.submit(_run_told, number, task) for number, task in enumerate(tasks)]
                _wait(futures, lambda: progress(list(shares)))
                return [future.result() for future in futures]
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                for child in multiprocessing.active_children():
                    child.terminate()
                raise
    except BrokenProcessPool:
        raise SweepError(
            "a process of the sweep died, most likely for want of memory; fewer --processes need less"
        ) from None


def _run_here(tasks: Sequence[Task], progress: Progress) -> list[Run]:
    shares = [0.0] * len(tasks)

    def tell(number: int) -> Callable[[float], None]:
        def told(share: float) -> None:
            shares[number] = share
            progress(shares)

        return told

    runs = []
    for number, task in enumerate(tasks):
        runs.append(run_task(task, tell(number)))
        tell(number)(1.0)
    return runs


_shares: Any = None
"""A process of the pool writes the share done of each task here."""


def _begin(shares: Any) -> None:
    global _shares  # noqa: PLW0603 - a pool's initialiser has no other way to hand something to its tasks
    _shares = shares
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    prepare()


def _run_told(number: int, task: Task) -> Run:
    def told(share: float) -> None:
        _shares[number] = share

    run = run_task(task, told)
    told(1.0)
    return run


def _wait(futures: Iterable[Future[Run]], tell: Callable[[], None]) -> None:
    """Until all are done or one has failed."""
    left = set(futures)
    while left:
        done, left = wait(left, POLL_SECONDS, FIRST_COMPLETED)
        tell()
        for future in done:
            future.result()


@lru_cache(maxsize=1)
def _facts(source: Source, offline: bool, graph: GraphFile | None) -> Mapping[str, Facts]:
    """The facts of the jobs that a workload starts with; the last workload's are kept for the next policy."""
    workload, network = build(source, offline).workload, _network(source, offline, graph)
    return {job.id: facts_of(job, workload.hosts, network) for job in workload.jobs}


@lru_cache(maxsize=1)
def _busiest(source: Source, offline: bool, graph: GraphFile | None) -> tuple[Port, ...]:
    """The port with the most seconds of bytes; none without any."""
    network = _network(source, offline, graph)
    seconds = np.zeros(len(network.ports))
    for job in build(source, offline).workload.jobs:
        for step in (step for lane in job.lanes for step in lane):
            if isinstance(step, Transfer):
                seconds += network.bytes_on(step.flows) * job.iterations / network.capacity
    spent = dict(zip(network.ports, seconds.tolist(), strict=True))
    return (max(sorted(spent), key=lambda port: spent[port]),) if seconds.any() else ()
