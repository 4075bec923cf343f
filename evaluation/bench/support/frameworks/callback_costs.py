"""What the callbacks cost an iteration, in the real frameworks: JSON for ``scripts/bench callbacks``.

Of each framework: the seconds spent inside of the callback, and those of an iteration without it, a round each. Of the
plain loop and of Optuna's studies also whole runs with and without, with what the thread that writes takes.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ |= {"KERAS_BACKEND": "torch", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
os.environ |= {"HF_HUB_OFFLINE": "1"}

import optuna
import torch

from evaluation.bench.support.frameworks import trainings
from host_reporter.integrations.keras import Progress as KerasProgress
from host_reporter.integrations.lightning import Progress as LightningProgress
from host_reporter.integrations.optuna import follow
from host_reporter.integrations.torch import Watch
from host_reporter.integrations.transformers import Progress as TransformersProgress

STEPS = 1400
EPOCHS = 30
BATCHES = 14
BERT_STEPS = 60
TRIALS, REPORTS = 20, 50


class Spent:
    """Adds up the time inside of a callback's hooks; what begins and ends the training is not an iteration's."""

    ONCE = ("train_begin", "train_start", "train_end", "exception", "init_end")

    def __init__(self) -> None:
        self.seconds = 0.0

    def of(self, callback: Any) -> Any:
        for name in dir(callback):
            if name.startswith("on_") and not name.endswith(self.ONCE) and callable(getattr(callback, name)):
                setattr(callback, name, self.timed(getattr(callback, name)))
        return callback

    def timed(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                return hook(*arguments, **named)
            finally:
                self.seconds += time.perf_counter() - began

        return run


class TimedWatch(Watch):
    spent: Spent

    def metric(self, value: Any) -> None:
        self.spent.timed(super().metric)(value)

    def _stepped(self, *_: Any) -> None:
        self.spent.timed(super()._stepped)()


def seconds(run: Callable[[], Any]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def plain(folder: Path) -> tuple[float, float, float]:
    """Inside, without, with: of an iteration."""
    without = seconds(lambda: trainings.plain(STEPS)) / STEPS
    whole = seconds(lambda: trainings.plain(STEPS, watch=lambda o: Watch(o, "plain", directory=folder))) / STEPS
    spent = TimedWatch.spent = Spent()
    trainings.plain(STEPS, watch=lambda optimizer: TimedWatch(optimizer, "plain", directory=folder))
    return spent.seconds / STEPS, without, whole


def keras(folder: Path) -> tuple[float, float]:
    spent, count = Spent(), EPOCHS * BATCHES
    without = seconds(lambda: trainings.keras(EPOCHS)) / count
    trainings.keras(EPOCHS, spent.of(KerasProgress("keras", metric="val_accuracy", directory=folder)))
    return spent.seconds / count, without


def lightning(folder: Path) -> tuple[float, float]:
    spent, count = Spent(), EPOCHS * BATCHES
    without = seconds(lambda: trainings.lightning(EPOCHS, folder)) / count
    callback = LightningProgress("lightning", metric="val_accuracy", directory=folder)
    trainings.lightning(EPOCHS, folder, spent.of(callback))
    return spent.seconds / count, without


def transformers(folder: Path) -> tuple[float, float]:
    spent = Spent()
    without = seconds(lambda: trainings.transformers(BERT_STEPS, folder)) / BERT_STEPS
    callback = TransformersProgress("bert", metric="eval_accuracy", directory=folder)
    trainings.transformers(BERT_STEPS, folder, spent.of(callback))
    return spent.seconds / BERT_STEPS, without


def study(folder: Path) -> tuple[float, float]:
    """Without and with: of one report and one question whether to go on."""

    def run(followed: bool) -> None:
        pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=1, bootstrap_count=0)
        made = optuna.create_study(pruner=pruner, sampler=optuna.samplers.RandomSampler(seed=1))

        def objective(trial: optuna.Trial) -> float:
            for step in range(1, REPORTS + 1):
                trial.report(-float(trial.number), step)
                trial.should_prune()
            return 0.0

        made.optimize(follow(made, objective, name="s", directory=folder) if followed else objective, n_trials=TRIALS)

    count = TRIALS * REPORTS
    return seconds(lambda: run(False)) / count, seconds(lambda: run(True)) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    logging.disable(logging.WARNING)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    torch.set_num_threads(1)
    found: dict[str, list[tuple[float, ...]]] = {}
    with tempfile.TemporaryDirectory() as name, contextlib.redirect_stdout(io.StringIO()):
        # The first round of each makes what is made once.
        for number in range(rounds + 1):
            for measure in (plain, keras, lightning, transformers, study):
                told = measure(Path(name))
                if number:
                    found.setdefault(measure.__name__, []).append(told)
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
