"""Keras 3 with the PyTorch backend: the progress bar or lines of ``fit``, and CSVLogger."""

from __future__ import annotations

import argparse
from typing import Any

import keras

from evaluation.logs.trainings.data import CLASSES, FEATURES, blobs
from evaluation.logs.truth import Series, Truth

EPOCHS = 5
BATCH = 32
POINTS = 448
STEPS = POINTS // BATCH


class Watch(keras.callbacks.Callback):
    """Notes the held-out accuracy after each epoch, in optimiser steps and in epochs."""

    def __init__(self) -> None:
        super().__init__()
        self.run = Series("val_accuracy", "max", EPOCHS * STEPS)
        self.csv = Series("val_accuracy", "max", EPOCHS, "epochs")

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Keras calls this with the epoch, from 0, and the metrics."""
        value = (logs or {})["val_accuracy"]
        self.run.add((epoch + 1) * STEPS, value)
        self.csv.add(epoch + 1, value)


def main() -> None:
    """Train for a few epochs; ``--verbose`` is that of ``fit``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--verbose", type=int, required=True)
    options = parser.parse_args()
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [keras.layers.Input((FEATURES,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(CLASSES)]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.SGD(0.05), loss=loss, metrics=["accuracy"])
    watch = Watch()
    model.fit(
        *blobs(POINTS, seed=1), batch_size=BATCH, epochs=EPOCHS, verbose=options.verbose,
        validation_data=blobs(128, seed=2), callbacks=[watch, keras.callbacks.CSVLogger("training.csv")],
    )  # fmt: skip
    Truth(watch.run, {"training.csv": watch.csv}).write()


if __name__ == "__main__":
    main()
