"""The whole: a job is started as people start jobs, without any file; the controller knows it, and sees its end."""

from __future__ import annotations

import os
import secrets
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from tests.support.launchers.containers.daemonset import DaemonSetJobs
from tests.support.launchers.containers.podman import Containers
from tests.support.launchers.containers.running_pod import PODS, RunningPod
from tests.support.launchers.jobs.found_jobs import FoundJobs
from tests.support.launchers.jobs.training import HALF, ITERATIONS
from tests.support.launchers.machine.users import User, root, somebody
from tests.support.launchers.mpi import mpich, open_mpi
from tests.support.launchers.slurm.cluster import SlurmCluster
from tests.support.launchers.torchrun import torchrun
from tests.support.paths import SUPPORT

OWN = secrets.token_hex(3)
"""A part of names that no other test of this machine uses now."""
TRAINING = SUPPORT / "launchers" / "jobs" / "training.py"
PYTHON = "/usr/bin/python3"


@pytest.fixture(scope="module")
def found(network: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FoundJobs]:
    folder = tmp_path_factory.mktemp("found")
    progress = folder / "progress"
    progress.mkdir()
    progress.chmod(0o1777)
    with FoundJobs(folder, progress) as running:
        yield running


class Started:
    """A training in a user's folder. ``finish`` lets it write the second half of its log."""

    def __init__(self, folder: Path, user: User) -> None:
        self.user, self.home = user, user.folder(folder / "home")
        self._release = self.home / "release"
        self._processes: list[subprocess.Popen[bytes]] = []
        (self.home / "train.py").write_text(TRAINING.read_text())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        # One that a test has given up on ends, too.
        self.finish()
        for process in self._processes:
            process.wait(60)

    def program(self, *rank: str, python: str = PYTHON) -> tuple[str, ...]:
        """The command of one rank. ``rank``: the variable that tells it which it is."""
        return (python, str(self.home / "train.py"), str(self._release), *rank)

    def start(self, command: list[str], **variables: str) -> subprocess.Popen[bytes]:
        """Start a command as from a shell with its output in a file."""
        with (self.home / "train.log").open("wb") as log:
            process = subprocess.Popen(
                command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.home,
                env=os.environ | {"HOME": str(self.home)} | variables, **self.user.options,
            )  # fmt: skip
        self._processes.append(process)
        return process

    def finish(self) -> None:
        self._release.touch()


@pytest.fixture
def training(place: Path) -> Iterator[Started]:
    with Started(place, somebody()) as started:
        yield started


def follow_to_the_end(found: FoundJobs, job: str, training: Started, launcher: str, user: str | None = "games") -> None:
    """The job is found, its half is seen while it goes on, and then its end."""
    told = found.wait_for(job, iterations_done=HALF)
    assert told["state"] != "ended"
    assert told["spec"]["iterations"] == ITERATIONS
    assert (told["parts"]["h1"]["launcher"], told["spec"]["user"]) == (launcher, user)
    training.finish()
    assert found.wait_for(job, state="ended")["iterations_done"] == ITERATIONS


@pytest.mark.parametrize(
    ("name", "body", "ranks"),
    [
        ("one program", "{0}", 1),
        ("srun", "srun --label {0} SLURM_PROCID", 2),
        ("srun with a file", "srun --output=step.log {0} SLURM_PROCID", 2),
        ("Open MPI", "mpirun.openmpi --oversubscribe --tag-output {0} OMPI_COMM_WORLD_RANK", 2),
        ("MPICH", "mpiexec.mpich -prepend-rank {0} PMI_RANK", 2),
    ],
)
def test_a_batch_job_of_slurms(
    slurm: SlurmCluster, mpi: None, found: FoundJobs, training: Started, name: str, body: str, ranks: int
) -> None:
    script = training.home / "job.sh"
    script.write_text(f"#!/bin/bash\n{body.format(shlex.join(training.program()))}\n")
    number = slurm.submit(script, f"--ntasks={ranks}", "--nodes=1", user=training.user, folder=training.home)
    follow_to_the_end(found, f"slurm-{number}", training, "slurm")
    slurm.wait(number)


def test_each_task_of_an_array_is_a_job(slurm: SlurmCluster, found: FoundJobs, training: Started) -> None:
    script = training.home / "job.sh"
    script.write_text(f"#!/bin/bash\n{shlex.join(training.program())}\n")
    last = slurm.submit(script, "--array=1-2", user=training.user, folder=training.home)
    jobs = {f"slurm-{last}", f"slurm-{last + 1}"}
    for job in jobs:
        found.wait_for(job, iterations_done=HALF)
    training.finish()
    for job in jobs:
        found.wait_for(job, state="ended")


def test_ranks_of_mpirun_without_a_batch_system_are_one_job_of_their_user(
    mpi: None, found: FoundJobs, training: Started
) -> None:
    command = open_mpi(2, *training.program("OMPI_COMM_WORLD_RANK"), label=False)
    process = training.start(command, TRAINYARD_JOB=f"digits-{OWN}")
    follow_to_the_end(found, f"games.digits-{OWN}", training, "trainyard")
    assert process.wait(20) == 0


def test_ranks_of_mpich_without_a_batch_system_are_one_job_of_their_user(
    mpi: None, found: FoundJobs, training: Started
) -> None:
    process = training.start(mpich(2, *training.program("PMI_RANK")), TRAINYARD_JOB=f"mpich-{OWN}")
    follow_to_the_end(found, f"games.mpich-{OWN}", training, "trainyard")
    assert process.wait(20) == 0


@pytest.mark.usefixtures("torch")
def test_torchruns_ranks_are_one_job_by_its_run(found: FoundJobs, place: Path) -> None:
    options = (f"--rdzv-id=resnet50-{OWN}", "--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:29513", "--nnodes=1")
    with Started(place, root()) as training:
        process = training.start(torchrun(2, *training.program("RANK"), options=options))
        # A job of root's is nobody's in particular.
        follow_to_the_end(found, f"root.torchrun-resnet50-{OWN}", training, "torchrun", None)
        assert process.wait(60) == 0


def test_a_pod_is_found_by_its_group_and_read_from_its_log(
    found: FoundJobs, containers: Containers, place: Path
) -> None:
    with RunningPod(containers, found.logs / "pods", place, PODS["pod-cgroupfs"]) as pod:
        told = found.wait_for("k8s-team-a.resnet50", iterations_done=HALF)
        assert told["parts"]["h1"]["launcher"] == "kubernetes"
        pod.finish()
        found.wait_for("k8s-team-a.resnet50", state="ended", iterations_done=ITERATIONS)


def test_the_container_of_the_daemonset_may_do_what_the_agent_needs(
    network: None, containers: Containers, place: Path
) -> None:
    with (
        DaemonSetJobs(place, containers) as found,
        RunningPod(containers, found.logs / "pods", place, PODS["pod-containerd-master"]) as pod,
    ):
        found.wait_for("k8s-team-a.bert", iterations_done=HALF)
        pod.finish()
        found.wait_for("k8s-team-a.bert", iterations_done=ITERATIONS)
