"""The files of jobs' variables follow the host's plan."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path
from typing import Any

import pytest

from controller.wire import HostPlan
from host_reporter.environment.job_files import READY, JobFiles
from host_reporter.notices import Notices


def plan(*jobs: tuple[str, int], **values: Any) -> HostPlan:
    told = {"host": "h1", "epoch": 1, "policy": "fifo", "mode": "dscp", "class_dscp": [59, 51], "class_floor": 0.01}
    told |= {"other_floor": 0.1, "egress_bps": 1e9}
    told["jobs"] = [{"job": job, "dscp": dscp, "service_class": 0} for job, dscp in jobs]
    return HostPlan.model_validate(told | values)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "environment"


@pytest.fixture
def files(path: Path) -> JobFiles:
    return JobFiles(path, Notices(logging.getLogger("test")))


def names(path: Path) -> set[str]:
    return {each.name for each in path.iterdir()}


def test_each_job_has_a_file_with_its_variables(files: JobFiles, path: Path) -> None:
    files.follow(plan(("slurm-7", 43), ("alice.bert", 11)))
    assert names(path) == {"slurm-7.env", "alice.bert.env", READY}
    assert (path / "slurm-7.env").read_text() == (
        "TRAINYARD_DSCP=43\nNCCL_IB_TC=172\nUCX_IB_TRAFFIC_CLASS=172\nNVSHMEM_IB_TRAFFIC_CLASS=172\nNCCL_IB_FIFO_TC=252\n"
    )


def test_without_a_dscp_of_acknowledgements_control_messages_have_the_jobs(files: JobFiles, path: Path) -> None:
    files.follow(plan(("a", 12), acknowledgement_dscp=None))
    assert "NCCL_IB_FIFO_TC=48\n" in (path / "a.env").read_text()


def test_a_host_without_jobs_shows_that_its_agent_is_there(files: JobFiles, path: Path) -> None:
    files.follow(plan())
    assert names(path) == {READY}


def test_the_file_of_a_job_that_is_gone_goes(files: JobFiles, path: Path) -> None:
    files.follow(plan(("a", 43), ("b", 11)))
    files.follow(plan(("b", 11)))
    assert names(path) == {"b.env", READY}
    files.follow(plan())
    assert names(path) == {READY}


def test_a_new_agent_makes_the_files_of_an_earlier_one_right(files: JobFiles, path: Path) -> None:
    files.follow(plan(("a", 43), ("b", 11)))
    (path / ".a.env.01234567").touch()
    JobFiles(path, Notices(logging.getLogger("test"))).follow(plan(("a", 11)))
    assert names(path) == {"a.env", READY}
    assert "TRAINYARD_DSCP=11\n" in (path / "a.env").read_text()


def test_what_somebody_has_changed_is_made_right_again(files: JobFiles, path: Path) -> None:
    files.follow(plan(("a", 43), ("b", 43)))
    before = (path / "a.env").read_text()
    (path / "a.env").unlink()
    (path / "b.env").write_bytes(b"\xff")
    files.follow(plan(("a", 43), ("b", 43)))
    assert (path / "a.env").read_text() == (path / "b.env").read_text() == before


def test_the_agent_shows_that_it_is_there_and_leaves_what_is_right_alone(files: JobFiles, path: Path) -> None:
    files.follow(plan(("a", 43)))
    earlier = time.time() - 300
    for name in ("a.env", READY):
        os.utime(path / name, (earlier, earlier))
    files.follow(plan(("a", 43)))
    assert (path / READY).stat().st_mtime > earlier + 200
    assert (path / "a.env").stat().st_mtime == pytest.approx(earlier)


def test_a_paused_plan_keeps_the_files_since_a_dscp_is_for_life(files: JobFiles, path: Path) -> None:
    files.follow(plan(("a", 43), paused=True))
    assert names(path) == {"a.env", READY}


@pytest.mark.parametrize("mode", ["classified", "marked"])
def test_in_another_mode_there_are_no_files(files: JobFiles, path: Path, mode: str) -> None:
    files.follow(plan(mode=mode))
    assert not path.exists()
    files.follow(plan(("a", 43)))
    files.follow(plan(mode=mode))
    assert names(path) == set()


def test_a_folder_that_is_not_safe_is_said_once_and_again_when_it_is(
    files: JobFiles, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    path.mkdir()
    path.chmod(0o777)
    for _ in range(3):
        files.follow(plan(("a", 43)))
    assert [record.message for record in caplog.records] == [
        f"jobs cannot be told their DSCPs when they are launched: others may write into {path}, and could exchange the "
        "files in it; chmod go-w it"
    ]
    assert names(path) == set()
    path.chmod(0o755)
    files.follow(plan(("a", 43)))
    assert "are in" in caplog.records[-1].message
    assert names(path) == {"a.env", READY}


def test_what_the_system_refuses_is_said_with_the_place(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    JobFiles(tmp_path / "file" / "environment", Notices(logging.getLogger("test"))).follow(plan(("a", 43)))
    (record,) = caplog.records
    assert f"{tmp_path}/file: " in record.message
