"""What real runs wrote is read as they themselves knew it: language models and JAX."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from host_reporter.formats import names
from tests.support.agent.logs import SAMPLES, parsed

RECORDED = SAMPLES / "recorded"
PRESETS = {
    "deepspeed/stdout.log": "deepspeed",
    "deepspeed-info/stdout.log": "deepspeed",
    "flax/stderr.log": "flax",
    "hugging-face/output.log": "huggingface",
    "hugging-face/out/checkpoint-60/trainer_state.json": "trainer-state",
    "hugging-face-no-bar/stdout.log": "huggingface",
    "hugging-face-torchrun/output.log": "huggingface",
    "llama-factory/output.log": "huggingface",
    "llama-factory/out/trainer_log.jsonl": "llama-factory",
    "llama-factory/out/trainer_state.json": "trainer-state",
    "nemo/output.log": "nemo",
    "opennmt/output.log": "opennmt",
}


def truth(path: str) -> Any:
    folder, _, file = path.partition("/")
    return json.loads((RECORDED / folder / "about.json").read_text())["files"][file]


@pytest.mark.parametrize("path", PRESETS)
def test_a_recording_is_recognised_and_read(path: str) -> None:
    found, known = parsed(RECORDED / path), truth(path)
    assert (found.described.preset, found.described.is_guess) == (PRESETS[path], False)
    assert names.same(str(found.described.metric), known["metric"])
    assert found.described.direction == known["direction"]
    assert found.described.counts_epochs == (known["counts"] == "epochs")
    if known["counts"] == "steps":
        assert found.described.iterations in (None, known["iterations"])
    assert found.problem is None
    (run,) = found.runs
    read = [(point.iteration, point.metric) for point in run if point.metric is not None]
    place = -1
    for iteration, value in known["points"]:
        place = next(i for i in range(place + 1, len(read)) if math.isclose(read[i][1], value, rel_tol=5e-3))
        assert read[place][0] == iteration
