"""Found jobs from the process to the controller: the agent as a process, and the follower in between."""

from __future__ import annotations

import json
import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.wire.parts import PartSpec
from evaluation.bench.support.hosts.reporter_server import ReporterServer
from evaluation.bench.support.waiting import wait_until
from host_reporter.jobs.found.ids import owner
from host_reporter.options import DiscoverRule, OptionsError, read_options
from tests.support.agent.followed_jobs import World
from tests.support.agent.found import Finding
from tests.support.agent.started import end, started, unique
from tests.support.paths import ROOT

OWN = owner(os.getuid(), lambda user: pwd.getpwuid(user).pw_name)


class Agent:
    """A host-reporter for h1 that finds jobs."""

    def __init__(self, folder: Path) -> None:
        self.server = ReporterServer()
        self.server.set_plan({})
        self.progress = folder / "progress"
        self.jobs = folder / "jobs.d"
        for made in (self.progress, self.jobs):
            made.mkdir()
        self._output = folder / "agent.log"
        self._command = [
            sys.executable, "-m", "host_reporter.agent", "--controller", self.server.url, "--host", "h1",
            "--no-marking", "--jobs-dir", str(self.jobs), "--progress-dir", str(self.progress), "--period", "0.3",
        ]  # fmt: skip
        self.start()

    def start(self) -> None:
        with self._output.open("ab") as output:
            self.process = subprocess.Popen(self._command, stdout=output, stderr=output)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)

    @property
    def said(self) -> str:
        return self._output.read_text()


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    created = Agent(tmp_path)
    yield created
    created.process.kill()
    created.process.wait()
    created.server.stop()


def test_a_job_is_registered_followed_and_ended_without_any_file(agent: Agent, tmp_path: Path) -> None:
    name = unique()
    job = f"{OWN}.{name}"
    ranks = {"TRAINYARD_JOB": name, "RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}
    log = tmp_path / "train.log"
    log.write_text('{"iteration": 1, "metric": 0.5}\n')
    with log.open("ab") as out, started(ranks, out=out) as process:
        wait_until(lambda: job in agent.server.jobs, what=agent.said)
        spec = agent.server.jobs[job]
        assert isinstance(spec, PartSpec)
        assert (spec.launcher, spec.is_first, spec.world_size) == ("trainyard", True, 2)
        assert agent.server.part_hosts[job] == "h1"
        # The helper's file counts before what it prints.
        (agent.progress / f"{name}.jsonl").write_text('{"iteration": 7}\n')
        wait_until(lambda: 7.0 in agent.server.points.get(job, ()))
        end(process)
        wait_until(lambda: job in agent.server.ended, what="its end is reported")


def metric_of(agent: Agent, job: str) -> str | None:
    metric = agent.server.jobs[job].metric
    return metric.name if metric is not None else None


def test_what_a_job_prints_is_understood_and_described(agent: Agent, tmp_path: Path) -> None:
    run = unique()
    job = f"{OWN}.torchrun-{run}"
    ranks = {"TORCHELASTIC_RUN_ID": run, "RANK": "0", "WORLD_SIZE": "8", "MASTER_ADDR": "h1", "MASTER_PORT": "1"}
    log = tmp_path / "train.log"
    log.write_text((ROOT / "tests/data/logs/megatron-lm.log").read_text())
    with log.open("ab") as out, started(ranks, out=out):
        wait_until(lambda: agent.server.points.get(job), what=agent.said)
        wait_until(lambda: metric_of(agent, job) == "validation loss", what="the part is registered anew")
        spec = agent.server.jobs[job]
        assert isinstance(spec, PartSpec) and spec.metric is not None
        assert (spec.metric.direction, spec.iterations) == ("min", 500000)


def test_a_job_that_goes_on_over_a_restart_of_the_agent_is_not_ended(agent: Agent) -> None:
    name = unique()
    job = f"{OWN}.{name}"
    with started({"TRAINYARD_JOB": name}):
        wait_until(lambda: job in agent.server.jobs)
        agent.stop()
        puts = agent.server.puts.count(job)
        agent.start()
        wait_until(lambda: agent.server.puts.count(job) > puts)
        assert job not in agent.server.ended


@pytest.mark.parametrize("status", [404, 405])
def test_an_older_controller_is_named_once(tmp_path: Path, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [unique(), unique()]
    monkeypatch.setattr(
        ReporterServer, "_put", lambda *_: (status, {"detail": "there is nothing at '/v1'; see /openapi.json"})
    )
    agent = Agent(tmp_path)
    try:
        with started({"TRAINYARD_JOB": names[0]}), started({"TRAINYARD_JOB": names[1]}):
            wait_until(lambda: "the controller is older" in agent.said)
            wait_until(lambda: names[1] in agent.said)
            assert agent.said.count("the controller is older") == 1
            assert agent.server.reports, "reports of other jobs go on"
    finally:
        agent.stop()
        agent.server.stop()


def test_a_part_that_is_refused_is_tried_again(agent: Agent) -> None:
    name = unique()
    job = f"{OWN}.{name}"
    agent.server.refuse[job] = 403
    with started({"TRAINYARD_JOB": name}):
        wait_until(lambda: f"job {job} is refused for now: {job} is refused" in agent.said)
        del agent.server.refuse[job]
        wait_until(lambda: job in agent.server.jobs)


def test_a_job_file_takes_a_found_job_over(agent: Agent) -> None:
    name = unique()
    with started({"TRAINYARD_JOB": name}):
        wait_until(lambda: f"{OWN}.{name}" in agent.server.jobs)
        (agent.jobs / f"{name}.json").write_text(json.dumps({"id": name, "spec": {}}))
        wait_until(lambda: name in agent.server.jobs and f"{OWN}.{name}" in agent.server.ended)


# The follower ------------------------------------------------------------------------------------------------------


def test_a_found_job_runs_whatever_its_file_says_of_an_earlier_run(tmp_path: Path) -> None:
    finding = Finding(tmp_path)
    name = unique()
    job = f"{OWN}.{name}"
    file = finding.progress / f"{name}.jsonl"
    file.write_text('{"iteration": 99}\n{"ended": true}\n')
    world = World(tmp_path, found=finding.found)
    with started({"TRAINYARD_JOB": name}):
        world.start()
        try:
            wait_until(lambda: job in world.receiver.specs)
            with file.open("a") as more:
                more.write('{"iteration": 1}\n')
            wait_until(lambda: world.receiver.points(job) == [1], what="only this run is reported")
            arrival = _arrival(world, job)
            with file.open("a") as more:
                more.write('{"ended": true}\n')
            wait_until(lambda: world.receiver.order(job)[-1] == "end")
            with file.open("a") as more:
                more.write('{"iteration": 1}\n')
            wait_until(lambda: world.receiver.order(job)[-1] == "add")
            assert _arrival(world, job) > arrival, "the same processes begin another run"
        finally:
            world.stop()


def _arrival(world: World, job: str) -> float:
    spec = world.receiver.specs[job][-1]
    assert isinstance(spec, PartSpec) and spec.arrival is not None
    return spec.arrival


# Options -----------------------------------------------------------------------------------------------------------


def test_which_launchers_jobs_are_found(tmp_path: Path) -> None:
    assert {launcher.name for launcher in read_options([], {}).launchers()} >= {"slurm", "kubernetes", "torchrun"}
    assert read_options(["--discover", ""], {}).launchers() == ()
    chosen = read_options(["--discover", "torchrun, slurm"], {}).launchers()
    assert [launcher.name for launcher in chosen] == ["torchrun", "slurm"]
    config = tmp_path / "agent.yaml"
    config.write_text(
        "host: h1\ndiscover:\n  - slurm\n  - {rule: queue, cgroup: /queue/*, user: root}\n"
        "  - {rule: sge, variable: JOB_ID}\n"
    )
    options = read_options(["--config", str(config)], {})
    assert [launcher.name for launcher in options.launchers()] == ["queue", "sge", "slurm"]
    assert options.discover is not None and isinstance(options.discover[1], DiscoverRule)
    config.write_text("discover: []\n")
    assert read_options(["--config", str(config)], {}).launchers() == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[slrum]", r"agent.yaml:2: discover: unknown launcher 'slrum'; there are: .*slurm"),
        ("[{rule: slurm, variable: X}]", "rule slurm: a launcher has this name"),
        ("[{rule: k8s, variable: X}]", "rule k8s: a launcher has this name"),
        ("[{rule: q}]", "a rule needs cgroup, user or variable"),
        ("[{rule: q, user: nobody-here}]", "there is no user nobody-here here"),
        ("[{rule: q, cgroup: queue}]", "cgroup"),
        ("[{rule: q, cgroup: /}]", "cgroup"),
        ("[{rule: q, variable: 'A B'}]", "variable"),
        ("[{rule: q, variable: A, colour: red}]", "colour"),
        ("slurm", "discover"),
    ],
)
def test_a_wrong_list_gets_one_line_with_what_would_be_right(tmp_path: Path, text: str, words: str) -> None:
    config = tmp_path / "agent.yaml"
    config.write_text(f"host: h1\ndiscover: {text}\n")
    with pytest.raises(OptionsError, match=words):
        read_options(["--config", str(config)], {})
