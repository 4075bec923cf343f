"""One arm: an experiment under one policy, on a network that runs already.

Controller, agents and trainers are started for every arm in the same way, and stopped after it.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from controller.wire import Status
from topologies.emulation import Emulation
from topologies.errors import LabError
from topologies.experiments.declaration import declared
from topologies.experiments.earlier import EarlierJob
from topologies.experiments.experiment import Experiment
from topologies.fork_server import ForkedProcess, Program
from topologies.lab import arm_values, earlier_jobs, nic_queues
from topologies.lab.controller_process import URL, ControllerProcess
from topologies.lab.meters import Meter, Use
from topologies.lab.recording.reached import add_reached, moments
from topologies.lab.recording.recorder import ArmRecorder
from topologies.lab.results import ArmResult, PolicyChoice
from topologies.studies.process import TunerProcess, all_ended, arrived_jobs, read_studies
from topologies.trainer.results import done_file
from topologies.trainer.start import Meeting, name_of

Tick = Callable[[int, float], None]
"""Takes the number of jobs done and the seconds since the experiment's start."""

START_SECONDS = 1.0
"""The experiment starts so many seconds after its start is announced, when all trainers know it."""

_REPORTERS_SECONDS = 60.0
_TRAINERS_SECONDS = 60.0
_LAST_REPORTS_SECONDS = 3.0
_STOP_SECONDS = 10.0
_GRACE_SECONDS = 5.0
"""At the limit trainers have so many seconds to stop by themselves and to write their results."""


@dataclass(frozen=True, slots=True)
class TrainerSite:
    """Where one trainer runs: a host, and one job on it, or all jobs."""

    host: str
    job: str | None = None

    @property
    def name(self) -> str:
        """The name of its log."""
        return name_of(self.host, self.job)


def trainer_sites(experiment: Experiment) -> list[TrainerSite]:
    """Return a site for every host that runs a task, or for every host and job (``processes: job``)."""
    if experiment.processes == "job":
        return [TrainerSite(host, job.id) for job in experiment.jobs for host in job.hosts]
    hosts = {host for job in experiment.jobs for host in job.hosts}
    return [TrainerSite(host) for host in sorted(hosts, key=lambda host: int(host[1:]))]


class Linked(Protocol):
    """The fields of an experiment that the agents need."""

    @property
    def link_bps(self) -> float:
        """The rate of every host's link."""


class Planned(Linked, Protocol):
    """The fields of an experiment that the controller needs too."""

    @property
    def queues(self) -> int:
        """Queues of every port: one for each class, and one for all other traffic."""

    @property
    def period_seconds(self) -> float:
        """Seconds between two plans."""


@dataclass(frozen=True, slots=True)
class Agents:
    """The processes beside the controller: a reporter on every host, and the trainers."""

    emulation: Emulation
    folder: Path

    @property
    def experiment_file(self) -> Path:
        """The file from which the trainers read the experiment."""
        return self.folder / "experiment.json"

    def start_reporters(
        self, controller: ControllerProcess, experiment: Linked, nic: str = "plan", *, without: Collection[str] = ()
    ) -> list[ForkedProcess]:
        """Start an agent on every host. ``nic`` says what orders the host's NIC.

        Agents report over the management network. Hosts in ``without`` get none.
        """
        started = []
        for host in self.emulation.hosts:
            if host in without:
                continue
            token, jobs = self.folder / f"{host}.token", self.folder / "jobs.d" / host
            jobs.mkdir(parents=True, exist_ok=True)
            token.touch(mode=0o600)
            token.write_text(controller.host_token(host))
            command = ["--controller", URL, "--host", host, "--token-file", str(token)]
            command += [
                "--jobs-dir",
                str(jobs),
                "--progress-dir",
                str(self.folder / "progress" / host),
                "--discover",
                "",
            ]
            if nic != "none":
                command += ["--nic", nic, "--interface", f"{host}-eth0", "--rate-bps", f"{experiment.link_bps:.0f}"]
            started.append(self._start("reporter", TrainerSite(host), command))
        return started

    def start_trainers(self, experiment: Experiment, meeting: Meeting) -> dict[TrainerSite, ForkedProcess]:
        """One a site; they wait until the meeting is told when the experiment starts."""
        self.experiment_file.write_text(experiment.model_dump_json())
        # A job of the last class may wait as long as others are busy; that is no failure.
        patience = f"{experiment.limit_seconds:g}"
        common = ["--experiment", str(self.experiment_file), "--dir", str(self.folder), "--connect-seconds", patience]
        common += ["--meet", str(meeting.folder)]
        started = {}
        for site in trainer_sites(experiment):
            only = [] if site.job is None else ["--job", site.job]
            arguments = [*common, "--host", site.host, *only]
            started[site] = self._start("trainer", site, arguments)
        return started

    def log(self, program: Program, site: TrainerSite) -> Path:
        """Return the log of a process."""
        return self.folder / f"{program}s" / f"{site.name}.log"

    def _start(self, program: Program, site: TrainerSite, arguments: list[str]) -> ForkedProcess:
        log = self.log(program, site)
        log.parent.mkdir(parents=True, exist_ok=True)
        return self.emulation.fork_server.start(
            program,
            arguments,
            namespaces_of=self.emulation.pid(site.host),
            log=log,
            folder=self.folder,
            cgroup=None if site.job is None else self.emulation.cgroup(site.job),
        )


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
    with nic_queues.as_wanted(emulation, experiment):
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
            _check(trainers, agents)
            tuner.check()

        names = frozenset(site.name for site in trainers) | tuner.names
        run.wait_until_ready(names, check, seconds=_TRAINERS_SECONDS, who="the trainers of")
        start = run.begin()
        use = _wait_for_jobs(
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
        cpu_idle_share=1.0 - use.busy_share,
        seconds=seconds,
        links=use.links,
        studies=read_studies(experiment, results, start),
    )


def wait_for_hosts(controller: ControllerProcess, agents: Agents) -> None:
    """Wait until every host's agent has reported. Raises LabError."""
    silent: list[str] = []

    def all_report() -> bool:
        agents.emulation.fork_server.check()
        silent[:] = [host.name for host in controller.status().hosts if not host.alive]
        return not silent

    if not controller.wait(all_report, _REPORTERS_SECONDS):
        log = agents.log("reporter", TrainerSite(silent[0]))
        raise LabError(f"no report from {', '.join(silent)}; {silent[0]}'s reporter says: {last_line(log)}")


def _wait_for_jobs(
    controller: ControllerProcess,
    experiment: Experiment,
    *,
    trainers: Mapping[TrainerSite, ForkedProcess],
    agents: Agents,
    tuner: TunerProcess,
    start: float,
    tick: Tick,
) -> Use:
    """Wait until the jobs have ended. Returns what was used from the start on."""
    wanted = {job.id for job in experiment.jobs if job.trial is None}
    pids = {host: agents.emulation.pid(host) for host in agents.emulation.hosts}
    meter: Meter | None = None
    while True:
        done = {job.id for job in experiment.jobs if done_file(agents.folder, job.id).exists()}
        seconds = time.time() - start
        if meter is None and seconds >= 0:
            meter = Meter(pids, experiment.link_bps)
        tick(len(done), max(0.0, seconds))
        is_over = wanted <= done and all_ended(experiment, agents.folder)
        if is_over or seconds > experiment.limit_seconds + _GRACE_SECONDS:
            return meter.use() if meter is not None else Use(0.0, ())
        _alive = controller.pid
        _check(trainers, agents)
        tuner.check()
        time.sleep(0.5)


def _check(trainers: Mapping[TrainerSite, ForkedProcess], agents: Agents) -> None:
    """Raise LabError where the launcher or a trainer has ended by itself."""
    agents.emulation.fork_server.check()
    for site, trainer in trainers.items():
        if trainer.poll() not in {None, 0}:
            log = agents.log("trainer", site)
            raise LabError(f"the trainer of {site.name} ended with status {trainer.returncode}: {last_line(log)}")


def end(processes: Iterable[ForkedProcess], seconds: float = _STOP_SECONDS) -> None:
    """Send SIGTERM to all processes, then wait. A process that runs on after ``seconds`` is killed."""
    living = [process for process in processes if process.poll() is None]
    for process in living:
        process.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + seconds
    for process in living:
        try:
            process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(seconds)


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


def last_line(log: Path) -> str:
    """Return the last line of a process's log."""
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return lines[-1] if lines else "(nothing)"
