"""Found jobs with real processes: what begins, changes and ends, and what a job file covers."""

from __future__ import annotations

import os
import pwd
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from controller.wire import JobSpec
from host_reporter.jobs.found import found_jobs as found_jobs_module
from host_reporter.jobs.found.ids import owner
from host_reporter.jobs.found.job import NoProgress
from host_reporter.jobs.job import JobProcesses
from host_reporter.jobs.job_file import JobFile
from host_reporter.jobs.naming import user_name
from host_reporter.readers.match_limit import MatchLimit
from tests.support.agent.found import Finding
from tests.support.agent.started import end, started, unique

OWN = owner(os.getuid(), lambda user: pwd.getpwuid(user).pw_name)
TORCH = {"WORLD_SIZE": "4", "MASTER_ADDR": "h1", "MASTER_PORT": "29500", "LOCAL_WORLD_SIZE": "2"}


@pytest.fixture
def finding(tmp_path: Path) -> Finding:
    return Finding(tmp_path)


def rank(run: str, number: int, **more: str) -> dict[str, str]:
    return TORCH | {"TORCHELASTIC_RUN_ID": run, "RANK": str(number), "LOCAL_RANK": str(number % 2)} | more


def job_file(path: Path, name: str, *, user: str | None = None, processes: JobProcesses | None = None) -> JobFile:
    return JobFile(path / f"{name}.json", name, JobSpec(user=user), None, path / name, processes=processes)


def test_a_job_from_its_first_process_to_its_last(finding: Finding) -> None:
    run = unique()
    job = f"{OWN}.torchrun-{run}"
    with started(rank(run, 0)) as zero, started(rank(run, 1)) as one:
        finding.wait(lambda: job in finding.jobs and finding.jobs[job].spec.ranks == 2)
        found = finding.jobs[job]
        spec = found.spec
        assert (spec.launcher, spec.world_size, spec.is_first, spec.hosts) == ("torchrun", 4, True, ())
        assert spec.user == user_name(os.getuid()), "root runs what others have started"
        assert {process.pid for process in found.processes.roots} == {zero.pid, one.pid}
        assert spec.arrival is not None and abs(spec.arrival - time.time()) < 30
        end(zero)
        for _ in range(4):
            finding.look(skip=3)
        assert finding.jobs[job].spec.is_first, "that rank 0 ends first is no news of where it was"
        assert finding.jobs[job].spec.ranks == 2
        assert finding.jobs[job].spec.arrival == spec.arrival
        end(one)
        finding.wait(lambda: job not in finding.jobs)
    assert [what for what, name in finding.events if name == job][-1] == "gone"


def test_a_host_without_rank_0_reads_no_progress(finding: Finding, tmp_path: Path) -> None:
    run = unique()
    job = f"{OWN}.torchrun-{run}"
    with (tmp_path / "out").open("wb") as out, started(rank(run, 2), out=out), started(rank(run, 3), out=out):
        finding.wait(lambda: job in finding.jobs and finding.jobs[job].spec.ranks == 2)
        found = finding.jobs[job]
        assert not found.spec.is_first
        assert found.location is None and found.followed is None
        source = found.source()
        assert isinstance(source, NoProgress)
        assert source.poll(MatchLimit()) == ([], False) and source.is_there and source.problem() is None


def test_a_launcher_that_restarts_has_time_to_do_so(finding: Finding) -> None:
    run = unique()
    job = f"{OWN}.torchrun-{run}"
    restarts = {"TORCHELASTIC_MAX_RESTARTS": "3", "TORCHELASTIC_RESTART_COUNT": "0"}
    with started(rank(run, 0, **restarts)) as process:
        finding.wait(lambda: job in finding.jobs)
        end(process)
        for _ in range(3):
            finding.look(skip=3)
        assert job in finding.jobs
    with started(rank(run, 2, **restarts | {"TORCHELASTIC_RESTART_COUNT": "1"})):
        finding.wait(lambda: not finding.jobs[job].spec.is_first, what="rank 0 is on another host now")
    finding.look(skip=3)
    assert job in finding.jobs
    finding.look(skip=31)
    assert job not in finding.jobs


def test_a_process_that_comes_and_goes_is_no_job(tmp_path: Path) -> None:
    finding = Finding(tmp_path)
    finding.found._begin_seconds = 5.0
    name = unique()
    with started({"TRAINYARD_JOB": name}):
        for _ in range(3):
            finding.look(skip=1)
        assert not finding.of([name])
        finding.look(skip=5)
        assert finding.of([name])


def test_what_a_process_starts_is_no_root_of_its_own(finding: Finding) -> None:
    name = unique()
    with started({"TRAINYARD_JOB": name}, ("sh", "-c", "sleep 600 & sleep 600")) as process:
        for _ in range(4):
            finding.look(skip=3)
        (job,) = finding.of([name])
        assert {root.pid for root in finding.jobs[job].processes.roots} == {process.pid}


def test_a_part_can_be_registered(finding: Finding) -> None:
    """Slurm without cgroups: the job is the user's."""
    number = str(int.from_bytes(os.urandom(3), "big"))
    environment = {
        "SLURM_JOB_ID": number, "SLURM_JOB_NAME": "resnet", "SLURM_ARRAY_JOB_ID": "9", "SLURM_ARRAY_TASK_ID": "4",
        "SLURM_JOB_NODELIST": "h[1-3]", "SLURM_PROCID": "0",
    }  # fmt: skip
    with started(environment):
        finding.wait(lambda: finding.of([number]))
        spec = finding.jobs[f"{OWN}.slurm-{number}"].spec
        assert spec.model_dump_json(exclude_none=True, exclude={"arrival", "user"}) == (
            '{"launcher":"slurm","family":"resnet","model":"resnet 9_4","is_first":false,"hosts":["h1","h2","h3"]}'
        )


# Job files -----------------------------------------------------------------------------------------------------------


def test_job_files_win(finding: Finding, tmp_path: Path) -> None:
    name = unique()
    job = f"{OWN}.{name}"
    with started({"TRAINYARD_JOB": name}, ("sh", "-c", "sleep 600 & sleep 600")) as process:
        finding.wait(lambda: job in finding.jobs)
        for file in (
            job_file(tmp_path, name),
            job_file(tmp_path, "other", processes=JobProcesses(tmp_path, pid=process.pid)),
            job_file(tmp_path, "other", processes=JobProcesses(tmp_path, pid=os.getpid())),
        ):
            finding.look(file, skip=3)
            assert job not in finding.jobs, file
            finding.wait(lambda: job in finding.jobs)
        finding.look(job_file(tmp_path, name, user="alice"), skip=3)
        assert job in finding.jobs, "it is the file of another user's job"
        finding.look(job_file(tmp_path, job), skip=3)
        assert finding.events[-1] != ("gone", job), "the same id goes on by the file"


def test_a_file_that_names_the_cgroup_wins(tmp_path: Path) -> None:
    from host_reporter.jobs.found.covered import Covered  # noqa: PLC0415
    from host_reporter.jobs.found.group import Group  # noqa: PLC0415
    from host_reporter.launchers.launcher import Sighting  # noqa: PLC0415
    from host_reporter.launchers.processes import Seen  # noqa: PLC0415
    from host_reporter.procfs import Process  # noqa: PLC0415

    seen = Seen(Process(9, 1), 1, 0, Sighting("trainyard", "x"), ("/jobs/a/child",))
    group = Group("u.x", 0, (seen,))
    for cgroup, covers in {
        "/jobs/a": True,
        "/jobs/a/child": True,
        "/jobs": True,
        "/sys/fs/cgroup/jobs/a": True,
        "/sys/fs/cgroup/unified/jobs/a": True,
        "/jobs/b": False,
        "/jobs/a/child/below": False,
        "/sys/fs/cgroup/jobs/b": False,
    }.items():
        file = job_file(tmp_path, "f", processes=JobProcesses(tmp_path, cgroup=cgroup))
        assert Covered([file], lambda _: None).covers(group, None, lambda _: 0) is covers, cgroup
    named = job_file(tmp_path, "f", processes=JobProcesses(tmp_path, pidfile=tmp_path / "pid"))
    assert Covered([named], lambda _: 7).covers(group, None, {9: 8, 8: 7}.get)  # type: ignore[arg-type]
    assert not Covered([named], lambda _: None).covers(group, None, lambda _: 0)


def test_a_user_cannot_fill_the_agent(
    finding: Finding, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(found_jobs_module, "MAX_JOBS_OF_USER", 2)
    name = unique()
    with ExitStack() as running:
        for number in range(4):
            running.enter_context(started({"TRAINYARD_JOB": f"{name}{number}"}))
        for _ in range(4):
            finding.look(skip=3)
        assert len(finding.of([name])) <= 2
        assert "are not followed" in caplog.text


def test_it_is_settled_when_all_is_known(finding: Finding) -> None:
    with started({"TRAINYARD_JOB": unique()}):
        assert not finding.found.is_settled
        finding.wait(lambda: finding.found.is_settled)
