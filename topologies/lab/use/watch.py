"""Watches the jobs of an arm until the last has ended, and measures meanwhile what the arm uses."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from topologies.errors import LabError
from topologies.experiments.experiment import Experiment
from topologies.fork_server import ForkedProcess
from topologies.lab.agents import Agents, TrainerSite, last_line
from topologies.lab.controller_process import ControllerProcess
from topologies.lab.use.meters import Meter, Use, links_of
from topologies.lab.use.tcp_use import TcpMeter, TcpUse
from topologies.studies.process import TunerProcess, all_ended
from topologies.trainer.results import done_file, first_failure

Tick = Callable[[int, float], None]
"""Takes the number of jobs done and the seconds since the experiment's start."""

GRACE_SECONDS = 5.0
"""At the limit trainers have so many seconds to stop by themselves and to write their results."""

_POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Used:
    """What an arm has used: processors and links, and what TCP did on each host."""

    use: Use
    tcp: tuple[TcpUse, ...]


class _Meters:
    """The meters of an arm, from the experiment's start on."""

    def __init__(self, agents: Agents, experiment: Experiment) -> None:
        emulation = agents.emulation
        self._meter = Meter(links_of(emulation), experiment.link_bps)
        self._tcp = TcpMeter({host: emulation.pid(host) for host in emulation.hosts})

    def sample(self) -> None:
        """Take a sample, if it is time."""
        self._meter.sample()

    def used(self) -> Used:
        """Returns what was used so far."""
        return Used(self._meter.use(), self._tcp.use())


def wait_for_jobs(
    controller: ControllerProcess,
    experiment: Experiment,
    *,
    trainers: Mapping[TrainerSite, ForkedProcess],
    agents: Agents,
    tuner: TunerProcess,
    start: float,
    tick: Tick,
) -> Used:
    """Wait until the jobs have ended. Returns what was used from the start on. Raises LabError, OSError."""
    wanted = {job.id for job in experiment.jobs if job.trial is None}
    meters: _Meters | None = None
    while True:
        done = {job.id for job in experiment.jobs if done_file(agents.folder, job.id).exists()}
        seconds = time.time() - start
        if meters is not None:
            meters.sample()
        elif seconds >= 0:
            meters = _Meters(agents, experiment)
        tick(len(done), max(0.0, seconds))
        is_over = wanted <= done and all_ended(experiment, agents.folder)
        if is_over or seconds > experiment.limit_seconds + GRACE_SECONDS:
            return meters.used() if meters is not None else Used(Use(0.0, ()), ())
        _alive = controller.pid
        check(trainers, agents)
        # At the limit trainers stop one by one, and who stops last may miss a peer.
        if seconds < experiment.limit_seconds:
            check_jobs(agents)
        tuner.check()
        time.sleep(_POLL_SECONDS)


def check(trainers: Mapping[TrainerSite, ForkedProcess], agents: Agents) -> None:
    """Raise LabError where the launcher or a trainer has ended by itself."""
    agents.emulation.fork_server.check()
    for site, trainer in trainers.items():
        if trainer.poll() not in {None, 0}:
            log = agents.log("trainer", site)
            raise LabError(f"the trainer of {site.name} ended with status {trainer.returncode}: {last_line(log)}")


def check_jobs(agents: Agents) -> None:
    """Raise LabError where a job has failed on a host."""
    if (failure := first_failure(agents.folder)) is not None:
        raise LabError(f"job {failure}")
