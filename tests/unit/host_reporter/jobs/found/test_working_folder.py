"""Metrics below the working folder of a job whose output is in no file."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from host_reporter.jobs.found import working_folder
from host_reporter.jobs.found.working_folder import metrics_below
from host_reporter.readers.auto import auto_source
from host_reporter.readers.location import Location
from host_reporter.readers.whole import read_whole
from tests.support.agent.found import Finding
from tests.support.agent.started import started, unique

TABLE = "lightning_logs/version_{0}/metrics.csv"
STATE = "out/checkpoint-{0}/trainer_state.json"
EVENTS = "runs/{0}/events.out.tfevents.1.host.1.0"


def make(folder: Path, names: Iterable[str], *, age: float = 0.0) -> None:
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("epoch,step,val_loss\n0,4,0.5\n1,9,0.4\n")
        os.utime(file.parent, (time.time() - age, time.time() - age))


def below(folder: Path, since: float = 60.0) -> Location | None:
    return metrics_below(os.getpid(), str(folder), os.getuid(), time.time() - since)


@pytest.mark.parametrize(
    ("names", "shown", "kind"),
    [
        ([TABLE.format(0)], TABLE.format(0), "csv"),
        ([STATE.format(5), STATE.format(9)], "out/checkpoint-*/trainer_state.json", "trainer-state"),
        ([EVENTS.format("now")], "runs/now", "tensorboard"),
        ([EVENTS.format("now/train"), EVENTS.format("now/validation")], "runs/now", "tensorboard"),
        ([TABLE.format(0), TABLE.format(0).replace("metrics.csv", "events.out.tfevents.1.h")], TABLE.format(0), "csv"),
    ],
)
def test_the_only_metrics_there(tmp_path: Path, names: list[str], shown: str, kind: str) -> None:
    make(tmp_path, names)
    location = below(tmp_path)
    assert location is not None
    assert (location.shown, location.kind) == (str(tmp_path / shown), kind)
    assert (location.follow_links, location.owner) == (False, os.getuid())


@pytest.mark.parametrize(
    "names",
    [
        [],
        ["metrics.csv"],
        [TABLE.format(0), TABLE.format(1)],
        ["a/checkpoint-1/trainer_state.json", "b/checkpoint-1/trainer_state.json"],
        [TABLE.format(0), EVENTS.format("a"), EVENTS.format("b")],
        [".hidden/metrics.csv"],
    ],
)
def test_none_or_several(tmp_path: Path, names: list[str]) -> None:
    make(tmp_path, names)
    assert below(tmp_path) is None


def test_folders_from_before_the_process_do_not_count(tmp_path: Path) -> None:
    make(tmp_path, [TABLE.format(0)], age=120.0)
    assert below(tmp_path) is None
    make(tmp_path, [TABLE.format(1)])
    location = below(tmp_path)
    assert location is not None and location.shown.endswith("version_1/metrics.csv")


def test_links_and_other_users_do_not_count(tmp_path: Path) -> None:
    make(tmp_path / "elsewhere", [TABLE.format(0)])
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "lightning_logs").symlink_to(tmp_path / "elsewhere" / "lightning_logs")
    (tmp_path / "work" / "version_0").mkdir()
    (tmp_path / "work" / "version_0" / "metrics.csv").symlink_to(tmp_path / "elsewhere" / TABLE.format(0))
    assert below(tmp_path / "work") is None
    assert metrics_below(os.getpid(), str(tmp_path / "elsewhere"), os.getuid() + 1, 0.0) is None
    assert metrics_below(os.getpid(), "/", 0, 0.0) is None


def test_a_search_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, [TABLE.format(0)])
    for number in range(30):
        (tmp_path / "data" / str(number)).mkdir(parents=True)
    monkeypatch.setattr(working_folder, "MAX_FOLDER_ENTRIES", 20)
    assert below(tmp_path) is not None, "a folder of data is left out"
    search = working_folder._Search(os.getuid(), 0.0, _left=2)
    search.look(str(tmp_path), 0)
    assert search.is_cut


def test_a_job_that_prints_to_nowhere_is_followed_by_its_table(tmp_path: Path) -> None:
    finding, name = Finding(tmp_path), unique()
    work = tmp_path / "work [1]"
    work.mkdir()
    with started({"TRAINYARD_JOB": name}, ("sh", "-c", f"cd '{work}' && exec sleep 600")):
        finding.wait(lambda: finding.of([name]))
        make(work, [STATE.format(5)])
        (work / STATE.format(5)).write_text('{"log_history": [{"step": 5, "epoch": 0.5, "loss": 0.5}], "max_steps": 9}')
        finding.wait(lambda: finding.jobs[next(iter(finding.of([name])))].location is not None)
        job = finding.jobs[next(iter(finding.of([name])))]
        whole = read_whole(job.source())
        assert [point.iteration for point in whole.runs[0]] == [5.0]


def test_a_folder_in_which_two_jobs_work_is_left_alone(tmp_path: Path) -> None:
    finding, one, two = Finding(tmp_path), unique(), unique()
    (tmp_path / "outer" / "inner").mkdir(parents=True)
    make(tmp_path / "outer", [TABLE.format(0)])
    with (
        started({"TRAINYARD_JOB": one}, ("sh", "-c", f"cd {tmp_path}/outer && exec sleep 600")),
        started({"TRAINYARD_JOB": two}, ("sh", "-c", f"cd {tmp_path}/outer/inner && exec sleep 600")),
    ):
        finding.wait(lambda: len(finding.of([one, two])) == 2)
        make(tmp_path / "outer", [TABLE.format(1)])
        for _ in range(20):
            finding.look(skip=5.0)
        assert all(finding.jobs[job].location is None for job in finding.of([one, two]))


def test_the_table_is_read(tmp_path: Path) -> None:
    make(tmp_path, [TABLE.format(0)])
    location = below(tmp_path)
    assert location is not None
    whole = read_whole(auto_source(location))
    assert [(point.iteration, point.metric) for point in whole.runs[0]] == [(5.0, 0.5), (10.0, 0.4)]
