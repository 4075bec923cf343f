"""The two-line helper without a job file: the agent says what is missing, once, and only where a training runs."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evaluation.bench.support.waiting import wait_until
from host_reporter.jobs.follower import Timing
from host_reporter.jobs.job_file import read_job_file
from host_reporter.jobs.unclaimed import GRACE_SECONDS, MAX_TOLD, UnclaimedProgress
from host_reporter.notices import Notices
from host_reporter.training.progress_file import ProgressFile
from tests.support.agent.followed_jobs import World
from tests.support.paths import ROOT

Logged = Callable[[], list[str]]


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Logged:
    return lambda: [record.message for record in caplog.records if "belongs to no job file" in record.message]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    followed = World(tmp_path, timing=Timing(look=0.1, grace=0.5))
    yield followed
    followed.stop()


def unclaimed(path: Path) -> UnclaimedProgress:
    return UnclaimedProgress(path, Path("/etc/trainyard/jobs.d"), Notices(logging.getLogger("test")))


def write(path: Path, job: str) -> None:
    with (path / f"{job}.jsonl").open("a") as file:
        file.write('{"iteration": 1}\n')


def test_the_two_lines_alone_are_told_of_until_there_is_a_job_file(world: World, logged: Logged) -> None:
    world.start()
    training = ProgressFile("my-job", world.path)
    training.report(iteration=1, metric=0.5)
    wait_until(lambda: len(logged()) == 1)
    assert f"{world.path}/my-job.jsonl belongs to no job file, so its progress is not reported" in logged()[0]
    assert f"write {world.jobs}/my-job.yaml with 'id: my-job'" in logged()[0]
    # What it asks for is enough.
    (world.jobs / "my-job.yaml").write_text("id: my-job\n")
    wait_until(lambda: world.receiver.points("my-job") == [1])
    training.report(iteration=2, metric=0.6)
    wait_until(lambda: world.receiver.points("my-job") == [1, 2])
    assert len(logged()) == 1


def test_a_file_is_told_of_once_and_after_a_while(tmp_path: Path, logged: Logged) -> None:
    files = unclaimed(tmp_path)
    files.look(0.0, ())
    write(tmp_path, "a")
    files.look(1.0, ())
    files.look(1.0 + GRACE_SECONDS / 2, ())
    assert logged() == []
    for more in range(3):
        files.look(1.0 + GRACE_SECONDS + more, ())
        write(tmp_path, "a")
    assert len(logged()) == 1


def test_what_was_there_before_is_told_of_only_when_it_grows(tmp_path: Path, logged: Logged) -> None:
    write(tmp_path, "over")
    write(tmp_path, "runs")
    files = unclaimed(tmp_path)
    files.look(0.0, ())
    write(tmp_path, "runs")
    files.look(10.0, ())
    files.look(20.0, ())
    assert len(logged()) == 1
    assert "runs.jsonl" in logged()[0]


def test_a_job_that_had_a_job_file_is_not_told_of_when_that_goes(tmp_path: Path, logged: Logged) -> None:
    files = unclaimed(tmp_path)
    files.look(0.0, ())
    write(tmp_path, "a")
    for now in (1.0, 10.0):
        files.look(now, {"a"})
    for now in (20.0, 30.0):
        files.look(now, ())
    assert logged() == []
    write(tmp_path, "a")
    for now in (40.0, 50.0):
        files.look(now, ())
    assert len(logged()) == 1, "it trains on, and nobody listens any more"


def test_what_is_no_jobs_file_is_none_of_its_business(tmp_path: Path, logged: Logged) -> None:
    files = unclaimed(tmp_path)
    files.look(0.0, ())
    for name in ("a\nb", "-a", "x y", "j" * 64):
        write(tmp_path, name)
    (tmp_path / "a.log").write_text("x")
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "link.jsonl").symlink_to("/etc/passwd")
    files.look(1.0, ())
    files.look(10.0, ())
    assert logged() == []
    nowhere = unclaimed(tmp_path / "nowhere")
    nowhere.look(0.0, ())


def test_a_folder_full_of_them_does_not_fill_the_log(tmp_path: Path, logged: Logged) -> None:
    files = unclaimed(tmp_path)
    files.look(0.0, ())
    for number in range(3 * MAX_TOLD):
        write(tmp_path, f"job-{number}")
    for now in (1.0, 10.0, 20.0):
        files.look(now, ())
    assert len(logged()) == MAX_TOLD


def test_the_job_files_of_the_guide_are_understood() -> None:
    guide = (ROOT / "docs" / "guides" / "jobs.md").read_text()
    files = re.findall(r"```yaml\n# (/etc/trainyard/jobs.d/\S+)\n(.*?)```", guide, re.DOTALL)
    understood = [read_job_file(Path(path), text, Path("/run/trainyard/progress")) for path, text in files]
    assert [job.id for job in understood] == ["my-job", "my-job", "resnet"]
    helper, log, study_file = understood
    assert helper.followed == Path("/run/trainyard/progress/my-job.jsonl"), "what the two lines write"
    assert log.followed == Path("/var/log/my-job.log")
    assert study_file.processes is not None, "its sockets are found"
    assert all(job.spec is not None and job.spec.tasks and job.spec.demand for job in (helper, log))
