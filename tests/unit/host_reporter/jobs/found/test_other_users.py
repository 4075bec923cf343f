"""Another user tries to steal, join and end a job: by its names, its files and its output.

Real processes of two users. Each has the same variables, so that only who they are tells them apart.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluation.bench.support.hosts.job_process import second_hierarchy
from host_reporter.jobs.found.job import FoundJob
from host_reporter.launchers.registry import available
from tests.support.agent.found import Finding
from tests.support.agent.started import end, started, unique

ALICE, MALLORY = 4242, 4343
"""Two users without names on this machine."""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="it takes root to be two users")


@pytest.fixture
def finding(tmp_path: Path) -> Finding:
    # Only root's own folders are above those that users may enter.
    for folder in (tmp_path, *tmp_path.parents):
        if folder != Path("/") and folder.stat().st_uid == 0:
            folder.chmod(folder.stat().st_mode | 0o711)
    return Finding(tmp_path)


def pids(job: FoundJob) -> set[int]:
    return {process.pid for process in job.processes.roots}


@pytest.fixture
def slurms_group() -> Iterator[tuple[str, Path]]:
    """A job's number, and its cgroup as slurmd makes it."""
    hierarchy = second_hierarchy()
    if hierarchy is None:
        pytest.skip("no cgroup of the second version can be made here")
    number = str(10**8 + secrets.randbelow(10**8))
    scope = hierarchy / f"t{number}_slurmstepd.scope"
    group = scope / f"job_{number}" / "step_0" / "user" / "task_0"
    group.mkdir(parents=True)
    yield number, group
    for folder in (group, *group.parents[: len(group.parts) - len(scope.parts)]):
        folder.rmdir()


def in_group(group: Path) -> tuple[str, ...]:
    return ("sh", "-c", f'echo 0 >"{group}/cgroup.procs" && exec setpriv --reuid {ALICE} --clear-groups "$@"', "sh")


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ({"TRAINYARD_JOB": "NAME"}, "NAME"),
        (
            {"TORCHELASTIC_RUN_ID": "NAME", "RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "h1", "MASTER_PORT": "1"},
            "torchrun-NAME",
        ),
        ({"SLURM_JOB_ID": "NAME", "SLURM_STEP_ID": "0", "SLURM_PROCID": "0"}, "slurm-NAME"),
        ({"SLURM_JOB_ID": "1", "SLURM_HET_SIZE": "2", "SLURM_JOB_ID_HET_GROUP_0": "NAME"}, "slurm-NAME"),
        ({"PBS_JOBID": "NAME"}, "pbs-NAME"),
        ({"RAY_JOB_ID": "NAME"}, "ray-NAME"),
        ({"PMIX_NAMESPACE": "NAME", "PMIX_RANK": "0"}, "mpi-NAME"),
    ],
)
def test_the_same_name_is_another_job(finding: Finding, environment: dict[str, str], name: str) -> None:
    unlike = unique()
    own = {key: value.replace("NAME", unlike) for key, value in environment.items()}
    hers, theirs = (f"{user}.{name.replace('NAME', unlike)}" for user in (ALICE, MALLORY))
    with started(own, user=ALICE) as alice:
        finding.wait(lambda: hers in finding.jobs)
        before = finding.jobs[hers]
        with started(own, user=MALLORY) as mallory:
            finding.wait(lambda: theirs in finding.jobs)
            assert pids(finding.jobs[hers]) == {alice.pid}, "nobody has joined it"
            assert pids(finding.jobs[theirs]) == {mallory.pid}
            assert (finding.jobs[hers].spec.user, finding.jobs[theirs].spec.user) == (str(ALICE), str(MALLORY))
            assert finding.jobs[hers] == before
            end(mallory)
            finding.wait(lambda: theirs not in finding.jobs)
        assert hers in finding.jobs, "the end of the other job is not its end"
        assert finding.of([unlike]) == {hers}


def test_slurms_id_is_the_cgroups(finding: Finding, slurms_group: tuple[str, Path]) -> None:
    number, group = slurms_group
    environment = {"SLURM_JOB_ID": number, "SLURM_STEP_ID": "0", "SLURM_PROCID": "0"}
    with started(environment, (*in_group(group), "sleep", "600")) as alice:
        finding.wait(lambda: f"slurm-{number}" in finding.jobs)
        finding.wait(lambda: finding.jobs[f"slurm-{number}"].spec.user == str(ALICE))
        job = finding.jobs[f"slurm-{number}"]
        assert job.processes.cgroup is not None and job.processes.cgroup.endswith(f"_slurmstepd.scope/job_{number}")
        with started(environment, user=MALLORY):
            finding.wait(lambda: f"{MALLORY}.slurm-{number}" in finding.jobs)
            assert finding.jobs[f"slurm-{number}"] == job
        end(alice)
        finding.wait(lambda: f"slurm-{number}" not in finding.jobs)


def test_a_process_leaves_slurms_job_by_no_variable(finding: Finding, slurms_group: tuple[str, Path]) -> None:
    number, group = slurms_group
    with started({"TRAINYARD_JOB": unique(), "SLURM_JOB_ID": "1"}, (*in_group(group), "sleep", "600")):
        finding.wait(lambda: f"slurm-{number}" in finding.jobs)


def report(finding: Finding, name: str, user: int, iteration: int) -> None:
    """Report by the two-line helper, as a user."""
    script = (
        f"import os; os.setgid({user}); os.setuid({user})\n"
        f"from host_reporter import progress\nprogress({name!r}).report(iteration={iteration})\n"
    )
    environment = {name: value for name, value in os.environ.items() if name not in _VARIABLES}
    environment["TRAINYARD_PROGRESS_DIR"] = str(finding.progress)
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=60)


_VARIABLES = frozenset[str]().union(*(launcher.reads for launcher in available().values()))


def iterations(finding: Finding, job: str) -> list[float]:
    location = finding.jobs[job].location
    assert location is not None
    return [json.loads(line)["iteration"] for line in location.path.read_text().splitlines()]


def test_a_progress_file_in_anothers_name_is_not_the_jobs(finding: Finding) -> None:
    name = unique()
    job = f"{ALICE}.{name}"
    report(finding, name, MALLORY, 1)
    with started({"TRAINYARD_JOB": name}, user=ALICE):
        finding.wait(lambda: job in finding.jobs)
        finding.look(skip=3)
        assert finding.jobs[job].location is None, "what another user has written is not read"
        report(finding, name, ALICE, 2)
        finding.wait(lambda: finding.jobs[job].location is not None)
        assert iterations(finding, job) == [2], "and the owner's own is, under another name"
        location = finding.jobs[job].location
        assert location is not None and (location.owner, location.follow_links) == (ALICE, False)


@pytest.mark.parametrize("file", ["{name}.jsonl", "{name}.{user}.jsonl"])
@pytest.mark.parametrize("kind", ["file", "link", "fifo", "hard link"])
def test_nothing_that_another_user_puts_there_is_read(finding: Finding, file: str, kind: str, tmp_path: Path) -> None:
    name = unique()
    path = finding.progress / file.format(name=name, user=ALICE)
    if kind == "link":
        path.symlink_to("/etc/shadow")
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "hard link":
        secret = tmp_path / "secret"
        secret.write_text("root's\n")
        path.hardlink_to(secret)
    else:
        path.write_text('{"ended": true}\n')
    if kind != "hard link":
        os.chown(path, MALLORY, MALLORY, follow_symlinks=False)
    with started({"TRAINYARD_JOB": name}, user=ALICE):
        finding.wait(lambda: f"{ALICE}.{name}" in finding.jobs)
        for _ in range(3):
            finding.look(skip=3)
        assert finding.jobs[f"{ALICE}.{name}"].location is None


def test_a_log_that_becomes_a_link_is_read_through_its_descriptor(finding: Finding, tmp_path: Path) -> None:
    name = unique()
    log = tmp_path / "log"
    log.write_text("mine\n")
    os.chown(log, MALLORY, MALLORY)
    with log.open("ab") as out, started({"TRAINYARD_JOB": name}, user=MALLORY, out=out):
        log.unlink()
        log.symlink_to("/etc/shadow")
        finding.wait(lambda: finding.of([name]))
        finding.look(skip=3)
        location = finding.jobs[f"{MALLORY}.{name}"].location
        assert location is not None and location.path.read_text() == "mine\n"
        assert location.owner == MALLORY, "a later process with this id and another user's file is not read"


@pytest.mark.parametrize("what", ["fifo", "terminal"])
def test_an_output_that_would_block_the_agent_is_not_opened(finding: Finding, tmp_path: Path, what: str) -> None:
    name = unique()
    os.mkfifo(tmp_path / "fifo")
    opened = os.openpty() if what == "terminal" else (os.open(tmp_path / "fifo", os.O_RDWR),)
    try:
        with started({"TRAINYARD_JOB": name}, user=MALLORY, out=opened[-1], errors=opened[-1]):
            finding.wait(lambda: finding.of([name]))
            finding.look(skip=3)
            assert finding.jobs[f"{MALLORY}.{name}"].location is None
    finally:
        for descriptor in opened:
            os.close(descriptor)


def test_no_mpirun_of_another_user_speaks_for_a_job(finding: Finding, tmp_path: Path) -> None:
    """The climb to the launcher's output ends at another user's process."""
    name = unique()
    shutil.copy("/bin/sh", tmp_path / "mpirun")
    rank = f"exec env PMIX_NAMESPACE={name} PMIX_RANK=0 setpriv --reuid {ALICE} --clear-groups sleep 600"
    command = (str(tmp_path / "mpirun"), "-c", f"({rank}) 2>&1 | cat")
    with (tmp_path / "roots").open("wb") as out, started({}, command, out=out):
        finding.wait(lambda: f"{ALICE}.mpi-{name}" in finding.jobs)
        finding.look(skip=3)
        assert finding.jobs[f"{ALICE}.mpi-{name}"].location is None
