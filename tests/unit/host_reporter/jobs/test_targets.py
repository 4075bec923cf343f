"""Targets and divergence that the progress tells: read, passed on with the run that they are of, and told again."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.model import Progress
from controller.wire import HostReport, JobSpec
from evaluation.bench.support.waiting import wait_until
from host_reporter import ProgressFile
from host_reporter.integrations.meter import Meter
from host_reporter.integrations.trial_files import TrialFiles
from host_reporter.jobs.job_file import read_job_file
from host_reporter.readers.parse import Diverged, Ended, Event, Point, Targeted, json_parser
from host_reporter.uplink.backlog import Backlog, Batch, Registration
from tests.support.agent.followed_jobs import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    built = World(tmp_path)
    yield built
    built.stop()


@pytest.mark.parametrize(
    ("line", "event"),
    [
        ('{"target": 0.92, "time": 5}', Targeted(0.92)),
        ('{"target": null}', Targeted(None)),
        ('{"target": "0.92"}', Targeted(0.92)),
        ('{"target": NaN}', None),
        ('{"target": 1e31}', None),
        ('{"target": [1]}', None),
        ('{"diverged": true}', Diverged()),
        ('{"diverged": false}', None),
        ('{"diverged": "yes"}', None),
        ('{"iteration": 4, "diverged": true}', Point(4.0, diverged=True)),
        ('{"iteration": 4, "metric": 0.5, "diverged": false}', Point(4.0, 0.5)),
        ('{"iteration": 4, "metric": NaN}', Point(4.0, diverged=True)),
        ('{"iteration": 4, "loss": -Infinity}', Point(4.0, diverged=True)),
        ('{"iteration": 4, "loss": "inf"}', Point(4.0, diverged=True)),
        ('{"iteration": 4, "loss": "high"}', Point(4.0)),
        ('{"iteration": 4, "metric": null}', Point(4.0)),
        ('{"iteration": 4, "metric": 1e300}', Point(4.0)),
    ],
)
def test_records(line: str, event: Event | None) -> None:
    assert json_parser(line) == event


def records(file: ProgressFile) -> list[Event | None]:
    file.flush(10.0)
    return [json_parser(line) for line in Path(file.path).read_text().splitlines()]


def test_what_the_helper_writes_is_read(tmp_path: Path) -> None:
    file = ProgressFile("a", tmp_path)
    file.target(0.92)
    file.target(None)
    file.target("high")
    file.report(iteration=1, metric=math.inf, time=5.0)
    file.report_soon(2, 0.5, seen_loss=math.nan)
    file.report_soon(3, 0.5, seen_loss=1.5)
    file.diverged()
    target, none, first, second, third, last = records(file)
    assert (target, none, last) == (Targeted(0.92), Targeted(None), Diverged())
    assert first == Point(1.0, None, 5.0, diverged=True)
    for event, diverged in ((second, True), (third, False)):
        assert isinstance(event, Point)
        assert (event.metric, event.diverged) == (0.5, diverged)
    assert file.dropped == 1


def test_a_callback_declares_its_target_once_a_run(tmp_path: Path) -> None:
    meter = Meter("a", tmp_path, target=0.92)
    meter.step(1, 0.5)
    meter.measured(2, 0.5)
    meter.end()
    meter.measured(1, math.nan)
    meter.seen(0.5)
    meter.seen(math.inf)
    meter.seen(None)
    meter.end()
    found = records(ProgressFile("a", tmp_path))
    kinds = [type(event) for event in found]
    assert kinds == [Targeted, Point, Point, Ended, Targeted, Point, Diverged, Ended]
    assert isinstance(found[5], Point)
    assert found[5].diverged


def test_a_studys_target_is_each_trials(tmp_path: Path) -> None:
    files = TrialFiles("study", tmp_path, target=0.92)
    for trial in ("t0", "t1"):
        file = files.begin(trial)
        assert file is not None
        assert records(file) == [Targeted(0.92)]


def test_a_job_files_spec_has_a_target() -> None:
    text = "id: a\nspec:\n  target: 0.92\n"
    job = read_job_file(Path("/jobs/a.yaml"), text, Path("/progress"))
    assert job.spec is not None
    assert job.spec.target == 0.92


def test_a_target_in_the_progress_is_registered_with_the_run(world: World) -> None:
    path = world.path / "a.jsonl"
    world.job(progress={"jsonl": str(path)})
    world.start()
    file = ProgressFile("a", world.path)
    file.target(0.92)
    file.report(iteration=1, metric=0.5)
    wait_until(lambda: world.receiver.points("a") == [1.0])
    assert targets(world)[-1] == 0.92
    file.end()
    wait_until(lambda: world.receiver.order("a")[-1] == "end")
    file.report(iteration=1)
    wait_until(lambda: world.receiver.points("a") == [1.0, 1.0])
    assert targets(world)[-1] is None, "it was of the run before"


def targets(world: World, job: str = "a") -> list[float | None]:
    return [None if spec is None else spec.target for spec in world.receiver.specs[job]]


def test_the_target_of_the_job_file_counts_before_that_of_the_progress(world: World) -> None:
    path = world.path / "a.jsonl"
    path.write_text('{"target": 0.92}\n{"iteration": 1}\n')
    world.job(progress={"jsonl": str(path)}, spec={"target": 0.8})
    world.start()
    wait_until(lambda: world.receiver.points("a") == [1.0])
    assert set(targets(world)) == {0.8}


@pytest.mark.parametrize("is_before", [True, False], ids=["before the agent", "while it runs"])
def test_a_divergence_is_handed_on_once_and_only_of_the_last_run(world: World, is_before: bool) -> None:
    path = world.path / "a.jsonl"
    lines = [
        {"iteration": 1, "diverged": True},
        {"ended": True},
        {"iteration": 1, "metric": 0.5},
        {"iteration": 2, "diverged": True},
        {"iteration": 3, "metric": 0.5},
        {"diverged": True},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    path.write_text(text if is_before else "")
    world.job(progress={"jsonl": str(path)})
    world.start()
    if not is_before:
        wait_until(lambda: "declare" in world.receiver.order("a"))
        path.write_text(text)
    wait_until(lambda: world.receiver.points("a")[-1:] == [3.0] and "diverge" in world.receiver.order("a"))
    assert world.receiver.order("a").count("diverge") == (1 if is_before else 2)


def told(backlog: Backlog, *, lease: bool = False) -> Batch:
    call = backlog.next_call(0.0, lease=lease, progress=False)
    assert isinstance(call, Batch)
    HostReport(session="s", seq=call.seq, sent_at=0.0, jobs=call.parts)
    return call


def register(backlog: Backlog, *, created: bool = True) -> None:
    call = backlog.next_call(0.0, lease=False)
    assert isinstance(call, Registration)
    backlog.registered(call, created=created)


def test_a_divergence_waits_for_no_period_and_is_told_of_its_own_run() -> None:
    backlog = Backlog()
    backlog.declare("a", JobSpec())
    register(backlog)
    backlog.answered(told(backlog), (), 0.0)
    backlog.add("a", [Progress(1.0, 1000.0)])
    assert backlog.next_call(0.0, lease=False, progress=False) is None
    backlog.diverge("a")
    batch = told(backlog)
    assert [part.diverged for part in batch.parts] == [True]
    backlog.answered(batch, (), 0.0)
    assert backlog.next_call(0.0, lease=False, progress=False) is None, "once is enough"
    backlog.end("a")
    backlog.answered(told(backlog), (), 0.0)
    backlog.declare("a", JobSpec())
    register(backlog)
    assert [part.diverged for part in told(backlog).parts] == [False]


def test_a_controller_that_forgot_the_job_is_told_again_that_it_diverged() -> None:
    backlog = Backlog()
    backlog.declare("a", JobSpec())
    register(backlog)
    backlog.diverge("a")
    backlog.answered(told(backlog), ("a",), 0.0)
    call = backlog.next_call(100.0, lease=False)
    assert isinstance(call, Registration)
    backlog.registered(call, created=True)
    assert [part.diverged for part in told(backlog).parts] == [True]
