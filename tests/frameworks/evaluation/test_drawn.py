"""Drawn models of the library: what a file keeps of a configuration is the model that was drawn."""

from __future__ import annotations

import json
import random

import pytest
import torch
from transformers import CONFIG_MAPPING

from deepprophet.factories.config_values import values
from evaluation.deepprophet.drawn import library, listed
from evaluation.deepprophet.drawn.listed import Draw, Drawn

META = torch.device("meta")
STUDIED = {drawn.name: drawn for drawn in listed.draws()["studied"].models if drawn.config is not None}


@pytest.mark.parametrize("name", STUDIED)
def test_studied_models_can_be_made_of_their_file(name: str) -> None:
    drawn = STUDIED[name]
    given = library.made(drawn.config, drawn.class_name, drawn.batch_size, drawn.length, META)
    assert type(given.model).__name__ == drawn.class_name
    assert given.batch_size == drawn.batch_size


def test_a_number_without_an_end_is_kept(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listed, "path_of", lambda _: tmp_path / "draw.json")
    config = library.drawn_config("mamba2", random.Random(1))
    listed.write("studied", Draw(1, "", (Drawn("a", "state space", "mamba2", 2, 8, "Mamba2ForCausalLM", config),)))
    (kept,) = json.loads((tmp_path / "draw.json").read_text())["models"]
    made = CONFIG_MAPPING["mamba2"].from_dict(library._numbers(kept["config"]))
    assert values(made)["time_step_limit"][1] == float("inf")
