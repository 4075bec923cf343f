"""Pid files: whose are believed, what is opened, and that the wall's clock may be set."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from evaluation.bench.support.hosts.job_process import JobProcess
from host_reporter import procfs
from host_reporter.discovery import pid_files
from host_reporter.discovery.owners import Owners
from host_reporter.discovery.pid_files import Named, PidFileError, distrust, read
from host_reporter.discovery.written_at import WrittenAt, is_younger, stamp_of
from host_reporter.jobs.job import JobProcesses
from host_reporter.notices import Notices
from host_reporter.procfs import Process, identify
from tests.support.own_resources import open_below

NOBODY = 65_534
IN_ROOTS_HANDS = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a file to another user")


@pytest.fixture
def owners(notices: Notices) -> Owners:
    return Owners(notices)


def by_file(file: Path) -> JobProcesses:
    return JobProcesses(file, pidfile=file)


def pids_of(owners: Owners) -> set[int]:
    """The processes that are believed to be the jobs'."""
    owners.look()
    return set(owners.namespaces(0, 0.0).values())


# Whose ---------------------------------------------------------------------------------------------------------------


def test_a_process_has_the_users_whose_rights_it_has() -> None:
    assert procfs.users_of(os.getpid()) == {os.getuid(), os.geteuid(), os.getresuid()[2]}
    assert procfs.users_of(2**22 + 5) is None


@pytest.mark.parametrize(
    ("owner", "agent", "users", "is_believed"),
    [
        (0, 0, {1000}, True),
        (0, 1000, {1001}, True),
        (1000, 1000, {1001}, True),
        (1000, 0, {1000}, True),
        (1000, 0, {1001}, False),
        (1000, 0, {0}, False),
        (1000, 0, {1000, 0}, False),  # a program with another user's rights is not only its own user's
        (1000, 0, None, True),  # it has ended
    ],
)
def test_a_file_is_believed_if_it_is_roots_the_agents_or_of_the_processs_user(
    owner: int, agent: int, users: set[int] | None, is_believed: bool
) -> None:
    named = Named(4711, owner, (0, 0, 0, 0))
    reason = distrust(Path("/run/job.pid"), named, agent=lambda: agent, users_of=lambda _pid: users)
    assert (reason is None) is is_believed
    if reason is not None:
        assert reason.startswith("pidfile /run/job.pid belongs to user 1000, and process 4711 is another user's: ")


@IN_ROOTS_HANDS
def test_another_users_file_names_no_process_of_roots_and_that_is_said_once(
    tmp_path: Path, owners: Owners, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "job.pid"
    with JobProcess() as job:
        file.write_text(f"{job.pid}\n")
        os.chown(file, NOBODY, -1)
        owners.set_jobs({"a": by_file(file)})
        for _ in range(3):
            assert pids_of(owners) == set()
        assert caplog.text.count(f"belongs to user {NOBODY}") == 1
        os.chown(file, 0, -1)
        assert pids_of(owners) == {job.pid}


# What ----------------------------------------------------------------------------------------------------------------


def test_what_is_no_plain_file_of_one_user_is_refused(tmp_path: Path) -> None:
    plain = tmp_path / "plain.pid"
    plain.write_text(f"{os.getpid()} and more\n")
    assert read(plain).pid == os.getpid()
    assert read(plain).owner == os.getuid()
    link = tmp_path / "link.pid"
    link.symlink_to(plain)
    pipe = tmp_path / "pipe.pid"
    os.mkfifo(pipe)
    for place, words in (
        (link, "is a link"),
        (pipe, "is no ordinary file"),
        (tmp_path, "is no ordinary file"),
        (tmp_path / "none", "is not there"),
        (plain / "x", "cannot be read: Not a directory"),
    ):
        with pytest.raises(PidFileError, match=words):
            read(place)
    plain.chmod(0o666)
    with pytest.raises(PidFileError, match="can be written by every user"):
        read(plain)


def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    file = tmp_path / "job.pid"
    for text in ("", "none", "-5", "1", "99999999999999", "4711"):
        file.write_text(text)
        if text == "4711":
            assert read(file).pid == 4711
            continue
        with pytest.raises(PidFileError, match="holds no id of a job"):
            read(file)
    assert not open_below(tmp_path)


def test_a_process_that_was_found_stays_while_its_file_is_away(tmp_path: Path, owners: Owners) -> None:
    file = tmp_path / "job.pid"
    with JobProcess() as job:
        file.write_text(str(job.pid))
        owners.set_jobs({"a": by_file(file)})
        assert pids_of(owners) == {job.pid}
        file.unlink()
        assert pids_of(owners) == {job.pid}
    assert pids_of(owners) == set()


# When ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [-7 * 86_400, -3600, 3600, 7 * 86_400])
def test_a_step_of_the_walls_clock_makes_no_file_older_or_younger(
    tmp_path: Path, notices: Notices, step: float
) -> None:
    ahead = 0.0
    owners = Owners(notices, WrittenAt(wall=lambda: time.time() + ahead))
    file = tmp_path / "job.pid"
    with JobProcess() as job:
        file.write_text(str(job.pid))
        owners.set_jobs({"a": by_file(file)})
        assert pids_of(owners) == {job.pid}
        owners.set_jobs({})
        ahead = step
        # Followed anew, and so asked anew whether the process is the one that was meant.
        owners.set_jobs({"b": by_file(file)})
        assert pids_of(owners) == {job.pid}


class Clocks:
    """The wall's and the machine's own, in seconds."""

    def __init__(self) -> None:
        self.wall, self.boot = 1e9, 500.0

    def pass_by(self, seconds: float) -> None:
        self.wall += seconds
        self.boot += seconds


def began(boot: float) -> Process:
    return Process(4711, int(boot * os.sysconf("SC_CLK_TCK")))


def test_a_file_has_the_age_that_it_had_when_it_was_seen_first() -> None:
    clocks, path = Clocks(), Path("/run/job.pid")
    ages = WrittenAt(wall=lambda: clocks.wall, boot=lambda: clocks.boot)
    stamp = (1, 2, 3, int((clocks.wall - 100) * 1e9))
    written = ages.note(path, stamp)
    assert written == pytest.approx(400.0)
    assert not is_younger(began(399.0), written)
    assert not is_younger(began(401.0), written), "file systems have coarse clocks"
    assert is_younger(began(403.0), written)
    for step in (3600.0, -7200.0):
        clocks.wall += step
        clocks.pass_by(10.0)
        assert ages.note(path, stamp) == written
    # The id comes again, and the clock was set back in between: it is another process all the same.
    assert is_younger(began(clocks.boot - 1.0), ages.note(path, stamp))
    # A file of the future was written now, by a clock that was ahead.
    later = (1, 2, 3, int((clocks.wall + 5000) * 1e9))
    assert ages.note(path, later) == clocks.boot


def test_what_is_remembered_of_files_is_bounded() -> None:
    ages = WrittenAt(max_files=3)
    for number in range(10):
        ages.note(Path(f"/run/{number}.pid"), (1, number, 3, 4))
    assert len(ages._seen) == 3


def test_the_stamp_of_a_file_is_another_when_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "job.pid"
    file.write_text("4711")
    before = stamp_of(file.stat())
    os.utime(file, ns=(1, before[3] + 1))
    assert stamp_of(file.stat()) != before
    assert identify(os.getpid()) is not None and pid_files.read(file).stamp == stamp_of(file.stat())
