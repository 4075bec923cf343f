"""One arm: an experiment under one policy, on a network that runs already.

Controller, agents and trainers are started for every arm in the same way, and stopped after it.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from controller.wire import Status
from topologies.emulation import Emulation
from topologies.errors import LabError
from topologies.experiments.declaration import declared
from topologies.experiments.earlier import EarlierJob
from topologies.experiments.experiment import Experiment
from topologies.fork_server import ForkedProcess
from topologies.lab import arm_values, earlier_jobs, nic_queues, own_switches
from topologies.lab.agents import Agents, Linked, TrainerSite, end, last_line
from topologies.lab.controller_process import ControllerProcess
from topologies.lab.recording.reached import add_reached, moments
from topologies.lab.recording.recorder import ArmRecorder
from topologies.lab.results import ArmResult, PolicyChoice
from topologies.lab.use import watch
from topologies.lab.use.watch import Tick
from topologies.studies.process import TunerProcess, arrived_jobs, read_studies
from topologies.trainer.start import Meeting

START_SECONDS = 1.0
"""The experiment starts so many seconds after its start is announced, when all trainers know it."""

_LEAST_READY_SECONDS, _READY_SECONDS_PER_HOST = 60.0, 5.0
"""Agents, and then trainers, have so many seconds to be ready. Those of many hosts start on one processor."""

_LAST_REPORTS_SECONDS = 3.0


class Planned(Linked, Protocol):
    """The fields of an experiment that the controller needs too."""

    @property
    def queues(self) -> int:
        """Queues of every port: one for each class, and one for all other traffic."""

    @property
    def period_seconds(self) -> float:
        """Seconds between two plans."""


@dataclass
class Running:
    """An arm whose controller and agents run; its jobs come to ``meeting``.

    ``recorder`` writes what a replay needs. ``before``: the controller's state without jobs. ``jobs``: their processes,
    and ``stops`` what else is to be stopped before these; whoever starts them adds them here.
    """

    controller: ControllerProcess
    agents: Agents
    meeting: Meeting
    recorder: ArmRecorder
    before: Status
    jobs: list[ForkedProcess]
    stops: list[Callable[[], None]]

    @property
    def folder(self) -> Path:
        """The folder into which all processes of the arm write."""
        return self.agents.folder

    def wait_until_ready(self, names: frozenset[str], check: Callable[[], None], *, seconds: float, who: str) -> None:
        """Until all have come to the meeting; ``check`` raises where one has failed. Raises LabError."""
        deadline = time.monotonic() + seconds
        while missing := self.meeting.missing(names):
            check()
            if time.monotonic() > deadline:
                raise LabError(f"{who} {', '.join(sorted(missing))} are not ready to start")
            time.sleep(0.1)

    def begin(self) -> float:
        """Announce the start, and return it, in seconds since the epoch."""
        self.recorder.zero = start = time.time() + START_SECONDS
        self.meeting.begin(start)
        return start

    def finish(self) -> Status:
        """End the jobs, and return the controller's state after their last reports. Raises LabError, OSError."""
        _stop(self.stops, self.jobs)
        # The last reports of the jobs may still be on the way.
        self.controller.wait(lambda: self.controller.status().jobs == 0, _LAST_REPORTS_SECONDS)
        after = self.controller.status()
        (self.folder / "controller" / "metrics.txt").write_text(self.controller.metrics())
        return after


@contextlib.contextmanager
def running(
    emulation: Emulation,
    planned: Planned,
    choice: PolicyChoice,
    results: Path,
    *,
    earlier: Sequence[EarlierJob] = (),
    controller_type: type[ControllerProcess] = ControllerProcess,
) -> Iterator[Running]:
    """Start a controller that knows the ``earlier`` jobs, and agents. Raises LabError.

    At the end all is stopped, and logs are in ``results``.
    """
    folder = emulation.folder / "arm"
    folder.mkdir()
    controller = controller_type(
        emulation,
        folder / "controller",
        choice.policy,
        options=choice.options,
        plugins=choice.plugins,
        classes=planned.queues - 1,
        period_seconds=planned.period_seconds,
        enforce=choice.enforce,
        identity=choice.identity,
    )
    agents = Agents(emulation, folder)
    recorder = ArmRecorder(controller, folder, choice.name)
    recorder.start()
    reporters: list[ForkedProcess] = []
    jobs: list[ForkedProcess] = []
    stops: list[Callable[[], None]] = []
    try:
        if earlier:
            earlier_jobs.note(controller.journal, earlier, time.time())
        controller.start()
        reporters = agents.start_reporters(controller, planned, choice.nic)
        controller.wait_ready()
        wait_for_hosts(controller, agents)
        meeting = Meeting(folder / "meeting")
        meeting.folder.mkdir()
        yield Running(controller, agents, meeting, recorder, controller.status(), jobs, stops)
    except BaseException:
        # The first error counts, not the errors that follow from it.
        with contextlib.suppress(LabError, OSError, subprocess.TimeoutExpired):
            _close(stops, [*jobs, *reporters], controller, recorder, results)
        raise
    _close(stops, [*jobs, *reporters], controller, recorder, results)


def run_arm(
    emulation: Emulation,
    experiment: Experiment,
    choice: PolicyChoice,
    *,
    results: Path,
    tick: Tick = lambda _done, _seconds: None,
) -> ArmResult:
    """Run an experiment until its last job ends, or for ``limit_seconds``. Logs go to ``results``. Raises LabError.

    Jobs are measured as the experiment says, whatever they declare in this arm beside it.
    """
    with (
        nic_queues.as_wanted(emulation, experiment, choice.nic),
        own_switches.served(emulation, choice.served, experiment.queues - 1),
    ):
        return _run_arm(emulation, experiment, choice, results, tick)


def _run_arm(
    emulation: Emulation, experiment: Experiment, choice: PolicyChoice, results: Path, tick: Tick
) -> ArmResult:
    as_declared = declared(experiment, choice.declares)
    with running(emulation, experiment, choice, results, earlier=as_declared.earlier) as run:
        tuner = TunerProcess(run.folder, experiment)
        run.stops.append(tuner.stop)
        agents = run.agents
        trainers = agents.start_trainers(as_declared, run.meeting)
        run.jobs.extend(trainers.values())
        tuner.start(emulation, agents.experiment_file, run.meeting.folder)

        def check() -> None:
            watch.check(trainers, agents)
            tuner.check()

        names = frozenset(site.name for site in trainers) | tuner.names
        run.wait_until_ready(names, check, seconds=ready_seconds(emulation), who="the trainers of")
        start = run.begin()
        used = watch.wait_for_jobs(
            run.controller, experiment, trainers=trainers, agents=agents, tuner=tuner, start=start, tick=tick
        )
        seconds = time.time() - start
        after = run.finish()
    arrived = set(arrived_jobs(experiment, results))
    jobs = {job.id: arm_values.job_result(job, results, experiment) for job in experiment.jobs if job.id in arrived}
    add_reached(results, moments(jobs, {job.id: job.arrival for job in experiment.jobs}))
    return ArmResult(
        experiment=experiment.name,
        seed=experiment.seed,
        policy=choice.name,
        jobs=jobs,
        control=arm_values.control(after),
        bytes_by_class=arm_values.bytes_by_class(run.before, after, experiment.queues - 1),
        cpu_idle_share=1.0 - used.use.busy_share,
        seconds=seconds,
        links=used.use.links,
        studies=read_studies(experiment, results, start),
        cpu_variance=used.use.busy_variance,
        tcp=used.tcp,
    )


def ready_seconds(emulation: Emulation) -> float:
    """Returns how long the processes on the hosts of a network may take until they are ready."""
    return max(_LEAST_READY_SECONDS, _READY_SECONDS_PER_HOST * len(emulation.hosts))


def wait_for_hosts(controller: ControllerProcess, agents: Agents) -> None:
    """Wait until every host's agent has reported, and marks where hosts alone enforce. Raises LabError."""
    silent: list[str] = []

    def all_report() -> bool:
        agents.emulation.fork_server.check()
        status = controller.status()
        are_alone = status.enforce == ("hosts",)
        silent[:] = [host.name for host in status.hosts if not host.alive or (are_alone and not host.marks)]
        return not silent

    if not controller.wait(all_report, ready_seconds(agents.emulation)):
        log = agents.log("reporter", TrainerSite(silent[0]))
        raise LabError(
            f"no report, or no marks, from {', '.join(silent)}; {silent[0]}'s reporter says: {last_line(log)}"
        )


def _stop(stops: Iterable[Callable[[], None]], processes: Iterable[ForkedProcess]) -> None:
    for stop in stops:
        stop()
    end(processes)


def _close(
    stops: Iterable[Callable[[], None]],
    processes: Iterable[ForkedProcess],
    controller: ControllerProcess,
    recorder: ArmRecorder,
    results: Path,
) -> None:
    """End the arm's processes, and keep their files."""
    recorder.ask_last()
    try:
        _stop(stops, processes)
    finally:
        controller.stop()
        recorder.stop()
        _keep(recorder.folder, results)


def _keep(folder: Path, results: Path) -> None:
    """Move an arm's files from memory to the results, without the secrets. Raises LabError."""
    shutil.rmtree(results, ignore_errors=True)
    ignored = shutil.ignore_patterns("*.token", "controller.yaml", "journal.sqlite*")
    try:
        shutil.copytree(folder, results, ignore=ignored)
    except shutil.Error as error:
        source, target, reason = error.args[0][0]
        raise LabError(f"cannot copy {source} to {target}: {reason}") from error
    shutil.rmtree(folder)
