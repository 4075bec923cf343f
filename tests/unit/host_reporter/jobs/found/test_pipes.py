"""Real pipelines whose last program writes a file: the job's output is that file."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from evaluation.bench.support.waiting import wait_until
from host_reporter.readers.location import Location
from tests.support.agent.found import Finding
from tests.support.agent.started import started, unique


@pytest.fixture
def finding(tmp_path: Path) -> Finding:
    return Finding(tmp_path)


def found(finding: Finding, line: str, *opened: Path) -> Location | None:
    """Returns where the output of the job of a shell line is found, once it has opened these files."""
    name = unique()
    with started({"TRAINYARD_JOB": name}, ("sh", "-c", line)):
        wait_until(lambda: all(file.exists() for file in opened))
        finding.wait(lambda: finding.of([name]))
        for _ in range(30):
            finding.look(skip=1.0)
            (job,) = (job for job in finding.of([name]) if not job.startswith("nobody."))
            if (location := finding.jobs[job].location) is not None:
                return location
        return None


@pytest.mark.parametrize(
    "line",
    [
        "sleep 600 | tee {0}/train.log",
        "sleep 600 2>&1 | tee {0}/train.log | cat",
        "sleep 600 | sed -u s/a/b/ | tee -a {0}/train.log",
        "sleep 600 | cat > {0}/train.log",
        "(exec env RANK=0 WORLD_SIZE=1 sleep 600) | tee {0}/train.log",
    ],
)
def test_the_file_of_the_pipes_reader(finding: Finding, tmp_path: Path, line: str) -> None:
    location = found(finding, line.format(tmp_path), tmp_path / "train.log")
    assert location is not None and location.shown == str(tmp_path / "train.log")
    assert (location.owner, location.or_public) == (os.getuid(), True)


@pytest.mark.parametrize(
    "line",
    [
        "sleep 600 | cat",
        "sleep 600 | sh -c 'exec 5>{0}/a 6>{0}/b; exec sleep 600'",
        "(sleep 600 | tee {0}/a) & (sleep 600 | tee {0}/b) & wait",
    ],
)
def test_no_file_is_taken_that_is_not_sure(
    finding: Finding, tmp_path: Path, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    opened = [tmp_path / name for name in ("a", "b") if f"{{0}}/{name}" in line]
    assert found(finding, line.format(tmp_path), *opened) is None
    finding.look(skip=60.0)
    assert "no file has its output" in caplog.text and "two-line helper" in caplog.text


def test_a_file_that_another_user_has_open_at_the_other_end_is_not_taken(finding: Finding, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("to become another user needs root")
    # The way to the folder is closed to others, so it is opened before.
    program = (
        "import os, sys; folder = os.open(sys.argv[1], os.O_RDONLY); os.setuid(65534); "
        "os.dup2(os.open('log', os.O_WRONLY | os.O_CREAT, dir_fd=folder), 1); os.execvp('cat', ['cat'])"
    )
    log = tmp_path / "open" / "log"
    log.parent.mkdir()
    log.parent.chmod(0o777)
    assert found(finding, f'sleep 600 | {shutil.which("python3")} -c "{program}" {log.parent}', log) is None
