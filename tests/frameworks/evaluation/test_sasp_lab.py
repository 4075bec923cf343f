"""The jobs of ``scripts/evaluate sasp`` as they run on the testbed, with this machine's own namespace as every host."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from evaluation.bench.support.waiting import wait_until
from evaluation.pytorch.digits import HELD_OUT, digits
from evaluation.sasp.emulation import recording
from evaluation.sasp.study.arms import Transport
from evaluation.sasp.study.tasks import TASKS
from evaluation.sasp.testbed import accelerator, lab, looks, shares, watch
from evaluation.sasp.testbed.request import TASK_NAMES, ArmResult, SaspRequest, Training, Ways
from tests.support.paths import ROOT
from topologies.emulation import Plug
from topologies.errors import LabError
from topologies.frameworks import PYTHON_SETTING

CLOCK = os.sysconf("SC_CLK_TCK")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="to enter namespaces needs root")


def cpu_seconds(pid: int) -> float:
    """What a process has had of processors so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK


def test_who_looks_has_a_processor_only_where_nobody_else_wants_one() -> None:
    """Two processes on one processor, each in a session of its own, as the lab starts them."""
    processor = min(os.sched_getaffinity(0))
    code = "import os, sys, time; os.sched_setaffinity(0, [{}]); {}; print(flush=True); sys.stdin.read(1)\n"
    code += "while time.process_time() < 60: pass"
    busy = ("", "from evaluation.sasp.testbed.watch import yield_to_others; yield_to_others()")
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code.format(processor, first or "pass")],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
        )
        for first in busy
    ]  # fmt: skip
    try:
        for process in processes:
            assert process.stdout is not None
            process.stdout.readline()
        before = [cpu_seconds(process.pid) for process in processes]
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(b"\n")
            process.stdin.flush()
        wait_until(lambda: cpu_seconds(processes[0].pid) > before[0] + 1.0)
        assert cpu_seconds(processes[1].pid) - before[1] < 0.1
    finally:
        for process in processes:
            process.kill()
            process.communicate()


class Here:
    """All hosts are this one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def plugs(self, *hosts: str) -> tuple[Plug, ...]:
        return tuple(Plug(host, "lo", (f"127.0.0.{host[1:]}",), 1, int(host[1:]), 1e9) for host in hosts)

    def pid(self, host: str) -> int:
        return os.getpid()


@pytest.fixture
def launcher(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(PYTHON_SETTING, sys.executable)
    env = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "evaluation.sasp.testbed.fork_server"],
        cwd=ROOT,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    yield process
    if process.poll() is None:
        process.kill()
        process.wait()


def request(task: str, transport: Transport, *trainings: Training) -> SaspRequest:
    return SaspRequest(
        task, transport, ratio=1.0, seed=3, workers=2, accelerator_seconds=0.01, trainings=trainings, limit_seconds=100,
        chunk_bytes=4096,
    )  # fmt: skip


def trained(asked: SaspRequest, launcher, tmp_path: Path) -> dict[str, ArmResult]:
    """The arms by name."""
    arms, version = lab.train_all(asked, Here(tmp_path / "memory"), launcher, tmp_path / "results")
    assert version.startswith("2.")
    assert [arm.training for arm in arms] == list(asked.trainings)
    assert not list((tmp_path / "memory").iterdir())
    for arm in arms:
        assert [worker.rank for worker in arm.workers] == [0, 1]
        assert 0 < arm.seconds_an_iteration < 60
        for worker in arm.workers:
            assert 0.01 < worker.pass_seconds < worker.seconds
            assert 0 < worker.processor_seconds < worker.seconds
    return {arm.training.name: arm for arm in arms}


LATE = Ways(partial=True, prediction="momentum")


@needs_root
def test_a_job_over_a_server_trains_is_looked_at_and_is_recorded(launcher, tmp_path: Path) -> None:
    trainings = [
        Training(scheme.replace(":", ""), scheme, 30, ways, target=2.0)
        for scheme, ways in (("bsp", Ways()), ("bsp+sasp", Ways()), ("ssp:2+overlap", Ways()), ("bsp+sasp:1", LATE))
    ]
    arms = trained(replace(request("cnn", "server", *trainings), record=True), launcher, tmp_path)
    for name, arm in arms.items():
        # Nobody has an accuracy of 2, so it goes through all iterations, and there is one look more, flushed.
        assert [iteration for _, iteration, _ in arm.points] == [10, 20, 30, 30]
        assert [seconds for seconds, _, _ in arm.points] == sorted(seconds for seconds, _, _ in arm.points)
        assert all(0 < metric < 1 for _, _, metric in arm.points)
        assert arm.reached is None
        kept = tmp_path / "results" / name
        assert (kept / "server.log").exists()
        assert not (kept / "looks").exists()
    for name in set(arms) - {"bsp"}:
        recorded = recording.read(tmp_path / "results" / name)
        assert recorded.workers == 2
        assert {event.iteration for event in recorded.events if event.kind == "push"} == set(range(1, 31))
        assert {used.worker for used in recorded.used} == {0, 1}
        assert recorded.iteration_seconds > 0.01
    # Synchronous either way, so the same training.
    assert arms["bsp"].points[-1][2] == pytest.approx(arms["bsp+sasp"].points[-1][2], abs=0.02)


@needs_root
def test_a_job_over_all_reduce_trains_as_one_over_a_server_and_is_recorded(launcher, tmp_path: Path) -> None:
    trainings = [
        Training("bsp", "bsp", 24, target=2.0),
        Training("ddp", "bsp+overlap", 24, target=2.0),
        Training("sasp", "bsp+sasp", 24, target=2.0),
        Training("late", "bsp+sasp:1", 24, LATE, target=2.0),
        Training("local", "bsp+sasp:1", 24, Ways(prediction="local")),
        Training("halves", "bsp+sasp:1", 24, Ways(halves=True)),
    ]
    arms = trained(replace(request("mlp", "ranks", *trainings), record=True), launcher, tmp_path)
    assert {name for name, arm in arms.items() if not arm.points} == {"local", "halves"}, "without a target"
    metrics = {name: arm.points[-1][2] for name, arm in arms.items() if arm.points}
    assert metrics["bsp"] == pytest.approx(metrics["ddp"], abs=0.02)
    assert metrics["bsp"] == pytest.approx(metrics["sasp"], abs=0.02)
    for name, arm in arms.items():
        recorded = recording.read(tmp_path / "results" / name)
        steps = 2 if name == "halves" else 1
        assert recorded.scheme == ""
        assert {event.iteration for event in recorded.events} == set(range(1, steps * 24 + 1))
        assert recorded.iteration_seconds * steps == pytest.approx(arm.seconds_an_iteration, rel=0.8)
    used = recording.read(tmp_path / "results" / "local").used
    assert {one.worker for one in used} == {0, 1}


def assert_at_once(arm: ArmResult) -> None:
    """It ended at its target, which each look has: a running median of three looks needs three."""
    assert arm.reached == arm.points[2][:2]
    assert arm.points[2][1] == 30
    assert len(arm.points) == 3


@needs_root
def test_jobs_over_all_reduce_end_at_their_targets_too(launcher, tmp_path: Path) -> None:
    schemes = {"ddp": "bsp+overlap", "late": "bsp+sasp:1", "after": "bsp"}
    trainings = [Training(name, scheme, 100_000, target=0.0) for name, scheme in schemes.items()]
    for arm in trained(request("cnn", "ranks", *trainings), launcher, tmp_path).values():
        assert_at_once(arm)


@needs_root
def test_a_job_ends_as_soon_as_it_has_its_target(launcher, tmp_path: Path) -> None:
    trainings = (
        Training("at-once", "bsp+overlap", 100_000, target=0.0),
        Training("calibrate", "bsp", 20),
        Training("long", "bsp", 100_000, target=2.0),
    )
    arms = trained(replace(request("cnn", "server", *trainings), limit_seconds=20.0), launcher, tmp_path)
    assert_at_once(arms["at-once"])
    assert arms["calibrate"].points == ()
    seconds = lab.pass_seconds(arms["calibrate"])
    assert 0.01 < seconds < 1
    # What takes longer than the limit is not thrown away.
    assert arms["long"].reached is None
    assert 10 < arms["long"].workers[0].iterations < 100_000


@needs_root
def test_a_job_that_fails_is_named_with_what_it_said(launcher, tmp_path: Path) -> None:
    bad = Training("ssp0", "ssp:0", 2)
    with pytest.raises(LabError, match=r"ssp0: (server|worker\d) ended with status 1: ssp needs a staleness"):
        lab.train_all(request("mlp", "server", bad), Here(tmp_path / "memory"), launcher, tmp_path / "results")
    assert (tmp_path / "results" / "ssp0").is_dir()


def looked_at(tmp_path: Path, *metrics: float, over: bool = True) -> tuple[list[list[float]], list[float]]:
    """The points that are found in a model whose parameters are all its metric, and the looks that are left."""
    (tmp_path / "looks").mkdir()
    model = torch.nn.Linear(3, 2)
    for number, metric in enumerate(metrics, 1):
        torch.nn.init.constant_(model.weight, metric)
        looks.leave(tmp_path / "looks", 0.5 * number, 10 * number, model)
    if over:
        looks.end(tmp_path / "looks")
    watch.watch(torch.nn.Linear(3, 2), lambda found: float(found.weight[1, 2]), 0.5, tmp_path)
    points = tmp_path / "points.json"
    left, _ = looks.left(tmp_path / "looks")
    return json.loads(points.read_text()) if points.exists() else [], [look.seconds for look in left]


def test_who_looks_on_ends_at_the_target_and_looks_at_nothing_more(tmp_path: Path) -> None:
    points, left = looked_at(tmp_path, 0.25, 0.75, 0.25, 0.75, 1.0, 1.0, over=False)
    # One look above is not enough.
    assert points == [[0.5, 10, 0.25], [1.0, 20, 0.75], [1.5, 30, 0.25], [2.0, 40, 0.75]]
    assert left == [2.5, 3.0]


def test_who_looks_on_ends_with_the_job(tmp_path: Path) -> None:
    points, left = looked_at(tmp_path, 0.25, 0.125)
    assert points == [[0.5, 10, 0.25], [1.0, 20, 0.125]]
    assert left == []


def test_who_looks_on_ends_where_nothing_is_a_number_any_more(tmp_path: Path) -> None:
    points, left = looked_at(tmp_path, 0.25, math.nan, 0.75, over=False)
    assert points == [[0.5, 10, 0.25]]
    assert left == [1.5]


@pytest.mark.parametrize("name", TASK_NAMES)
def test_a_worker_waits_in_each_layer_for_its_share(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    task = TASKS[name]
    model, data = task.seeded_model(1), task.data(1, 0, 4)
    of_task, slept = accelerator.kept(name), list[float]()
    monkeypatch.setattr(accelerator.time, "sleep", slept.append)
    accelerator.mark(model, accelerator.Accelerator(of_task, 2.0).wait)
    task.loss(model, next(data.batches)).backward()
    assert sum(slept) == pytest.approx(2.0, rel=1e-3)
    assert len(slept) == 2 * len(of_task.forward)
    with torch.no_grad():
        task.loss(model, next(data.batches))
    assert len(slept) == 2 * len(of_task.forward), "nobody waits where nothing is trained"
    # Backward takes longer than forward in each model.
    assert sum(of_task.backward.values()) > sum(of_task.forward.values())


def test_shares_are_of_what_layers_take() -> None:
    """A clock that goes on by 1 at each look: a layer's pass is what lies between its marks."""
    now = iter(range(100))
    stretches = shares.Stretches(lambda: float(next(now)))
    stretches.begin()
    for which, layer in (("forward", "a"), ("forward", "b"), ("backward", "b"), ("backward", "a")):
        stretches.mark(which, layer)
    stretches.end()
    found = shares.as_shares(stretches)
    assert sum(found.forward.values()) + sum(found.backward.values()) == pytest.approx(1, abs=1e-4)
    assert set(found.forward) == set(found.backward) == {"a", "b"}


def test_shares_of_workers_are_apart_and_nobody_trains_on_what_is_held_out() -> None:
    shared = [digits(5, rank, 4) for rank in range(4)]
    assert sum(len(share.labels) for share in shared) + HELD_OUT == 1797
    seen = [tuple(picture) for share in shared for picture in share.pictures.tolist()]
    held = {tuple(picture) for picture in shared[0].held_out.tolist()}
    assert all((share.held_out == shared[0].held_out).all() for share in shared)
    assert len(held & set(seen)) <= 2  # some pictures of the data set are there twice
