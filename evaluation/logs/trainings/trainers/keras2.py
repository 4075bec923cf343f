"""Keras 2, as tf-keras has it: the progress bar of ``fit``, its lines, CSVLogger and TensorBoard."""

from __future__ import annotations

import argparse

import tf_keras as keras

from evaluation.logs.trainings.data import CLASSES, FEATURES, blobs
from evaluation.logs.truth import Series, Truth

EPOCHS = 5
BATCH = 32
POINTS = 448
STEPS = POINTS // BATCH


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
    told = model.fit(
        *blobs(POINTS, seed=1), batch_size=BATCH, epochs=EPOCHS, verbose=options.verbose,
        validation_data=blobs(128, seed=2),
        callbacks=[keras.callbacks.CSVLogger("training.csv"), keras.callbacks.TensorBoard("logs", write_graph=False)],
    )  # fmt: skip
    run = Series("val_accuracy", "max", EPOCHS * STEPS)
    epochs = Series("val_accuracy", "max", EPOCHS, "epochs")
    for epoch, accuracy in enumerate(told.history["val_accuracy"], start=1):
        run.add(epoch * STEPS, accuracy)
        epochs.add(epoch, accuracy)
    # The lines of verbose=2 have the steps of an epoch, too.
    Truth(run, {"training.csv": epochs}).write()


if __name__ == "__main__":
    main()
