"""Tiny real trainings on scikit-learn's digits, one a framework; each takes its framework's callback, or none."""

from __future__ import annotations

import logging
import os
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "torch")

import torch
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

TRAINING = 1400
BATCH = 100


def digits() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Pictures and labels to train with, then those to test with."""
    data = load_digits()
    pictures = torch.tensor(data.data / 16.0, dtype=torch.float32)
    labels = torch.tensor(data.target, dtype=torch.long)
    return pictures[:TRAINING], labels[:TRAINING], pictures[TRAINING:], labels[TRAINING:]


def network() -> torch.nn.Module:
    torch.manual_seed(1)
    return torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))


def accuracy(model: torch.nn.Module, pictures: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return (model(pictures).argmax(1) == labels).float().mean()


def plain(steps: int, *, watch: Any = None, every: int = 14) -> float:
    """A plain loop; ``watch``: makes the watch of an optimiser. The accuracy in the end."""
    pictures, labels, test_pictures, test_labels = digits()
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    watched = watch(optimizer) if watch is not None else None
    for step in range(steps):
        begin = step * BATCH % TRAINING
        loss = torch.nn.functional.cross_entropy(model(pictures[begin : begin + BATCH]), labels[begin : begin + BATCH])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if watched is not None and (step + 1) % every == 0:
            watched.metric(accuracy(model, test_pictures, test_labels))
    if watched is not None:
        watched.end()
    return float(accuracy(model, test_pictures, test_labels))


def keras(epochs: int, *callbacks: Any) -> float:
    """Keras's ``fit``. The held-out accuracy in the end."""
    import keras as library

    pictures, labels, test_pictures, test_labels = (tensor.numpy() for tensor in digits())
    library.utils.set_random_seed(1)
    model = library.Sequential(
        [library.layers.Input((64,)), library.layers.Dense(32, activation="relu"), library.layers.Dense(10)]
    )
    loss = library.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=library.optimizers.SGD(0.5), loss=loss, metrics=["accuracy"])
    history = model.fit(
        pictures, labels, batch_size=BATCH, epochs=epochs, verbose=0, callbacks=list(callbacks), shuffle=False,
        validation_data=(test_pictures, test_labels),
    )  # fmt: skip
    return float(history.history["val_accuracy"][-1])


def lightning(epochs: int, folder: Path, *callbacks: Any) -> float:
    """Lightning's Trainer. The held-out accuracy in the end."""
    import lightning.pytorch as library

    class Module(library.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = network()

        def training_step(self, batch: Any, _index: int) -> torch.Tensor:
            return torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1])

        def validation_step(self, batch: Any, _index: int) -> None:
            self.log("val_accuracy", accuracy(self.model, *batch))

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.5)

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    pictures, labels, test_pictures, test_labels = digits()
    trainer = library.Trainer(
        max_epochs=epochs, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, default_root_dir=folder, callbacks=list(callbacks),
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer.fit(
            Module(),
            DataLoader(TensorDataset(pictures, labels), batch_size=BATCH),
            DataLoader(TensorDataset(test_pictures, test_labels), batch_size=1000),
        )
    return float(trainer.callback_metrics["val_accuracy"])


def transformers(steps: int, folder: Path, *callbacks: Any) -> float:
    """Hugging Face's Trainer, of a tiny BERT made from its configuration. The held-out accuracy in the end."""
    import numpy as np
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

    class Pictures(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
        """Each pixel is a word."""

        def __init__(self, pictures: torch.Tensor, labels: torch.Tensor) -> None:
            self._words, self._labels = (pictures * 16).long(), labels

        def __len__(self) -> int:
            return len(self._labels)

        def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
            return {"input_ids": self._words[index], "labels": self._labels[index]}

    torch.manual_seed(1)
    pictures, labels, test_pictures, test_labels = digits()
    config = BertConfig(
        vocab_size=17, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=64, num_labels=10,
    )  # fmt: skip
    arguments = TrainingArguments(
        output_dir=str(folder), max_steps=steps, per_device_train_batch_size=16, eval_strategy="steps",
        eval_steps=max(steps // 2, 1), logging_steps=5, save_strategy="no", report_to="none", use_cpu=True,
        disable_tqdm=True, dataloader_pin_memory=False,
    )  # fmt: skip
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=arguments,
        train_dataset=Pictures(pictures, labels),
        eval_dataset=Pictures(test_pictures[:64], test_labels[:64]),
        compute_metrics=lambda told: {"accuracy": float(np.mean(told.predictions.argmax(1) == told.label_ids))},
        callbacks=list(callbacks),
    )
    trainer.train()
    return float([entry["eval_accuracy"] for entry in trainer.state.log_history if "eval_accuracy" in entry][-1])
