"""LLaMA-Factory's fine-tuning of a tiny LLaMA with random weights: its lines, trainer_log.jsonl, trainer_state.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from llamafactory.train.tuner import run_exp
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast, TrainerCallback

from evaluation.logs.truth import Series, Truth

STEPS = 30
SPECIAL = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
WORDS = [*SPECIAL.values(), *map(str, range(60))]
OPTIONS = {
    "model_name_or_path": "tiny", "stage": "sft", "do_train": True, "finetuning_type": "full", "dataset": "numbers",
    "dataset_dir": "data", "template": "empty", "cutoff_len": 64, "output_dir": "out", "logging_steps": 5,
    "per_device_train_batch_size": 4, "learning_rate": 3e-3, "max_steps": STEPS, "val_size": 0.2,
    "eval_strategy": "steps", "eval_steps": 10, "report_to": "none", "use_cpu": True, "overwrite_cache": True,
    "dataloader_num_workers": 0, "preprocessing_num_workers": 1, "save_strategy": "no",
}  # fmt: skip


class Watch(TrainerCallback):
    """Notes each held-out loss."""

    def __init__(self) -> None:
        self.run = Series("eval_loss", "min", STEPS)

    def on_evaluate(self, args: Any, state: Any, control: Any, **named: Any) -> None:
        """The Trainer calls this after an evaluation; at the end it evaluates once more."""
        del args, control
        if not self.run.points or self.run.points[-1][0] < state.global_step:
            self.run.add(state.global_step, named["metrics"]["eval_loss"])


def write_model() -> None:
    """Write a model of one layer, its tokenizer of whole words, and a data set of counting."""
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token=WORDS[0]))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **SPECIAL).save_pretrained("tiny")
    config = LlamaConfig(
        vocab_size=len(WORDS), hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2
    )
    LlamaForCausalLM(config).save_pretrained("tiny")
    Path("data").mkdir()
    examples = [
        {"instruction": str(start), "input": "", "output": " ".join(str((start + step) % 60) for step in range(1, 9))}
        for start in range(60)
    ]
    Path("data/numbers.json").write_text(json.dumps(examples))
    Path("data/dataset_info.json").write_text(json.dumps({"numbers": {"file_name": "numbers.json"}}))


def main() -> None:
    """Make the model, and train it for STEPS steps."""
    write_model()
    watch = Watch()
    run_exp(dict(OPTIONS), [watch])
    Truth(watch.run, {f"out/{name}": watch.run for name in ("trainer_log.jsonl", "trainer_state.json")}).write()


if __name__ == "__main__":
    main()
