"""Ray Train with two PyTorch workers: the workers' lines behind their names, and the files of the workers' output."""

from __future__ import annotations

import os
from pathlib import Path

import ray
import torch
from ray import train
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchConfig, TorchTrainer, prepare_model

from evaluation.logs.trainings.data import CLASSES, FEATURES, blobs
from evaluation.logs.truth import OUTPUT, Series, Truth

EPOCHS = 4
STEPS = 5
BATCH = 32


def loop() -> None:
    """Train one worker's replica, print the loss of each epoch, and report it."""
    rank = train.get_context().get_world_rank()
    torch.manual_seed(1)
    model = prepare_model(torch.nn.Linear(FEATURES, CLASSES))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    points, labels = map(torch.from_numpy, blobs(STEPS * BATCH, seed=1 + rank))
    run = Series("loss", "min", EPOCHS, "epochs")
    for epoch in range(EPOCHS):
        for step in range(STEPS):
            part = slice(step * BATCH, (step + 1) * BATCH)
            loss = torch.nn.functional.cross_entropy(model(points[part]), labels[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch: {epoch + 1}/{EPOCHS} loss: {loss.item():.4f}", flush=True)
        train.report({"epoch": epoch + 1, "loss": loss.item()})
        run.add(epoch + 1, loss.item())
    if rank == 0:
        # Of lines that differ in numbers alone Ray shows some, unless RAY_DEDUP_LOGS says otherwise.
        shown = run if os.environ.get("RAY_DEDUP_LOGS") == "0" else None
        Truth(run, {OUTPUT: shown, f"ray/session/logs/worker-{os.getpid()}.out": run}).write()


def main() -> None:
    """Start two workers on this machine."""
    here = Path.cwd()
    ray.init(num_cpus=3, include_dashboard=False, object_store_memory=100_000_000, _temp_dir=str(here / "ray"))
    trainer = TorchTrainer(
        loop, torch_config=TorchConfig(backend="gloo"), scaling_config=ScalingConfig(num_workers=2),
        run_config=RunConfig(name="digits", storage_path=str(here / "results")),
    )  # fmt: skip
    trainer.fit()
    ray.shutdown()


if __name__ == "__main__":
    main()
