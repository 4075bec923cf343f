"""Runs the tasks that an experiment has on one host. Each starts at its job's arrival; all end by the limit."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from simulator.workloads import curves
from topologies.experiments.addressing import Subnet, of_job
from topologies.experiments.experiment import PLAIN, Experiment, JobPlan
from topologies.trainer.barriers import files
from topologies.trainer.barriers.record import NOTHING, Record, ServerRecord, WorkerRecord
from topologies.trainer.calls import Calls
from topologies.trainer.job_recorder import JobRecorder
from topologies.trainer.processor import Processor
from topologies.trainer.results import write_failure
from topologies.trainer.start import Meeting, Start, name_of
from topologies.trainer.transfers import asynchronous, parameter_server, ring
from topologies.trainer.transfers.frames import PeerLostError
from topologies.trainer.transfers.rails import AnyChannel
from topologies.trainer.transfers.task import Addresses, HaltedError, Sockets, TaskContext
from topologies.trainer.transfers.warm_up import warm_up
from topologies.trainer.wakeup import Wakeup

STOP_SECONDS = 10.0
"""A stopped task has this many seconds to write its result."""

MEETING_SECONDS = 0.1
"""Look for the start file this often, in seconds."""

GRACE_SECONDS = 1.0
"""Wait this many seconds for this host's own signal to stop before a lost peer counts as a failure.

A peer that closes its connections may be stopping together with all others.
"""

log = logging.getLogger("trainer")


class InputError(Exception):
    """The input is wrong. The message says what is wrong, and what would be right."""


@dataclass(frozen=True)
class Options:
    """The options of a trainer.

    ``start`` is in seconds since the epoch, or the meeting that announces it once all trainers are ready. ``subnets``
    has the subnet of each rail; empty: the experiment's. Every job ends after ``cap`` iterations.
    """

    experiment: Experiment
    host: str
    start: float | Meeting
    directory: Path
    subnets: tuple[Subnet, ...] = ()
    job: str | None = None
    cap: int | None = None
    connect_seconds: float = 60.0


class Task:
    """One task of a job on this host. ``run`` is the body of a thread; any other thread may call ``halt``."""

    def __init__(
        self,
        options: Options,
        job: JobPlan,
        start: Start,
        calls: Calls,
        *,
        curve: Sequence[float],
        processor: Processor | None,
    ) -> None:
        self._options = options
        self._job = job
        self._rank = job.hosts.index(options.host)
        self._start = start
        self._calls = calls
        self._is_called = job.trial is None
        self._iterations = min(job.iterations, options.cap or job.iterations)
        self._sockets = Sockets()
        self._halted = threading.Event()
        self._processor = processor
        self._record = _record(job, self._rank) if options.experiment.barriers else NOTHING
        self._recorder: JobRecorder | None = None
        if self._rank == 0:
            self._recorder = JobRecorder(job, iterations=self._iterations, curve=curve, directory=options.directory)
        self.failed: str | None = None

    def halt(self) -> None:
        """Make the task stop soon and write its result."""
        self._halted.set()
        self._sockets.shut()

    def run(self) -> None:
        """Wait for the arrival, run the task to its end, and write the result. Raises nothing."""
        try:
            channels = self._transfer()
            log.info(
                "job %s: done on %s, %d bytes sent, %d received",
                self._job.id,
                self._options.host,
                sum(channel.sent for channel in channels),
                sum(channel.received for channel in channels),
            )
        except HaltedError:
            log.info("job %s: stopped on %s", self._job.id, self._options.host)
        except (PeerLostError, OSError, threading.BrokenBarrierError) as error:
            if self._halted.wait(GRACE_SECONDS):
                log.info("job %s: stopped on %s", self._job.id, self._options.host)
            else:
                self.failed = str(error) or type(error).__name__
        except Exception as error:
            # A defect in the trainer ends only this job. The log has its trace.
            log.exception("job %s: fault on %s", self._job.id, self._options.host)
            self.failed = f"fault in the trainer: {error!r}"
        finally:
            self._sockets.shut()
            self._sockets.close()
        self._conclude()

    def _transfer(self) -> list[AnyChannel]:
        context = TaskContext(
            self._job, self._rank, self._iterations, self._addresses(), self._sockets,
            self._recorder.finished if self._recorder is not None else _ignore, self._options.connect_seconds,
            self._begin, self._record, self._processor,
        )  # fmt: skip
        if self._job.architecture == "ring":
            return ring.peer(context)
        if self._job.scheme != PLAIN:
            return asynchronous.serve(context) if self._rank == 0 else asynchronous.work(context)
        return parameter_server.serve(context) if self._rank == 0 else parameter_server.work(context)

    def _addresses(self) -> Addresses:
        """Returns the addresses over which the job sends."""
        experiment = self._options.experiment
        number = experiment.jobs.index(self._job)
        return Addresses(self._options.subnets or of_job(experiment.addresses, experiment.rails, number))

    def _begin(self) -> None:
        """Wait for the start, for the call of a study's job, and for the arrival.

        Raises HaltedError, OSError, ValueError.
        """
        zero = self._start.wait()
        after = self._job.arrival
        if self._job.trial is not None:
            call = self._calls.wait(self._job.id)
            self._is_called = True
            after = call.arrival - zero.epoch
            if self._recorder is not None:
                self._recorder.called(call)
        arrival = zero.monotonic + after
        if self._recorder is not None:
            self._recorder.expect(arrival, zero.epoch + after)
        if self._sockets.closed.wait(max(0.0, arrival - time.monotonic())):
            raise HaltedError
        if self._recorder is not None:
            self._recorder.begin()

    def _conclude(self) -> None:
        if self.failed is not None:
            log.error("job %s: failed on %s: %s", self._job.id, self._options.host, self.failed)
        try:
            if self.failed is not None:
                write_failure(self._options.directory, self._job.id, self._options.host, self.failed)
            if (moments := self._record.moments()) is not None:
                files.write(self._options.directory, self._job.id, self._rank, moments)
            # A job that was not called has no result.
            if self._recorder is not None and (self._is_called or self.failed is not None):
                self._recorder.end(self.failed)
        except OSError as error:
            self.failed = f"cannot write the result: {error}"
            log.error("job %s: %s", self._job.id, self.failed)


def _record(job: JobPlan, rank: int) -> Record:
    """Returns what a task notes of its iterations where the experiment wants to know of barriers."""
    if job.architecture != "ps" or job.scheme != PLAIN:
        return NOTHING
    return WorkerRecord() if rank else ServerRecord(len(job.hosts) - 1)


def _ignore(_iteration: int) -> None:
    """Do nothing: only rank 0 records iterations."""


def run(options: Options) -> bool:
    """Run the tasks of ``options.host``. Raises InputError before anything starts.

    Returns whether no job failed here; a task that does not stop when it should counts as failed. Only the main thread
    may call this.
    """
    start, calls = Start(), Calls(options.directory)
    host_tasks = tasks(options, start, calls)
    with Wakeup() as wakeup:
        warm_up()
        for task in host_tasks:
            threading.Thread(target=_body, args=(task, wakeup), daemon=True).start()
        calls.listen()
        ended, stopping = _agree(options, start, len(host_tasks), wakeup)
        if stopping:
            _halt(host_tasks, start, calls)
        limit = start.epoch + options.experiment.limit_seconds
        running = len(host_tasks) - ended
        while running:
            ended, signalled = wakeup.wait(STOP_SECONDS if stopping else max(0.0, limit - time.time()))
            running -= ended
            if not stopping and (signalled or time.time() >= limit):
                stopping = True
                _halt(host_tasks, start, calls)
            elif stopping and not ended and not signalled:
                log.error("%d tasks did not stop within %g s; they are abandoned", running, STOP_SECONDS)
                return False
    return all(task.failed is None for task in host_tasks)


def _agree(options: Options, start: Start, tasks_here: int, wakeup: Wakeup) -> tuple[int, bool]:
    """Wait for the start and announce it to the tasks.

    Returns how many tasks ended before the start, and whether a signal came instead of the start.
    """
    if not isinstance(options.start, Meeting):
        start.announce(options.start)
        return 0, False
    ended, arrived = 0, False
    while True:
        if not arrived and start.ready + ended >= tasks_here:
            options.start.arrive(name_of(options.host, options.job))
            arrived = True
        if (epoch := options.start.announced()) is not None:
            start.announce(epoch)
            return ended, False
        more, signalled = wakeup.wait(MEETING_SECONDS)
        ended += more
        if signalled:
            return ended, True


def _halt(host_tasks: Sequence[Task], start: Start, calls: Calls) -> None:
    start.call_off()
    calls.call_off()
    for task in host_tasks:
        task.halt()


def _body(task: Task, wakeup: Wakeup) -> None:
    try:
        task.run()
    finally:
        wakeup.notify()


def tasks(options: Options, start: Start, calls: Calls) -> list[Task]:
    """Return the tasks of this host, which wait for ``start`` and for ``calls``. Raises InputError."""
    experiment = options.experiment
    if options.host not in {f"h{i}" for i in range(1, experiment.hosts + 1)}:
        raise InputError(f"there is no host {options.host}; the experiment has h1..h{experiment.hosts}")
    if options.job is not None and options.job not in {job.id for job in experiment.jobs}:
        known = ", ".join(job.id for job in experiment.jobs)
        raise InputError(f"there is no job {options.job}; the experiment has {known}")
    processor = None if experiment.processors is None else Processor(experiment.processors)
    host_tasks = []
    for job in experiment.jobs:
        if options.host in job.hosts and options.job in (None, job.id):
            records = job.hosts[0] == options.host and job.trial is None
            curve = _curve(job) if records else ()
            host_tasks.append(Task(options, job, start, calls, curve=curve, processor=processor))
            if job.trial is not None:
                calls.expect(job.id)
    return host_tasks


def _curve(job: JobPlan) -> tuple[float, ...]:
    try:
        return job.metrics
    except curves.CurveError as error:
        raise InputError(f"job {job.id}: {error}") from error
