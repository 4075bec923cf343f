"""Studies: trials that come and go, and the stages that their progress tells, as the agent follows them."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controller.model import Progress
from controller.wire import JobSpec
from evaluation.bench.support.waiting import wait_until
from host_reporter import ProgressFile
from host_reporter.jobs import followed, follower
from host_reporter.jobs.follower import Follower
from host_reporter.jobs.jobs_dir import JobsDirectory
from host_reporter.jobs.studies import study, trials
from host_reporter.notices import Notices
from tests.support.own_resources import open_below


class Recorder:
    """What was handed on, a line each."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.running: set[str] = set()

    def declare(self, job: str, spec: JobSpec | None) -> None:
        self.running.add(job)
        assert spec is not None
        length = "" if spec.iterations is None else f"{spec.iterations:g}"
        self.calls.append(("declare", job, spec.stage or "", length))

    def add(self, job: str, points: list[Progress]) -> None:
        assert job in self.running
        self.calls += [("point", job, f"{point.iteration:g}") for point in points]

    def note_unread(self, job: str, reason: str) -> None:
        pass

    def diverge(self, job: str) -> None:
        self.calls.append(("diverge", job))

    def end(self, job: str) -> None:
        self.running.remove(job)
        self.calls.append(("end", job))

    def end_earlier(self, job: str, at: float) -> None:
        self.calls.append(("end earlier", job))

    def of(self, job: str) -> list[tuple[str, ...]]:
        return [(call[0], *call[2:]) for call in self.calls if call[1] == job]


class World:
    def __init__(self, path: Path, **options: Any) -> None:
        self.jobs, self.progress = path / "jobs.d", path / "progress"
        self.jobs.mkdir()
        self.progress.mkdir()
        self.receiver = Recorder()
        notices = Notices(logging.getLogger("test"))
        self.follower = Follower(JobsDirectory(self.jobs, self.progress, notices), self.receiver, notices, **options)
        self._thread = threading.Thread(target=self.follower.run)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        if self._thread.is_alive():
            self.follower.stop()
            self._thread.join(5)
            assert not self._thread.is_alive()
        self.follower.close()

    def file(self, name: str, **values: Any) -> Path:
        path = self.jobs / f"{name}.json"
        scratch = path.with_suffix(".new")
        scratch.write_text(json.dumps({"id": name, "spec": {"iterations": 100}} | values))
        return scratch.rename(path)

    def trial(self, job: str) -> ProgressFile:
        return ProgressFile(job, self.progress)


@pytest.fixture
def world(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    built = World(tmp_path, **getattr(request, "param", {}))
    yield built
    built.stop()


@pytest.mark.parametrize("world", [{"timing": follower.Timing(stage=3600.0)}], indirect=True, ids=[""])
def test_a_stage_whose_turn_has_not_come_is_told_at_the_agents_stop(world: World) -> None:
    world.file("study", trials={})
    world.start()
    trial = world.trial("study.t0")
    of = world.receiver.of
    for stage, until in (("b0.r0", 9), ("b0.r1", 27)):
        trial.stage(stage, until)
        wait_until(lambda details=("declare", f"study.{stage}", str(until)): details in of("study.t0"))
    trial.stage("b0.r2", 81)
    trial.report(iteration=30, metric=0.5)
    time.sleep(0.3)
    assert of("study.t0")[-1] == ("declare", "study.b0.r1", "27"), "it was told just now"
    world.stop()
    assert of("study.t0")[-2:] == [("declare", "study.b0.r2", "81"), ("point", "30")]


def test_a_trial_from_its_first_word_to_its_last(world: World) -> None:
    world.file("study", trials={})
    world.start()
    trial = world.trial("study.t0")
    trial.stage("b0.r0", 9)
    trial.report(iteration=3, metric=0.5)
    of = world.receiver.of
    wait_until(lambda: ("point", "3") in of("study.t0"))
    time.sleep(followed.STAGE_SECONDS)
    trial.stage("b0.r1", 27)
    wait_until(lambda: ("declare", "study.b0.r1", "27") in of("study.t0"))
    trial.end()
    wait_until(lambda: of("study.t0")[-1] == ("end",))
    assert of("study.t0") == [
        ("declare", "", "100"),
        ("declare", "study.b0.r0", "9"),
        ("point", "3"),
        ("declare", "study.b0.r1", "27"),
        ("end",),
    ] or of("study.t0")[0] == ("declare", "study.b0.r0", "9")
    assert world.receiver.running == set(), "the study itself is no job"


def test_what_was_over_before_is_not_begun_and_what_goes_on_is_in_its_stage(world: World) -> None:
    over, going = world.trial("study.t0"), world.trial("study.t1")
    over.report(iteration=1)
    over.end()
    going.stage("b0.r0", 9)
    going.stage("b0.r1", 27)
    going.report(iteration=12)
    going.flush(5.0)
    world.file("study", trials={})
    world.start()
    wait_until(lambda: ("point", "12") in world.receiver.of("study.t1"))
    assert world.receiver.of("study.t1")[0] == ("declare", "study.b0.r1", "27")
    assert world.receiver.of("study.t0") == []


def test_a_trial_that_begins_again_is_another_run(world: World) -> None:
    world.file("study", trials={})
    world.start()
    for run in (1, 2):
        trial = world.trial("study.t0")
        trial.stage("b0.r0")
        trial.report(iteration=run)
        wait_until(lambda run=run: ("point", str(run)) in world.receiver.of("study.t0"))
        trial.end()
        wait_until(lambda run=run: world.receiver.of("study.t0").count(("end",)) == run)
        time.sleep(3 * trials.LOOK_SECONDS)
    points = [call[1] for call in world.receiver.of("study.t0") if call[0] == "point"]
    assert points == ["1", "2"]


def test_ended_trials_cost_no_descriptors(world: World) -> None:
    world.file("study", trials={})
    world.start()
    wait_until(lambda: world.follower._trials.folders)
    for number in range(30):
        trial = world.trial(f"study.t{number}")
        trial.report(iteration=1)
        trial.end()
    wait_until(lambda: sum(call[0] == "end" for call in world.receiver.calls) == 30 or not world.receiver.running)
    wait_until(lambda: not open_below(world.progress.parent))


def test_when_the_studys_file_goes_so_do_its_trials(world: World) -> None:
    file = world.file("study", trials={})
    world.start()
    world.trial("study.t0").report(iteration=1)
    world.trial("study.t1").report(iteration=1)
    wait_until(lambda: world.receiver.running == {"study.t0", "study.t1"})
    file.unlink()
    wait_until(lambda: not world.receiver.running)


def test_another_spec_is_that_of_all_its_trials(world: World) -> None:
    world.file("study", trials={})
    world.start()
    world.trial("study.t0").report(iteration=1)
    wait_until(lambda: world.receiver.running)
    world.file("study", trials={}, spec={"iterations": 50})
    wait_until(lambda: ("declare", "", "50") in world.receiver.of("study.t0"))


def test_a_file_of_its_own_goes_before_the_studys(world: World) -> None:
    world.file("study", trials={})
    world.file("study.t0", spec={"iterations": 7})
    world.start()
    trial = world.trial("study.t0")
    trial.report(iteration=1)
    wait_until(lambda: ("point", "1") in world.receiver.of("study.t0"))
    assert world.receiver.of("study.t0")[0] == ("declare", "", "7")


def test_what_is_no_trial_is_left_alone(world: World) -> None:
    (world.progress / "precious").write_text('{"iteration": 5}\n')
    (world.progress / "study.link.jsonl").symlink_to("precious")
    (world.progress / "study.folder.jsonl").mkdir()
    os.mkfifo(world.progress / "study.pipe.jsonl")
    for name in ("study.jsonl", "study..jsonl", "study.a.b.jsonl", "other.t0.jsonl", "study.é.jsonl", "study.t0.txt"):
        (world.progress / name).write_text('{"iteration": 5}\n')
    (world.progress / f"study.{'x' * 63}.jsonl").write_text('{"iteration": 5}\n')
    world.file("study", trials={})
    world.start()
    world.trial("study.good").report(iteration=1)
    wait_until(lambda: world.receiver.running)
    time.sleep(3 * trials.LOOK_SECONDS)
    assert world.receiver.running == {"study.good"}


def test_more_trials_than_agreed_are_left_out_and_said(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.file("study", trials={"most": 2})
    world.start()
    files = [world.trial(f"study.t{number}") for number in range(4)]
    for number, file in enumerate(files):
        file.report(iteration=1)
        file.flush(5.0)
        os.utime(file.path, (time.time() + number - 10, time.time() + number - 10))
    wait_until(lambda: "more than 2 trials at a time" in caplog.text)
    assert len(world.receiver.running) == 2
    for job in sorted(world.receiver.running):
        world.trial(job).end()
    wait_until(lambda: sum(call[0] == "declare" for call in world.receiver.calls) == 4)


def test_a_trial_that_waits_for_room_has_not_ended_because_the_agent_began_anew(world: World) -> None:
    world.file("study", trials={"most": 1})
    files = [world.trial(f"study.t{number}") for number in range(2)]
    for number, file in enumerate(files):
        file.report(iteration=1)
        file.flush(5.0)
        os.utime(file.path, (time.time() + number - 10, time.time() + number - 10))
    world.follower.hold(["study.t1", "study.gone"])
    world.start()
    wait_until(lambda: ("end earlier", "study.gone") in world.receiver.calls)
    time.sleep(follower.LOOK_SECONDS)
    assert world.receiver.of("study.t1") == []
    files[0].end()
    wait_until(lambda: ("point", "1") in world.receiver.of("study.t1"))


def test_a_trial_of_a_tuner_that_was_killed_is_over_after_a_while(world: World) -> None:
    world.file("study", trials={})
    world.start()
    trial = world.trial("study.t0")
    trial.report(iteration=1)
    wait_until(lambda: world.receiver.running)
    long_ago = time.time() - 2 * study.SILENT_SECONDS
    os.utime(trial.path, (long_ago, long_ago))
    wait_until(lambda: not world.receiver.running)


def test_a_trial_whose_file_is_removed_is_over(world: World) -> None:
    world.file("study", trials={})
    world.start()
    trial = world.trial("study.t0")
    trial.report(iteration=1)
    wait_until(lambda: world.receiver.running)
    Path(trial.path).unlink()
    wait_until(lambda: not world.receiver.running)


def test_stages_are_told_no_oftener_than_agreed(world: World) -> None:
    world.file("job", study="s")
    world.start()
    file = world.trial("job")
    file.report(iteration=1)
    wait_until(lambda: world.receiver.running)
    for number in range(2000):
        file.stage(f"r{number}")
    wait_until(lambda: ("declare", "s.r1999", "100") in world.receiver.of("job"))
    assert sum(call[0] == "declare" for call in world.receiver.calls) <= 5


def test_points_beyond_a_stages_end_wait_for_the_next_stage(world: World) -> None:
    """The controller does not believe what is far beyond the end that it was told."""
    world.file("job", study="s")
    world.start()
    file = world.trial("job")
    file.stage("r0", 1)
    file.report(iteration=1)
    wait_until(lambda: ("point", "1") in world.receiver.of("job"))
    file.stage("r1", 3)
    file.report(iteration=3)
    file.stage("r2", 9)
    file.report(iteration=9)
    file.stage("r3", 27)
    file.report(iteration=27)
    file.end()
    wait_until(lambda: world.receiver.of("job")[-1] == ("end",))
    length = 100.0
    for what, *details in world.receiver.of("job"):
        if what == "declare":
            length = float(details[1])
        elif what == "point":
            assert float(details[0]) <= 2 * length
    assert [details[0] for what, *details in world.receiver.of("job") if what == "point"] == ["1", "3", "9", "27"]


def test_a_job_speaks_for_its_own_study_alone(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever its progress says, a stage's name begins with the study of the job file."""
    world.file("job", study="mine")
    world.file("plain")
    world.start()
    file = world.trial("job")
    file.stage("theirs.b0.r0", 5)
    wait_until(lambda: ("declare", "mine.theirs.b0.r0", "5") in world.receiver.of("job"))
    plain = world.trial("plain")
    plain.stage("theirs.b0.r0")
    plain.report(iteration=1)
    wait_until(lambda: "its job file has no study" in caplog.text)
    assert all(call[1] == "" for call in world.receiver.of("plain") if call[0] == "declare")
    file.stage("x" * 62)
    wait_until(lambda: "can be no stage" in caplog.text)
