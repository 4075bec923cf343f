"""Epochs become iterations where the job declares these; else the unit is the epoch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.wire import JobSpec
from evaluation.bench.support.waiting import wait_until
from host_reporter.jobs.epochs import EpochScale, iterations_of_epoch
from host_reporter.readers.parse import Described
from tests.support.agent.followed_jobs import World

TEN = Described("loss", "min", 10.0, counts_epochs=True)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    built = World(tmp_path)
    yield built
    built.stop()


@pytest.mark.parametrize(
    ("declared", "described", "found"),
    [
        (5000.0, TEN, 500.0),
        (25.0, TEN, 2.5),
        (10.0, TEN, None),
        (5.0, TEN, None),
        (None, TEN, None),
        (5000.0, Described("loss", "min", counts_epochs=True), None),
        (5000.0, Described("loss", "min", 10.0), None),
    ],
)
def test_the_declared_iterations_over_the_epochs_of_the_output(
    declared: float | None, described: Described, found: float | None
) -> None:
    assert iterations_of_epoch(declared, described) == found


def test_a_run_keeps_the_unit_of_its_first_point() -> None:
    scale = EpochScale()
    unknown = Described("loss", "min", counts_epochs=True)
    assert scale.factor(5000.0, unknown) == 1.0
    assert scale.factor(5000.0, TEN) == 1.0 and scale.counts_epochs(5000.0, TEN)
    other = EpochScale()
    assert not other.counts_epochs(5000.0, TEN)
    assert other.factor(5000.0, TEN) == 500.0 and other.factor(5000.0, unknown) == 500.0


def log(epochs: range, of: int = 10) -> str:
    return "".join(f"epoch {e}/{of} loss={2 / e:.4f}\n" for e in epochs)


def test_a_job_that_declares_iterations_reports_iterations(world: World) -> None:
    world.job(spec={"iterations": 5000}, progress={"log": str(world.log)})
    world.log.write_text(log(range(1, 4)))
    world.start()
    wait_until(lambda: 1500 in world.receiver.points("a"))
    spec = world.receiver.specs["a"][-1]
    assert spec is not None and (spec.iterations, spec.unit) == (5000, "iteration")
    with world.log.open("a") as file:
        file.write(log(range(4, 11)))
    wait_until(lambda: 5000 in world.receiver.points("a"))
    assert world.receiver.points("a") == [500.0 * n for n in range(1, 11)]


@pytest.mark.parametrize("spec", [{}, {"unit": "epoch", "iterations": 20}])
def test_a_job_that_does_not_says_that_it_counts_epochs(world: World, spec: dict[str, object]) -> None:
    world.job(spec=spec, progress={"log": str(world.log)})
    world.log.write_text(log(range(1, 4)))
    world.start()
    wait_until(lambda: 3 in world.receiver.points("a"))
    told = world.receiver.specs["a"][-1]
    assert isinstance(told, JobSpec)
    assert (told.iterations, told.unit) == (spec.get("iterations", 10), "epoch")
    assert world.receiver.points("a") == [1, 2, 3]


def test_a_log_with_steps_counts_iterations(world: World) -> None:
    world.job(progress={"log": str(world.log)})
    world.log.write_text("".join(f"epoch 1/10 step {s}/100 loss={1 / s}\n" for s in (10, 20, 30)))
    world.start()
    wait_until(lambda: 30 in world.receiver.points("a"))
    told = world.receiver.specs["a"][-1]
    assert told is not None and told.unit == "iteration"
