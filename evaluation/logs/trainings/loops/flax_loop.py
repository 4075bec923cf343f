"""A Flax and Optax loop as Google's examples have it: absl's logging, and clu's writers to the log and TensorBoard."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
from absl import app, logging
from clu import metric_writers, periodic_actions
from flax import linen

from evaluation.logs.trainings.data import CLASSES, blobs
from evaluation.logs.truth import OUTPUT, Series, Truth

STEPS = 60
BATCH = 32
EVERY = 10


def loss_of(parameters: Any, points: Any, labels: Any) -> Any:
    """Return the mean cross entropy."""
    scores = linen.Dense(CLASSES).apply(parameters, points)
    return optax.softmax_cross_entropy_with_integer_labels(scores, labels).mean()


def main(_: list[str]) -> None:
    """Train, and write the loss and the held-out accuracy every tenth step."""
    points, labels = blobs(STEPS * BATCH, seed=1)
    test_points, test_labels = blobs(256, seed=2)
    parameters = linen.Dense(CLASSES).init(jax.random.key(0), points[:1])
    optimizer = optax.sgd(0.1)
    state = optimizer.init(parameters)
    gradient = jax.jit(jax.value_and_grad(loss_of))
    writer = metric_writers.create_default_writer("logs", asynchronous=False)
    progress = periodic_actions.ReportProgress(num_train_steps=STEPS, writer=writer, every_secs=None, every_steps=EVERY)
    run = Series("test_accuracy", "max", STEPS)
    for step in range(1, STEPS + 1):
        part = slice((step - 1) * BATCH, step * BATCH)
        loss, gradients = gradient(parameters, points[part], labels[part])
        updates, state = optimizer.update(gradients, state)
        parameters = optax.apply_updates(parameters, updates)
        progress(step)
        if step % EVERY == 0:
            right = linen.Dense(CLASSES).apply(parameters, test_points).argmax(1) == test_labels
            accuracy = float(jnp.mean(right))
            writer.write_scalars(step, {"train_loss": float(loss), "test_accuracy": accuracy})
            logging.info("train step: %d, loss: %.4f, test_accuracy: %.2f", step, loss, accuracy * 100)
            run.add(step, accuracy)
    writer.close()
    Truth(run, {OUTPUT: None, "stderr.log": run}).write()


if __name__ == "__main__":
    logging.set_verbosity(logging.INFO)
    app.run(main)
