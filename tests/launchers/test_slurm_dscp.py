"""A job of a real Slurm is told its DSCP by the task prolog, from the controller through the agent's file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.job_environment import lines, variables
from evaluation.bench.support.waiting import wait_until
from tests.support.launchers.jobs.found_jobs import FoundJobs
from tests.support.launchers.machine.users import User, somebody
from tests.support.launchers.slurm.cluster import SlurmCluster
from tests.support.launchers.slurm.scripts import WAIT_SECONDS

SHOWN = "grep -zE '^(TRAINYARD_DSCP|NCCL_IB_|UCX_IB_|NVSHMEM_IB_)' /proc/self/environ | tr '\\0' '\\n'"


@pytest.fixture
def found(slurm: SlurmCluster, place: Path) -> Iterator[FoundJobs]:
    """A controller that gives each job a DSCP, and the agent of this host."""
    progress = place / "progress"
    progress.mkdir()
    with FoundJobs(place, progress, environment=slurm.environment_files, identity="dscp") as running:
        wait_until((slurm.environment_files / "ready").exists, 60, what="the agent is there")
        yield running
    # The cluster's later jobs wait for no agent.
    (slurm.environment_files / "ready").unlink()


def submitted(slurm: SlurmCluster, user: User, folder: Path, body: str) -> int:
    """Give Slurm a script whose output is in the file ``out`` of the folder. Returns the job's number."""
    script = user.folder(folder) / "job.sh"
    script.write_text(f"#!/bin/bash\n{body}\n")
    return slurm.submit(script, "--nodes=2", "--output=out", user=user, folder=folder)


def test_the_script_and_its_tasks_have_the_variables_of_the_job(
    slurm: SlurmCluster, found: FoundJobs, place: Path
) -> None:
    home = place / "home"
    number = submitted(
        slurm, somebody(), home, f'{SHOWN} >script\nsrun sh -c "{SHOWN}"\nuntil [ -e go ]; do sleep 0.1; done'
    )
    name = f"slurm-{number}"
    dscp = found.wait_for(name, state="running")["dscp"]
    wanted = sorted(lines(variables(dscp, 63)))
    wait_until(
        lambda: (home / "out").exists() and len((home / "out").read_text().splitlines()) >= 10, 60, what="two tasks"
    )
    assert sorted((home / "script").read_text().splitlines()) == wanted
    assert sorted((home / "out").read_text().splitlines()) == sorted(wanted * 2)
    assert (slurm.environment_files / f"{name}.env").exists()
    (home / "go").touch()
    slurm.wait(number)
    wait_until(lambda: not (slurm.environment_files / f"{name}.env").exists(), 60, what="the file goes with the job")


def test_a_job_that_no_agent_finds_starts_without_them_and_its_output_says_so(slurm: SlurmCluster, place: Path) -> None:
    slurm.environment_files.mkdir(mode=0o711, exist_ok=True)
    ready = slurm.environment_files / "ready"
    ready.touch()
    home = place / "home"
    number = submitted(slurm, somebody(), home, "echo it runs; env | grep -c '^NCCL_IB_TC='")
    slurm.wait(number)
    ready.unlink()
    said, *printed = (home / "out").read_text().splitlines()
    assert said.startswith("trainyard: the job starts without its DSCP on ")
    assert said.endswith(f"there is no {slurm.environment_files}/slurm-{number}.env after {WAIT_SECONDS} s")
    assert printed == ["it runs", "0"]
