"""NeMo's experiment manager around Lightning's Trainer: its lines, its log files, and TensorBoard."""

from __future__ import annotations

from typing import Any

import lightning.pytorch as pl
import torch
from nemo.utils.exp_manager import exp_manager
from torch.utils.data import DataLoader, TensorDataset

from evaluation.logs.trainings.data import CLASSES, FEATURES, blobs
from evaluation.logs.truth import Series, Truth

EPOCHS = 3
BATCH = 32
STEPS = 10


class Model(pl.LightningModule):
    """A linear classifier that logs as NeMo's models do."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(FEATURES, CLASSES)
        self.run = Series("val_loss", "min", EPOCHS * STEPS)

    def training_step(self, batch: Any, _: int) -> torch.Tensor:
        """Return the loss of a batch."""
        loss = torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1])
        self.log("train_loss", loss, prog_bar=True)
        self.log("global_step", float(self.trainer.global_step), prog_bar=True)
        return loss

    def validation_step(self, batch: Any, _: int) -> None:
        """Log the held-out loss."""
        self.log("val_loss", torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1]), prog_bar=True)

    def on_validation_epoch_end(self) -> None:
        """Note the truth."""
        if not self.trainer.sanity_checking:
            self.run.add(self.trainer.global_step, float(self.trainer.callback_metrics["val_loss"]))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return plain gradient descent."""
        return torch.optim.SGD(self.parameters(), lr=0.05)


def main() -> None:
    """Train for EPOCHS epochs with checkpoints, as the manager sets them up."""
    pl.seed_everything(1)
    trainer = pl.Trainer(
        max_epochs=EPOCHS, accelerator="cpu", log_every_n_steps=5, logger=False, enable_checkpointing=False
    )
    checkpoints = {"monitor": "val_loss", "save_nemo_on_train_end": False}
    settings = {"exp_dir": "nemo", "name": "blobs", "version": "1", "create_checkpoint_callback": True}
    exp_manager(trainer, settings | {"checkpoint_callback_params": checkpoints})
    loaders = [
        DataLoader(TensorDataset(*map(torch.from_numpy, blobs(count, seed=seed))), batch_size=BATCH)
        for count, seed in ((STEPS * BATCH, 1), (128, 2))
    ]
    model = Model()
    trainer.fit(model, *loaders)
    Truth(model.run).write()


if __name__ == "__main__":
    main()
