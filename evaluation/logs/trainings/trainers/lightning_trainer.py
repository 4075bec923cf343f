"""Lightning's Trainer with its progress bar or Rich's, CSVLogger and TensorBoardLogger."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import RichProgressBar, TQDMProgressBar
from lightning.pytorch.loggers import CSVLogger, TensorBoardLogger
from torch.utils.data import DataLoader, TensorDataset

from evaluation.logs.trainings.data import CLASSES, FEATURES, blobs
from evaluation.logs.truth import OUTPUT, Series, Truth

EPOCHS = 4
BATCH = 32
POINTS = 480
STEPS = POINTS // BATCH


class Model(pl.LightningModule):
    """A linear classifier that logs its loss at each step, and the held-out loss and accuracy at each epoch."""

    def __init__(self, run: Series) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(FEATURES, CLASSES)
        self.series = run

    def training_step(self, batch: Any, _: int) -> torch.Tensor:
        """Return the loss of a batch."""
        loss = torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1])
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch: Any, _: int) -> None:
        """Log what the held-out batch gives."""
        scores = self.layer(batch[0])
        self.log("val_loss", torch.nn.functional.cross_entropy(scores, batch[1]), prog_bar=True)
        self.log("val_acc", (scores.argmax(1) == batch[1]).float().mean(), prog_bar=True)

    def on_validation_epoch_end(self) -> None:
        """Note the truth."""
        if not self.trainer.sanity_checking:
            self.series.add(self.trainer.global_step, float(self.trainer.callback_metrics["val_acc"]))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return plain gradient descent."""
        return torch.optim.SGD(self.parameters(), lr=0.05)


def main() -> None:
    """Train for a few epochs; ``--bar`` is the progress bar, ``--logger`` what keeps the metrics."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bar", choices=["tqdm", "rich"], default="tqdm")
    parser.add_argument("--logger", choices=["csv", "tensorboard"], default="csv")
    options = parser.parse_args()
    pl.seed_everything(1)
    run = Series("val_acc", "max", EPOCHS * STEPS)
    loaders = [
        DataLoader(TensorDataset(*map(torch.from_numpy, blobs(count, seed=seed))), batch_size=BATCH)
        for count, seed in ((POINTS, 1), (128, 2))
    ]
    trainer = pl.Trainer(
        max_epochs=EPOCHS, accelerator="cpu", log_every_n_steps=5, enable_checkpointing=False,
        logger=CSVLogger(".") if options.logger == "csv" else TensorBoardLogger("."),
        callbacks=[TQDMProgressBar() if options.bar == "tqdm" else RichProgressBar()],
    )  # fmt: skip
    trainer.fit(Model(run), *loaders)
    output = run
    if options.bar == "rich" and not sys.stdout.isatty():
        # Rich writes one picture of the bar to a file, at the end.
        output = replace(run, points=run.points[-1:])
    kept = "metrics.csv" if options.logger == "csv" else "events.out.tfevents.0"
    Truth(run, {OUTPUT: output, f"lightning_logs/version_0/{kept}": run}).write()


if __name__ == "__main__":
    main()
