"""A TensorFlow estimator: its lines on standard error, and its event files."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from evaluation.logs.trainings.data import CLASSES, FEATURES, blobs
from evaluation.logs.truth import OUTPUT, Series, Truth

STEPS = 90
EVERY = 30
BATCH = 32


def batches(seed: int, *, repeat: bool) -> Any:
    """Return what gives an estimator its data."""

    def make() -> Any:
        points, labels = blobs(BATCH * 10, seed=seed)
        data = tf.data.Dataset.from_tensor_slices(({"x": points}, labels)).batch(BATCH)
        return data.repeat() if repeat else data

    return make


def main() -> None:
    """Train and evaluate by turns."""
    tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.INFO)
    config = tf.estimator.RunConfig(model_dir="model", tf_random_seed=1, log_step_count_steps=10, save_summary_steps=10)
    estimator = tf.estimator.LinearClassifier(
        [tf.feature_column.numeric_column("x", shape=(FEATURES,))], n_classes=CLASSES, config=config
    )
    run = Series("accuracy", "max", STEPS)
    for _ in range(STEPS // EVERY):
        estimator.train(batches(1, repeat=True), steps=EVERY)
        told = estimator.evaluate(batches(2, repeat=False))
        run.add(int(told["global_step"]), float(told["accuracy"]))
    Truth(run, {OUTPUT: None, "stderr.log": run}).write()


if __name__ == "__main__":
    main()
