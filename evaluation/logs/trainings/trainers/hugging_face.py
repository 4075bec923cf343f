"""Hugging Face's Trainer on a tiny GPT-2 with random weights: dict lines, bars, trainer_state.json, TensorBoard."""

from __future__ import annotations

import argparse
import os
import sys

import numpy as np
import torch
import torch.distributed as dist
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

from evaluation.logs.truth import OUTPUT, Series, Truth

WORDS = 32
LENGTH = 16
STEPS = 60
EVERY = 20


class Counting(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    """Sentences of numbers, each one more than the number before, modulo WORDS."""

    def __init__(self, count: int, seed: int) -> None:
        starts = np.random.default_rng(seed).integers(WORDS, size=(count, 1))
        self._words = torch.from_numpy((starts + np.arange(LENGTH)) % WORDS)

    def __len__(self) -> int:
        return len(self._words)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self._words[index], "labels": self._words[index]}


def main() -> None:
    """Train for STEPS steps; the held-out loss is computed every EVERY steps. ``--no-bar`` leaves the bar out.

    The bar alone has steps. The lines have epochs, with fractions.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-bar", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(1)
    config = GPT2Config(
        vocab_size=WORDS, n_positions=LENGTH, n_embd=32, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0
    )
    arguments = TrainingArguments(
        output_dir="out", max_steps=STEPS, per_device_train_batch_size=8, learning_rate=3e-3, eval_strategy="steps",
        eval_steps=EVERY, logging_steps=5, save_strategy="steps", save_steps=STEPS, report_to="tensorboard",
        use_cpu=True, disable_tqdm=options.no_bar, dataloader_pin_memory=False,
    )  # fmt: skip
    trainer = Trainer(
        model=GPT2LMHeadModel(config), args=arguments, train_dataset=Counting(320, 1), eval_dataset=Counting(64, 2)
    )
    trainer.train()
    if int(os.environ.get("RANK", "0")) == 0:
        run = Series("eval_loss", "min", STEPS)
        epochs = Series("eval_loss", "min", trainer.state.epoch, "epochs")
        for entry in trainer.state.log_history:
            if "eval_loss" in entry:
                run.add(entry["step"], entry["eval_loss"])
                epochs.add(entry["epoch"], entry["eval_loss"])
        state = f"out/checkpoint-{STEPS}/trainer_state.json"
        Truth(run, {OUTPUT: epochs if options.no_bar else run, state: run}).write()
    if dist.is_initialized():
        dist.barrier()
        # PyTorch's own threads may abort a rank while its interpreter exits; all is written by then.
        sys.stdout.flush()
        os._exit(0)


if __name__ == "__main__":
    main()
