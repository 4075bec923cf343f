"""MMEngine's Runner, by epochs or by iterations: the console, its log file, and the JSON lines of scalars."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import torch
from mmengine.evaluator import BaseMetric, Evaluator
from mmengine.hooks import Hook
from mmengine.model import BaseModel
from mmengine.runner import Runner
from torch.utils.data import TensorDataset

from evaluation.logs.trainings.data import CLASSES, FEATURES, blobs
from evaluation.logs.truth import Series, Truth

EPOCHS = 3
BATCH = 32
STEPS = 15
SCALARS = "work_dirs/run/vis_data/scalars.json"


class Model(BaseModel):
    """A linear classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(FEATURES, CLASSES)

    def forward(self, points: torch.Tensor, labels: torch.Tensor, mode: str) -> Any:
        """Return the loss for ``mode`` "loss", scores and labels for "predict"."""
        scores = self.layer(points)
        if mode == "loss":
            return {"loss": torch.nn.functional.cross_entropy(scores, labels)}
        return scores, labels


class Accuracy(BaseMetric):
    """The part of held-out points whose class is right."""

    def process(self, _: Any, data_samples: Sequence[torch.Tensor]) -> None:
        """Note how many of a batch are right."""
        scores, labels = data_samples
        self.results.append(((scores.argmax(1) == labels).sum().item(), len(labels)))

    def compute_metrics(self, results: list[tuple[int, int]]) -> dict[str, float]:
        """Return the accuracy in per cent."""
        return {"accuracy": 100 * sum(right for right, _ in results) / sum(count for _, count in results)}


class Watch(Hook):
    """Notes the truth after each validation."""

    def __init__(self) -> None:
        self.run = Series("accuracy", "max", EPOCHS * STEPS)

    def after_val_epoch(self, runner: Runner, metrics: dict[str, float] | None = None) -> None:
        """MMEngine calls this with the metrics."""
        self.run.add(runner.iter, (metrics or {})["accuracy"])


def main() -> None:
    """Train for EPOCHS epochs; ``--by-iterations`` counts them as iterations."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--by-iterations", action="store_true")
    by_epoch = not parser.parse_args().by_iterations
    watch = Watch()
    loaders = [
        {"dataset": TensorDataset(*map(torch.from_numpy, blobs(count, seed=seed))), "batch_size": BATCH,
         "sampler": {"type": "DefaultSampler", "shuffle": seed == 1}, "num_workers": 0,
         "collate_fn": {"type": "default_collate"}}
        for count, seed in ((STEPS * BATCH, 1), (128, 2))
    ]  # fmt: skip
    span = {"max_epochs": EPOCHS} if by_epoch else {"max_iters": EPOCHS * STEPS, "val_interval": STEPS}
    runner = Runner(
        Model(), "work_dirs", train_dataloader=loaders[0], val_dataloader=loaders[1],
        train_cfg={"by_epoch": by_epoch, **span}, val_cfg={}, val_evaluator=Evaluator(Accuracy()), custom_hooks=[watch],
        optim_wrapper={"optimizer": {"type": "SGD", "lr": 0.05}}, randomness={"seed": 1},
        log_processor={"by_epoch": by_epoch},
        default_hooks={
            "logger": {"type": "LoggerHook", "interval": 5},
            "checkpoint": {"type": "CheckpointHook", "interval": -1},
        },
    )  # fmt: skip
    runner.train()
    Truth(watch.run, {SCALARS: watch.run, "work_dirs/run/run.log": watch.run}).write()


if __name__ == "__main__":
    main()
