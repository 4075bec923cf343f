"""What a callback cannot write costs records, never the training: the same result, no exception, no waiting."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna
import pytest

from evaluation.bench.support.frameworks import trainings
from host_reporter import ProgressFile
from host_reporter.integrations.keras import Progress as KerasProgress
from host_reporter.integrations.lightning import Progress as LightningProgress
from host_reporter.integrations.optuna import follow
from host_reporter.integrations.ray import Trials
from host_reporter.integrations.torch import Watch
from host_reporter.integrations.transformers import Progress as TransformersProgress
from host_reporter.training.progress_file import FLUSH_SECONDS

optuna.logging.set_verbosity(optuna.logging.WARNING)


def plain(job: Any, directory: Any, _folder: Path) -> float:
    return trainings.plain(28, watch=lambda optimizer: Watch(optimizer, job, directory=directory))


def keras(job: Any, directory: Any, _folder: Path) -> float:
    return trainings.keras(1, KerasProgress(job, metric="val_accuracy", directory=directory))


def lightning(job: Any, directory: Any, folder: Path) -> float:
    return trainings.lightning(1, folder, LightningProgress(job, metric="val_accuracy", directory=directory))


def transformers(job: Any, directory: Any, folder: Path) -> float:
    progress = TransformersProgress(job, metric="eval_accuracy", directory=directory)
    return trainings.transformers(4, folder, progress)


def study(job: Any, directory: Any, _folder: Path) -> float:
    pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=1)
    made = optuna.create_study(direction="maximize", pruner=pruner, sampler=optuna.samplers.RandomSampler(seed=1))

    def objective(trial: optuna.Trial) -> float:
        value = float(trial.suggest_float("x", 0, 1))
        for step in range(1, 5):
            trial.report(value, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    made.optimize(follow(made, objective, name=job, directory=directory), n_trials=5)
    return float(made.best_value)


RUNS: dict[str, tuple[Callable[[Any, Any, Path], float], Callable[[Path], float]]] = {
    "plain": (plain, lambda _: trainings.plain(28)),
    "keras": (keras, lambda _: trainings.keras(1)),
    "lightning": (lightning, lambda folder: trainings.lightning(1, folder)),
    "transformers": (transformers, lambda folder: trainings.transformers(4, folder)),
}
_reached: dict[str, tuple[float, float]] = {}
"""What each training reaches without the agent's part, and the seconds that it takes."""


@pytest.mark.parametrize("fault", ["no folder", "full disk", "pipe", "link", "wrong job", "no job", "odd folder"])
@pytest.mark.parametrize("framework", RUNS)
def test_a_training_goes_on(
    framework: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run, without = RUNS[framework]
    if framework not in _reached:
        began = time.monotonic()
        _reached[framework] = (without(tmp_path / "without"), time.monotonic() - began)
    reached, seconds = _reached[framework]
    job, directory = broken(fault, tmp_path, monkeypatch)
    began = time.monotonic()
    with caplog.at_level(logging.WARNING, "host_reporter"):
        assert run(job, directory, tmp_path / "with") == pytest.approx(reached)
    assert time.monotonic() - began < 10 * (seconds + 10 * FLUSH_SECONDS)
    assert len([record for record in caplog.records if record.name.startswith("host_reporter")]) <= 1


@pytest.mark.parametrize("fault", ["no folder", "full disk", "pipe", "link", "wrong job", "no job", "odd folder"])
def test_a_study_goes_on(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, directory = broken(fault, tmp_path, monkeypatch)
    best = study(job if isinstance(job, str) else None, directory, tmp_path)
    assert best == pytest.approx(study("fine", tmp_path / "fine", tmp_path))


@pytest.mark.parametrize("fault", ["no folder", "full disk", "wrong job", "no job", "odd folder"])
def test_hooks_of_ray_raise_nothing(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray ends an experiment whose callback raises; here its hooks are called with what no Ray hands over, too."""
    job, directory = broken(fault, tmp_path, monkeypatch)

    class Trial:
        trial_id = "a1_0001"
        last_result = None

    callback = Trials(job if isinstance(job, str) else None, object(), metric="m", directory=directory)  # type: ignore[arg-type]
    for result in ({}, {"training_iteration": 1, "m": object()}, {"training_iteration": "x"}):
        callback.on_trial_start(1, [], Trial())
        callback.on_trial_result(1, [], Trial(), result)
    callback.on_trial_complete(1, [], Trial())
    callback.on_trial_error(1, [], Trial())
    callback.on_experiment_end([])


def broken(fault: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """A job and a directory with which nothing can be told."""
    directory = folder / "progress"
    directory.mkdir()
    if fault == "no folder":
        (folder / "plain").touch()
        return "a", folder / "plain" / "sub"
    if fault == "full disk":
        # The device that is always full, wherever the file is.
        monkeypatch.setattr(ProgressFile, "path", property(lambda _: "/dev/full", lambda *_: None), raising=False)
    elif fault == "pipe":
        for name in ("a.jsonl", *(f"a.t{number}.jsonl" for number in range(5))):
            os.mkfifo(directory / name)
    elif fault == "link":
        (directory / "a.jsonl").symlink_to("/dev/full")
    elif fault == "wrong job":
        return "../../a/b\0c", directory
    elif fault == "no job":
        monkeypatch.delenv("TRAINYARD_JOB", raising=False)
        return None, directory
    elif fault == "odd folder":
        return "a", object()
    return "a", directory
