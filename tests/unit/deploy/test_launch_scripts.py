"""The scripts that hand a job its DSCP at its launch, run by a real shell beside the agent's files."""

from __future__ import annotations

import os
import pwd
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from controller.job_environment import lines, variables
from host_reporter.environment.folder import Folder
from host_reporter.environment.job_files import READY
from tests.support.launchers.scripts import TASK_PROLOG, WITH_ENVIRONMENT, copy

VALUES = variables(43, 63)
TEXT = "".join(f"{line}\n" for line in lines(VALUES))
PATH = "/usr/bin:/bin"


class Ran(NamedTuple):
    """What a launch has given the task: its variables, what it says, and how long it took."""

    given: dict[str, str]
    said: str
    seconds: float


Launch = Callable[..., Ran]


def launched(command: list[str], environment: dict[str, str]) -> tuple[subprocess.CompletedProcess[str], float]:
    began = time.monotonic()
    variables = {"PATH": PATH, **environment}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=60)
    return done, time.monotonic() - began


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """The folder of an agent that is there."""
    created = Folder(tmp_path / "environment")
    created.write(READY, "")
    return created


@pytest.fixture(params=["with-environment", "task-prolog"])
def launch(request: pytest.FixtureRequest, folder: Folder, tmp_path: Path) -> Iterator[Launch]:
    """Launches a task of job slurm-7 with either script."""

    def with_environment(seconds: int = 10, **environment: str) -> Ran:
        script = copy(WITH_ENVIRONMENT, tmp_path, folder.path, seconds)
        done, took = launched([str(script), "slurm-7", "env"], environment)
        assert done.returncode == 0
        return Ran(dict(line.split("=", 1) for line in done.stdout.splitlines()), done.stderr, took)

    def task_prolog(seconds: int = 10, **environment: str) -> Ran:
        script = copy(TASK_PROLOG, tmp_path, folder.path, seconds)
        done, took = launched([str(script)], {"SLURM_JOB_ID": "7", "SLURM_LOCALID": "0", **environment})
        assert (done.returncode, done.stderr) == (0, "")
        told = [line.partition(" ") for line in done.stdout.splitlines()]
        given = dict(text.split("=", 1) for verb, _, text in told if verb == "export")
        assert given.pop("TRAINYARD_PROGRESS_DIR") == "/run/trainyard/progress"
        return Ran(given, "".join(f"{text}\n" for verb, _, text in told if verb == "print"), took)

    yield {"with-environment": with_environment, "task-prolog": task_prolog}[request.param]


def of_job(ran: Ran) -> dict[str, str]:
    """The variables that a job's file may set."""
    return {name: value for name, value in ran.given.items() if name not in ("PATH", "PWD", "_", "SHLVL", "OLDPWD")}


def test_the_task_gets_each_variable(launch: Launch, folder: Folder) -> None:
    folder.write("slurm-7.env", TEXT)
    ran = launch()
    assert of_job(ran) == {name: str(value) for name, value in VALUES.items()}
    assert ran.said == ""


def test_the_task_waits_for_the_agent_to_find_the_job(launch: Launch, folder: Folder) -> None:
    threading.Timer(1.0, folder.write, ("slurm-7.env", TEXT)).start()
    ran = launch()
    assert ran.given["NCCL_IB_TC"] == "172"
    assert ran.said == ""


def test_a_task_whose_dscp_does_not_come_starts_without_it_and_says_so(launch: Launch, folder: Folder) -> None:
    folder.write("slurm-77.env", TEXT)
    ran = launch(seconds=1)
    assert of_job(ran) == {}
    assert "starts without its DSCP" in ran.said and f"{folder.path}/slurm-7.env after 1 s" in ran.said
    assert ran.seconds >= 0.9


def test_nobody_waits_where_no_agent_gives_jobs_such_files(launch: Launch, folder: Folder) -> None:
    ready = folder.path / READY
    os.utime(ready, (time.time() - 300,) * 2)
    old = launch(seconds=50)
    ready.unlink()
    without = launch(seconds=50)
    for ran in (old, without):
        assert (of_job(ran), ran.said) == ({}, "")
        assert ran.seconds < 25


def test_an_older_value_of_the_users_gives_way(launch: Launch, folder: Folder) -> None:
    folder.write("slurm-7.env", TEXT)
    assert launch(NCCL_IB_TC="106").given["NCCL_IB_TC"] == "172"


def test_only_known_names_and_digits_are_taken(launch: Launch, folder: Folder, tmp_path: Path) -> None:
    touch = f"touch {tmp_path}/ran"
    bad = ["PATH=1", "LD_PRELOAD=/x.so", f"NCCL_IB_TC=$({touch})", f"NCCL_DEBUG=1;{touch}", "UCX_IB_SL=4 5"]
    folder.write("slurm-7.env", "\n".join([*bad, "NCCL_IB_FIFO_TC=252\n"]))
    assert of_job(launch()) == {"NCCL_IB_FIFO_TC": "252"}
    assert not (tmp_path / "ran").exists()


def test_the_command_is_run_as_it_is_and_its_status_is_the_scripts(folder: Folder, tmp_path: Path) -> None:
    script = copy(WITH_ENVIRONMENT, tmp_path, folder.path)
    folder.write("j.env", TEXT)
    done, _ = launched([str(script), "j", "sh", "-c", 'printf "%s|" "$@"; exit 7', "sh", "a b", "$HOME", "*"], {})
    assert (done.returncode, done.stdout) == (7, "a b|$HOME|*|")


def test_a_container_that_has_busybox_alone_is_enough(folder: Folder, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    subprocess.run(["busybox", "--install", "-s", str(tools)], check=True)
    script = copy(WITH_ENVIRONMENT, tmp_path, folder.path)
    threading.Timer(1.0, folder.write, ("j.env", TEXT)).start()
    done, _ = launched([f"{tools}/sh", str(script), "j", "env"], {"PATH": str(tools)})
    assert (done.returncode, done.stderr) == (0, "")
    assert set(TEXT.splitlines()) <= set(done.stdout.splitlines())


@pytest.mark.parametrize("arguments", [(), ("job",)])
def test_a_command_has_to_be_named(folder: Folder, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done, _ = launched([str(copy(WITH_ENVIRONMENT, tmp_path, folder.path)), *arguments], {})
    assert (done.returncode, done.stderr) == (2, "usage: with-environment JOB COMMAND...\n")


@pytest.mark.parametrize(
    ("file", "environment"),
    [
        ("OWNER.slurm-7", {}),
        ("OWNER.slurm-5", {"SLURM_JOB_ID_HET_GROUP_0": "5"}),
        ("OWNER.resnet50", {"TRAINYARD_JOB": "resnet50"}),
        ("bert", {"TRAINYARD_ENVIRONMENT": "bert"}),
    ],
)
def test_a_job_without_a_cgroup_or_with_another_name_is_found(
    folder: Folder, tmp_path: Path, file: str, environment: dict[str, str]
) -> None:
    script = copy(TASK_PROLOG, tmp_path, folder.path, 0)
    user = os.getuid()
    for owner in (pwd.getpwuid(user).pw_name, str(user)):
        name = f"{file.replace('OWNER', owner)}.env"
        folder.write(name, TEXT)
        done, _ = launched([str(script)], {"SLURM_JOB_ID": "7", **environment})
        assert "export NCCL_IB_TC=172\n" in done.stdout
        (folder.path / name).unlink()


def test_a_name_leads_to_no_other_folder(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "other.env").write_text(TEXT)
    script = copy(TASK_PROLOG, tmp_path, folder.path, 0)
    for name in ("../other", "*", "-x"):
        done, _ = launched([str(script)], {"SLURM_JOB_ID": "7", "TRAINYARD_ENVIRONMENT": name})
        assert "NCCL" not in done.stdout


def test_one_task_of_a_node_says_that_the_dscp_did_not_come(folder: Folder, tmp_path: Path) -> None:
    script = copy(TASK_PROLOG, tmp_path, folder.path, 0)
    said = [launched([str(script)], {"SLURM_JOB_ID": "7", "SLURM_LOCALID": str(i)})[0].stdout for i in range(3)]
    assert [text.count("print ") for text in said] == [1, 0, 0]
