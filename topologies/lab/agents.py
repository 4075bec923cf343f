"""The processes beside the controller: a reporter on every host, and the trainers; their logs, and their end."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from topologies.emulation import Emulation
from topologies.experiments.experiment import Experiment
from topologies.fork_server import ForkedProcess, Program
from topologies.lab.controller_process import URL, ControllerProcess
from topologies.trainer.start import Meeting, name_of

_NIC_OPTIONS: Mapping[str, Sequence[str]] = {
    "plan": ("--nic", "plan"),
    "tls-one": ("--nic", "tls-one"),
    "tls-rr": ("--nic", "tls-rr"),
    "tls-each": ("--nic", "tls-one", "--nic-bands", "each"),
}
"""The agent's options for what orders its host's NIC. Without them no agent does."""

STOP_SECONDS = 10.0
"""A process that is asked to end has so many seconds for it."""


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
        """Start an agent on every host. ``nic`` says what orders the host's NIC (see ``PolicyChoice``).

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
            command += ["--jobs-dir", str(jobs), "--progress-dir", str(self.folder / "progress" / host)]
            command += ["--environment-dir", str(self.folder / "environment" / host)]
            # The hosts share the machine's processes, so an agent would find those of all hosts.
            command += ["--discover", ""]
            if nic in _NIC_OPTIONS:
                command += [*_NIC_OPTIONS[nic], "--rate-bps", f"{experiment.link_bps:.0f}"]
                for plug in self.emulation.plugs(host):
                    command += ["--interface", plug.interface]
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


def end(processes: Iterable[ForkedProcess], seconds: float = STOP_SECONDS) -> None:
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


def last_line(log: Path) -> str:
    """Return the last line of a process's log."""
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return lines[-1] if lines else "(nothing)"
