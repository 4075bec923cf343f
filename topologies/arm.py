"""One arm: an experiment under one policy, on a network that runs already.

Controller, reporters and trainers are started anew for every arm, the same for every policy, and stopped after.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from controller.wire import Status
from simulator.reports.targets import job_times
from simulator.workloads import curves
from topologies.controller_process import URL, ControllerProcess
from topologies.crew import Member, Program
from topologies.emulation import Emulation
from topologies.errors import LabError
from topologies.experiment import Experiment, JobPlan
from topologies.lab_result import ArmResult, Control, JobResult, PolicyChoice
from topologies.trainer.results import done_file, read_result
from topologies.trainer.start import Meeting, name_of

Tick = Callable[[int, float], None]
"""Takes the number of jobs done and the seconds since the experiment's start."""

START_SECONDS = 1.0
"""From telling the trainers when to start until all know it, with much to spare."""

_REPORTERS_SECONDS = 60.0
_TRAINERS_SECONDS = 60.0
_LAST_REPORTS_SECONDS = 3.0
_STOP_SECONDS = 10.0
_GRACE_SECONDS = 5.0
"""For trainers to stop by themselves at the limit, and to write what they have."""


@dataclass(frozen=True, slots=True)
class Place:
    """What one trainer serves: a host, and there one job, or all of them."""

    host: str
    job: str | None = None

    @property
    def name(self) -> str:
        """What its log is called."""
        return name_of(self.host, self.job)


def places(experiment: Experiment) -> list[Place]:
    """One trainer for every host with a part in a job, or for every such part."""
    if experiment.processes == "job":
        return [Place(host, job.id) for job in experiment.jobs for host in job.hosts]
    hosts = {host for job in experiment.jobs for host in job.hosts}
    return [Place(host) for host in sorted(hosts, key=lambda host: int(host[1:]))]


@dataclass(frozen=True, slots=True)
class Agents:
    """The processes beside the controller: a reporter on every host, and the trainers."""

    emulation: Emulation
    folder: Path

    def start_reporters(self, controller: ControllerProcess, experiment: Experiment) -> list[Member]:
        """One a host, over the management network; each manages its host's NIC."""
        started = []
        for host in self.emulation.hosts:
            token, jobs = self.folder / f"{host}.token", self.folder / "jobs.d" / host
            jobs.mkdir(parents=True, exist_ok=True)
            token.touch(mode=0o600)
            token.write_text(controller.host_token(host))
            command = ["--controller", URL, "--host", host, "--token-file", str(token)]
            command += ["--jobs-dir", str(jobs), "--progress-dir", str(self.folder / "progress" / host)]
            command += ["--interface", f"{host}-eth0"]
            command += ["--rate-bps", f"{experiment.link_bps:.0f}"]
            started.append(self._start("reporter", Place(host), command))
        return started

    def start_trainers(self, experiment: Experiment, meeting: Meeting) -> dict[Place, Member]:
        """One a place; they wait until the meeting is told when the experiment starts."""
        file = self.folder / "experiment.json"
        file.write_text(experiment.model_dump_json())
        # A job of the last class may wait for as long as others are busy, but it is not broken.
        patience = f"{experiment.limit_seconds:g}"
        common = ["--experiment", str(file), "--dir", str(self.folder), "--connect-seconds", patience]
        common += ["--meet", str(meeting.folder)]
        started = {}
        for place in places(experiment):
            only = [] if place.job is None else ["--job", place.job]
            arguments = [*common, "--host", place.host, *only]
            started[place] = self._start("trainer", place, arguments)
        return started

    def log(self, program: Program, place: Place) -> Path:
        """Where a process writes."""
        return self.folder / f"{program}s" / f"{place.name}.log"

    def _start(self, program: Program, place: Place, arguments: list[str]) -> Member:
        log = self.log(program, place)
        log.parent.mkdir(parents=True, exist_ok=True)
        return self.emulation.crew.start(
            program,
            arguments,
            namespaces_of=self.emulation.pid(place.host),
            log=log,
            folder=self.folder,
            cgroup=None if place.job is None else self.emulation.cgroup(place.job),
        )


def run_arm(
    emulation: Emulation,
    experiment: Experiment,
    choice: PolicyChoice,
    *,
    results: Path,
    tick: Tick = lambda _done, _seconds: None,
) -> ArmResult:
    """Run it to the end of its last job, or to ``limit_seconds``; logs go to ``results``. Raises LabError."""
    folder = emulation.folder / "arm"
    folder.mkdir()
    controller = ControllerProcess(
        emulation,
        folder / "controller",
        choice.policy,
        options=choice.options,
        classes=experiment.queues - 1,
        period_seconds=experiment.period_seconds,
    )
    agents = Agents(emulation, folder)
    reporters: list[Member] = []
    trainers: dict[Place, Member] = {}
    try:
        controller.start()
        reporters = agents.start_reporters(controller, experiment)
        controller.wait_ready()
        _wait_for_hosts(controller, agents)
        before = controller.status()
        meeting = Meeting(folder / "meeting")
        meeting.folder.mkdir()
        trainers = agents.start_trainers(experiment, meeting)
        _wait_for_trainers(trainers, agents, meeting)
        start = time.time() + START_SECONDS
        meeting.begin(start)
        busy = _wait_for_jobs(controller, experiment, trainers=trainers, agents=agents, start=start, tick=tick)
        seconds = time.time() - start
        _end(trainers.values())
        # The last reports of ended jobs are on their way.
        controller.wait(lambda: controller.status().jobs == 0, _LAST_REPORTS_SECONDS)
        after = controller.status()
        (folder / "controller" / "metrics.txt").write_text(controller.metrics())
    except BaseException:
        # What went wrong counts, not what fails on the way out because of it.
        with contextlib.suppress(LabError, OSError, subprocess.TimeoutExpired):
            _close([*trainers.values(), *reporters], controller, folder, results)
        raise
    _close([*trainers.values(), *reporters], controller, folder, results)
    return ArmResult(
        experiment=experiment.name,
        seed=experiment.seed,
        policy=choice.name,
        jobs={job.id: _job_result(job, results, experiment.limit_seconds) for job in experiment.jobs},
        control=_control(after),
        bytes_by_class=_bytes_by_class(before, after, experiment.queues - 1),
        cpu_idle_share=1.0 - busy,
        seconds=seconds,
    )


def _wait_for_hosts(controller: ControllerProcess, agents: Agents) -> None:
    silent: list[str] = []

    def all_report() -> bool:
        agents.emulation.crew.check()
        silent[:] = [host.name for host in controller.status().hosts if not host.alive]
        return not silent

    if not controller.wait(all_report, _REPORTERS_SECONDS):
        log = agents.log("reporter", Place(silent[0]))
        raise LabError(f"no report from {', '.join(silent)}; {silent[0]}'s reporter says: {_last_line(log)}")


def _wait_for_trainers(trainers: Mapping[Place, Member], agents: Agents, meeting: Meeting) -> None:
    """Until all are ready. Raises LabError."""
    names = frozenset(place.name for place in trainers)
    deadline = time.monotonic() + _TRAINERS_SECONDS
    while missing := meeting.missing(names):
        _check(trainers, agents)
        if time.monotonic() > deadline:
            raise LabError(f"the trainers of {', '.join(sorted(missing))} are not ready to start")
        time.sleep(0.1)


def _wait_for_jobs(
    controller: ControllerProcess,
    experiment: Experiment,
    *,
    trainers: Mapping[Place, Member],
    agents: Agents,
    start: float,
    tick: Tick,
) -> float:
    """Wait for the jobs' ends; the busy share of the processors from the start on."""
    wanted = {job.id for job in experiment.jobs}
    meter: CpuMeter | None = None
    while True:
        done = {job for job in wanted if done_file(agents.folder, job).exists()}
        seconds = time.time() - start
        if meter is None and seconds >= 0:
            meter = CpuMeter()
        tick(len(done), max(0.0, seconds))
        if done == wanted or seconds > experiment.limit_seconds + _GRACE_SECONDS:
            return meter.busy_share() if meter is not None else 0.0
        _alive = controller.pid
        _check(trainers, agents)
        time.sleep(0.5)


def _check(trainers: Mapping[Place, Member], agents: Agents) -> None:
    """Raise LabError where the launcher or a trainer has ended by itself."""
    agents.emulation.crew.check()
    for place, trainer in trainers.items():
        if trainer.poll() not in {None, 0}:
            log = agents.log("trainer", place)
            raise LabError(f"the trainer of {place.name} ended with status {trainer.returncode}: {_last_line(log)}")


class CpuMeter:
    """How busy the processors are, from when it was made."""

    def __init__(self) -> None:
        self._before = self._read()

    def busy_share(self) -> float:
        """Share of the time of all processors that was not idle; 0 right after the start."""
        idle, total = (now - then for now, then in zip(self._read(), self._before, strict=True))
        return 1.0 - idle / total if total else 0.0

    @staticmethod
    def _read() -> tuple[int, int]:
        numbers = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        return numbers[3] + numbers[4], sum(numbers)


def _job_result(job: JobPlan, results: Path, limit_seconds: float) -> JobResult:
    """The job by its trainer's own clock. Raises LabError where it failed; without a result it is censored."""
    path = done_file(results, job.id)
    if not path.exists():
        watched = max(0.0, limit_seconds - job.arrival)
        return JobResult(None, None, None, censored=True, watched_seconds=watched, history=())
    try:
        found = read_result(path)
    except ValueError as error:
        raise LabError(str(error)) from error
    if found.failed is not None:
        raise LabError(f"job {job.id} failed: {found.failed}; its log is {results / 'logs' / job.id}.log")
    times = job_times(found.history, curves.replay(curves.load(job.curve), job.iterations), found.jct)
    return JobResult(times.t90, times.t95, times.jct, times.censored, found.ended, found.history)


def _control(status: Status) -> Control:
    return Control(
        report_to_rule_count=status.report_to_rule.count,
        report_to_rule_p50=status.report_to_rule.p50_seconds,
        report_to_rule_p99=status.report_to_rule.p99_seconds,
        plans=status.plans,
        flow_mods=status.flow_mods,
        gate_renewals=status.gate_renewals,
    )


def _bytes_by_class(before: Status, after: Status, classes: int) -> tuple[int, ...]:
    def total(status: Status, name: str) -> int:
        return sum(switch.get(name, 0) for switch in status.bytes_by_class.values())

    names = [*(str(k) for k in range(classes)), "other"]
    return tuple(max(0, total(after, name) - total(before, name)) for name in names)


def _end(processes: Iterable[Member]) -> None:
    """Ask all to end at once, then wait for them; what does not is killed."""
    living = [process for process in processes if process.poll() is None]
    for process in living:
        process.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + _STOP_SECONDS
    for process in living:
        try:
            process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(_STOP_SECONDS)


def _close(agents: Iterable[Member], controller: ControllerProcess, folder: Path, results: Path) -> None:
    """End the arm's processes, and keep what they wrote."""
    try:
        _end(agents)
    finally:
        controller.stop()
        _keep(folder, results)


def _keep(folder: Path, results: Path) -> None:
    """Move what an arm has written from memory to the results, without the secrets. Raises LabError."""
    shutil.rmtree(results, ignore_errors=True)
    ignored = shutil.ignore_patterns("*.token", "controller.yaml", "journal.sqlite*")
    try:
        shutil.copytree(folder, results, ignore=ignored)
    except shutil.Error as error:
        source, target, reason = error.args[0][0]
        raise LabError(f"cannot copy {source} to {target}: {reason}") from error
    shutil.rmtree(folder)


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return lines[-1] if lines else "(nothing)"
