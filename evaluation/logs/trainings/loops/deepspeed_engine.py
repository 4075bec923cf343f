"""DeepSpeed's engine on processors: its lines of steps, loss scale and speed, and the loss that a script prints."""

from __future__ import annotations

import argparse

import deepspeed
import torch
from deepspeed.utils.logging import set_log_level_from_string

from evaluation.logs.trainings.data import CLASSES, FEATURES, blobs
from evaluation.logs.truth import Series, Truth

STEPS = 40
BATCH = 16
SETTINGS = {
    "train_micro_batch_size_per_gpu": BATCH,
    "optimizer": {"type": "SGD", "params": {"lr": 0.1}},
    "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 10, "warmup_max_lr": 0.1}},
    "steps_per_print": 5,
    "wall_clock_breakdown": False,
}


def main() -> None:
    """Train, with the loss of every fifth step printed by rank 0; ``--info`` shows what DeepSpeed itself says.

    DeepSpeed 0.19 shows warnings alone unless it is told otherwise.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int)
    parser.add_argument("--info", action="store_true")
    if parser.parse_args().info:
        set_log_level_from_string("info")
    deepspeed.init_distributed("gloo")
    rank = torch.distributed.get_rank()
    torch.manual_seed(1)
    layer = torch.nn.Linear(FEATURES, CLASSES)
    engine, *_ = deepspeed.initialize(model=layer, model_parameters=layer.parameters(), config=SETTINGS)
    points, labels = map(torch.from_numpy, blobs(STEPS * BATCH, seed=1 + rank))
    run = Series("loss", "min", STEPS)
    for step in range(STEPS):
        part = slice(step * BATCH, (step + 1) * BATCH)
        loss = torch.nn.functional.cross_entropy(engine(points[part]), labels[part])
        engine.backward(loss)
        engine.step()
        if (step + 1) % 5 == 0 and rank == 0:
            print(f"steps: {step + 1} loss: {loss.item():.4f}", flush=True)
            run.add(step + 1, loss.item())
    if rank == 0:
        Truth(run).write()


if __name__ == "__main__":
    main()
