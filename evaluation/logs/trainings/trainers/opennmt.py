"""OpenNMT-py's ``onmt_train`` on numbers and their reverse: its lines on standard error, and its log file."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from onmt.bin.build_vocab import main as build_vocab
from onmt.bin.train import main as train
from onmt.trainer import Trainer

from evaluation.logs.truth import Series, Truth

STEPS = 60
CONFIG = {
    "save_data": "words/data",
    "src_vocab": "words/src.txt",
    "tgt_vocab": "words/tgt.txt",
    "data": {
        "corpus": {"path_src": "train.src", "path_tgt": "train.tgt"},
        "valid": {"path_src": "valid.src", "path_tgt": "valid.tgt"},
    },
}
OPTIONS = {
    "save_model": "model", "log_file": "train.log", "train_steps": STEPS, "valid_steps": 20, "report_every": 10,
    "encoder_type": "transformer", "decoder_type": "transformer", "hidden_size": 32, "word_vec_size": 32, "layers": 1,
    "heads": 2, "transformer_ff": 32, "batch_size": 16, "valid_batch_size": 16, "optim": "adam", "learning_rate": 0.01,
    "seed": 1, "num_workers": 0, "save_checkpoint_steps": 1000,
}  # fmt: skip


def write_sentences() -> None:
    """Write sentences of numbers, and the same words in reverse."""
    generator = np.random.default_rng(1)
    for name, count in (("train", 400), ("valid", 64)):
        sentences = [generator.integers(20, size=generator.integers(3, 8)).astype(str).tolist() for _ in range(count)]
        Path(f"{name}.src").write_text("".join(" ".join(words) + "\n" for words in sentences))
        Path(f"{name}.tgt").write_text("".join(" ".join(words[::-1]) + "\n" for words in sentences))


def call(command: Any, settings: dict[str, Any], *arguments: str) -> None:
    """Run one of OpenNMT's commands here, with its settings in a file."""
    Path("settings.yaml").write_text(json.dumps(settings))
    sys.argv = ["onmt", "-config", "settings.yaml", *arguments]
    command()


def main() -> None:
    """Count the words, then train; what each validation finds is noted beside."""
    write_sentences()
    call(build_vocab, CONFIG, "-n_sample", "-1")
    run = Series("validation perplexity", "min", STEPS)
    validate = Trainer.validate

    def noted(self: Any, *arguments: Any, **named: Any) -> Any:
        statistics = validate(self, *arguments, **named)
        run.add(self.optim.training_step - 1, statistics.ppl())
        return statistics

    Trainer.validate = noted
    call(train, CONFIG | OPTIONS)
    # The log file ends where the training begins: OpenNMT sets its logging up once more.
    Truth(run).write()


if __name__ == "__main__":
    main()
