"""``trainyard predict transformers:NAME``: models of the library with random weights, and what cannot be made up."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import (
    BertConfig,
    LlamaConfig,
    MarianConfig,
    PatchTSTConfig,
    ResNetConfig,
    T5Config,
    TimesFmConfig,
    Wav2Vec2Config,
    XLNetConfig,
)

from deepprophet.factories import transformers_models
from deepprophet.factories.load import load_subject
from deepprophet.graph.trace import OF_OUTPUTS, trace
from tests.support.frameworks.predicting import Predict, document
from tests.support.frameworks.running_operators import forget, really

SMALL = {
    "bert": BertConfig(hidden_size=24, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48, vocab_size=90),
    "llama": LlamaConfig(
        hidden_size=24, num_hidden_layers=2, num_attention_heads=2, intermediate_size=48, vocab_size=90
    ),
    "resnet": ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic"),
}


LIKE_NO_OTHER = {
    "t5": T5Config(d_model=24, d_kv=12, d_ff=48, num_layers=1, num_heads=2, vocab_size=90),
    "marian": MarianConfig(
        d_model=24, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2,
        encoder_ffn_dim=48, decoder_ffn_dim=48, vocab_size=90, pad_token_id=0,
    ),
    "xlnet": XLNetConfig(d_model=24, n_layer=1, n_head=2, d_inner=48, vocab_size=90),
    "timesfm": TimesFmConfig(
        hidden_size=24, num_hidden_layers=1, num_attention_heads=2, head_dim=12, intermediate_size=24
    ),
    "patchtst": PatchTSTConfig(d_model=24, num_hidden_layers=1, num_attention_heads=2, ffn_dim=48),
    "wav2vec2": Wav2Vec2Config(
        hidden_size=24, num_hidden_layers=1, num_attention_heads=2, intermediate_size=48, classifier_proj_size=8,
        conv_dim=[8, 8], conv_stride=[5, 4], conv_kernel=[10, 8], num_feat_extract_layers=2,
        num_conv_pos_embeddings=4, num_conv_pos_embedding_groups=2,
    ),
}  # fmt: skip


@pytest.fixture(params=SMALL)
def config(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    SMALL[request.param].save_pretrained(tmp_path)
    return tmp_path / "config.json"


def test_one_line_predicts_a_type_of_model(predict: Predict, calibrated: Path) -> None:
    asked = ("transformers:vit-tiny", "--calibration", calibrated, "--batch-size", "8", "--measure", "0", "--json")
    told = document(predict(*asked))
    (one,) = told["predictions"]
    assert (one["model"], one["batch_size"]) == ("transformers:vit-tiny", 8)
    # DeiT-Ti has 5.7 million parameters; with two classes instead of a thousand it is 5.5.
    assert one["gradient_bytes"] == pytest.approx(4 * 5.53e6, rel=0.01)
    assert one["registration"]["model"] == "transformers:vit-tiny"


def test_a_configuration_is_predicted_as_it_trains(config: Path) -> None:
    """With weights that have no values the operators are those of the model with real ones."""
    without = trace(load_subject(f"transformers:{config}", 3))
    real = trace(transformers_models.load(str(config), 3, None, torch.device("cpu")))
    assert [operator.key for operator in without.operators] == [operator.key for operator in real.operators]
    assert without.parameters == real.parameters
    assert without.batch_size == 3
    assert {operator.phase for operator in without.operators} == {"forward", "backward", "optimizer"}


def test_the_traced_operators_are_those_that_run(config: Path) -> None:
    """But for the value of a tensor that the library asks for, which only a real one has."""
    given = transformers_models.load(str(config), 3, None, torch.device("cpu"))

    def named(keys: list[str]) -> list[str]:
        return [name for name in map(forget, keys) if not name.startswith("aten._local_scalar_dense")]

    assert named([operator.key for operator in trace(given).operators]) == named(really(given, "sgd"))


@pytest.mark.parametrize("kind", LIKE_NO_OTHER)
def test_types_that_need_more_than_others(kind: str, tmp_path: Path) -> None:
    """A first token of answers, labels under another name, lengths without a limit, and masks that are chance.

    Each has a loss of its own.
    """
    LIKE_NO_OTHER[kind].save_pretrained(tmp_path)
    given = load_subject(f"transformers:{tmp_path}", 2)
    graph = trace(given)
    assert OF_OUTPUTS not in graph.notes
    assert any("apply_spec_augment is off" in note for note in given.notes) == (kind == "wav2vec2")


def test_the_folder_of_a_configuration_is_as_good(config: Path) -> None:
    assert (
        trace(load_subject(f"transformers:{config.parent}")).parameters
        == trace(load_subject(f"transformers:{config}")).parameters
    )


def test_the_class_can_be_said(tmp_path: Path) -> None:
    SMALL["bert"].save_pretrained(tmp_path)
    named = load_subject(f"transformers:{tmp_path}:BertForSequenceClassification", 4)
    assert type(named.model).__name__ == "BertForSequenceClassification"
    assert named.batch.options["labels"].shape == (4,)
    assert type(load_subject(f"transformers:{tmp_path}").model).__name__ == "BertForMaskedLM"


def test_examples_have_as_many_tokens_as_are_asked_for(tmp_path: Path) -> None:
    SMALL["llama"].save_pretrained(tmp_path)
    assert load_subject(f"transformers:{tmp_path}", 2).batch.options["input_ids"].shape == (2, 128)
    assert load_subject(f"transformers:{tmp_path}", 2, 40).batch.options["labels"].shape == (2, 40)


def test_the_loss_is_the_models_own(tmp_path: Path) -> None:
    SMALL["bert"].save_pretrained(tmp_path)
    names = [operator.key for operator in trace(load_subject(f"transformers:{tmp_path}", 2)).operators]
    assert any("nll_loss_forward" in name for name in names)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "it must be transformers:NAME, such as transformers:vit-tiny"),
        ("bertt", "no type of model; like it are bert"),
        ("nobody/has-this", "no type of model"),
        ("bert:BertForNothing", "transformers has no class BertForNothing of models"),
        ("bert:Trainer", "transformers has no class Trainer of models"),
        ("resnet-tiny", "resnet has no one width that a size could change"),
        ("decision_transformer", "which cannot be made up; write a factory"),
    ],
)
def test_what_cannot_be_made(predict: Predict, calibrated: Path, name: str, said: str) -> None:
    status, out, errors = predict(f"transformers:{name}", "--calibration", calibrated, "--json")
    assert (status, out) == (2, "")
    assert errors.startswith(f"predict: transformers:{name}: ")
    assert errors.count("\n") == 1
    assert said in errors


def test_length_is_of_transformers_alone(predict: Predict, calibrated: Path) -> None:
    status, _, errors = predict("prophet_subjects:watched", "--calibration", calibrated, "--length", "9")
    assert status == 2
    assert "--length is of transformers:NAME" in errors
    status, _, errors = predict("transformers:bert", "--calibration", calibrated, "--length", "9000")
    assert status == 2
    assert "--length 9000: an example of this model has at most 512 tokens" in errors
