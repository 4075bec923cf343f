"""One arm of real trainings: all ranks of all jobs on their hosts under one policy, by the real controller and agents.

Ranks are started and ready before the measured time begins. What a job did is read from the progress file that the
callback wrote for the agent; no part of the training reports to the lab.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from evaluation.real.history import History, read_history, times
from evaluation.real.job import RankUse, RealJob
from evaluation.real.request import Found, RealArm, RealRequest
from topologies.emulation import Emulation
from topologies.errors import LabError
from topologies.fork_server import ForkedProcess, ForkServer
from topologies.lab.agents import last_line
from topologies.lab.arm import running
from topologies.lab.arm_values import bytes_by_class, control
from topologies.lab.controller_process import ControllerProcess
from topologies.lab.results import ArmResult, JobResult, PolicyChoice
from topologies.lab.use.meters import Meter, Use, links_of

FIRST_PORT = 29700
_READY_SECONDS = 300.0
_LOOK_SECONDS = 0.5
_FOUND_SECONDS = 5.0
"""Ask the controller this seldom for its jobs, because answers cost the processor that carries the network."""


def run_arm(
    emulation: Emulation, request: RealRequest, choice: PolicyChoice, fork_server: ForkServer, *, results: Path
) -> RealArm:
    """Run it to the end of its last job, or to ``limit_seconds``; logs go to ``results``. Raises LabError."""
    with running(emulation, request, choice, results) as run:
        folder = run.folder
        watch = _Watch(run.controller, request)
        ranks: dict[str, ForkedProcess] = {}
        for number, job in enumerate(request.jobs):
            started = _start(emulation, fork_server, folder, job, FIRST_PORT + number)
            run.jobs.extend(started.values())
            ranks |= started
        # Ready: started, connected and exchanged once.
        run.wait_until_ready(frozenset(ranks), lambda: _check(ranks, folder), seconds=_READY_SECONDS, who="the ranks")
        start = run.begin()
        use = _wait_for_ends(emulation, request, ranks, folder=folder, start=start, watch=watch)
        seconds = time.time() - start
        after = run.finish()
    arm = ArmResult(
        experiment=f"real-{request.seed}",
        seed=request.seed,
        policy=choice.name,
        jobs={job.id: _job_result(job, results, start, request.limit_seconds) for job in request.jobs},
        control=control(after),
        bytes_by_class=bytes_by_class(run.before, after, request.queues - 1),
        cpu_idle_share=1.0 - use.busy_share,
        seconds=seconds,
        links=use.links,
    )
    return RealArm(arm, _uses(results), watch.found())


def _start(
    emulation: Emulation, fork_server: ForkServer, folder: Path, job: RealJob, port: int
) -> dict[str, ForkedProcess]:
    """A job's ranks, a host each."""
    started = {}
    for rank, host in enumerate(job.hosts):
        name = f"{job.id}-{rank}"
        group = emulation.cgroup(f"{job.id}-{host}")
        arguments = [
            "--job", job.id, "--rank", str(rank), "--master", f"{emulation.address(job.hosts[0])}:{port}",
            "--hosts", ",".join(job.hosts), "--interface", f"{host}-eth0", "--cgroup", str(group),
            "--jobs-dir", str(folder / "jobs.d" / host), "--progress-dir", str(folder / "progress" / host),
            "--discover", "",
            "--meet", str(folder / "meeting"), "--arrival", str(job.arrival), "--iterations", str(job.iterations),
            "--out", str(folder / "ranks" / f"{name}.json"), "--", *job.script_arguments,
        ]  # fmt: skip
        log = _log(folder, name)
        log.parent.mkdir(exist_ok=True)
        started[name] = fork_server.start(
            "job", arguments, namespaces_of=emulation.pid(host), log=log, folder=folder, cgroup=group
        )
    return started


def _wait_for_ends(
    emulation: Emulation,
    request: RealRequest,
    ranks: Mapping[str, ForkedProcess],
    *,
    folder: Path,
    start: float,
    watch: _Watch,
) -> Use:
    """Until every rank has ended, or the time is over; what was used from the start on. Raises LabError."""
    links = links_of(emulation)
    time.sleep(max(0.0, start - time.time()))
    meter = Meter(links, request.link_bps)
    while any(rank.poll() is None for rank in ranks.values()) and time.time() - start < request.limit_seconds:
        emulation.fork_server.check()
        _check(ranks, folder)
        watch.look()
        time.sleep(_LOOK_SECONDS)
    _check(ranks, folder)
    return meter.use()


def _check(ranks: Mapping[str, ForkedProcess], folder: Path) -> None:
    """Raise LabError where a rank has failed."""
    for name, rank in ranks.items():
        if rank.poll() not in {None, 0}:
            raise LabError(f"{name} ended with status {rank.returncode}: {last_line(_log(folder, name))}")


def _log(folder: Path, name: str) -> Path:
    return folder / "logs" / f"{name}.log"


class _Watch:
    """Records now and then what the controller knows of the jobs."""

    def __init__(self, controller: ControllerProcess, request: RealRequest) -> None:
        self._controller = controller
        self._found = {job.id: Found(0, 0.0, ()) for job in request.jobs}
        self._due = 0.0

    def look(self) -> None:
        """Ask the controller, if it is time. Raises LabError."""
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + _FOUND_SECONDS
        for state in self._controller.call("GET", "/v1/jobs")["jobs"]:
            known = self._found.get(state["id"])
            if known is None or state["state"] != "running":
                continue
            measured = sum(pair["bytes"] for pair in state["measured_demand"])
            served = state["service_class"]
            self._found[state["id"]] = Found(
                max(known.connections, state["connections"]),
                measured or known.iteration_bytes,
                tuple(sorted({*known.classes, *(() if served is None else (served,))})),
            )

    def found(self) -> dict[str, Found]:
        """Return the most that was known of each job. Raises LabError where agents never found its connections."""
        if unseen := [job for job, found in self._found.items() if not found.connections]:
            raise LabError(f"no agent found a connection of {', '.join(unseen)}")
        return self._found


def _job_result(job: RealJob, results: Path, start: float, limit_seconds: float) -> JobResult:
    """Return a job's result from its callback's progress file. Raises LabError."""
    path = results / "progress" / job.hosts[0] / f"{job.id}.jsonl"
    try:
        history = read_history(path, start + job.arrival) if path.exists() else History((), None)
    except ValueError as error:
        raise LabError(f"{path}: {error}") from error
    done = history.ended is not None and bool(history.points) and history.iterations >= job.iterations
    return times(history, done=done, watched_seconds=max(0.0, limit_seconds - job.arrival))


def _uses(results: Path) -> tuple[RankUse, ...]:
    uses = []
    for path in sorted((results / "ranks").glob("*.json")):
        try:
            uses.append(TypeAdapter(RankUse).validate_json(path.read_bytes()))
        except ValidationError as error:
            raise LabError(f"{path}: no rank's result: {error}") from error
    return tuple(uses)
