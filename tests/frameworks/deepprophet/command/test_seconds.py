"""How long a prediction takes, beside what anybody has to wait for who runs one step of the model: a ratio."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from transformers import BertConfig, MambaConfig, PreTrainedConfig

from tests.support.paths import ROOT
from tests.support.rounds import first_that

SHEET = "name: Abacus\nflops_per_second: {fp32: 1.0e+11}\nmemory_bytes_per_second: 1.0e+10\n"
STEP = """
import sys
import torch
from deepprophet.device.loop import iteration
from deepprophet.factories import transformers_models
torch.set_num_threads(1)
iteration(transformers_models.load(sys.argv[1], 4, None, torch.device("cpu")), "sgd", torch.device("cpu"))()
"""
MODELS = {
    "bert": BertConfig(hidden_size=96, num_hidden_layers=4, num_attention_heads=2, intermediate_size=192),
    "mamba": MambaConfig(hidden_size=96, num_hidden_layers=6, vocab_size=500),
}


def processor_seconds(*arguments: str | Path) -> float:
    """Of a process of its own, with those that it starts, by the processor's time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, check=True, timeout=280,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("name", MODELS)
def test_a_prediction_takes_about_as_long_as_one_step(name: str, tmp_path: Path) -> None:
    """Both load the libraries. Mamba has 26 thousand operators here: to ask for each took twice as long as the step."""
    config: PreTrainedConfig = MODELS[name]
    config.save_pretrained(tmp_path)
    (tmp_path / "sheet.yaml").write_text(SHEET)
    model = f"transformers:{tmp_path}"
    command = ("-m", "deepprophet", model, "--batch-size", "4", "--device-sheet", tmp_path / "sheet.yaml")

    def ratio() -> float:
        return processor_seconds(*command) / processor_seconds("-c", STEP, tmp_path)

    # A processor that others use has less of its cache for one of both.
    assert first_that(lambda found: found < 1.5, ratio) < 1.5
