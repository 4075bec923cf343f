"""Models, factories, calibrations and options that a prediction cannot be made of."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.support.frameworks.predicting import HERE, Predict, document


def line_of(text: str) -> int:
    lines = (HERE / "prophet_subjects.py").read_text().splitlines()
    (found,) = [number for number, line in enumerate(lines, 1) if text in line]
    return found


@pytest.mark.parametrize(
    ("factory", "words", "line"),
    [
        ("selecting", ["aten.", "depends on the data", "static shapes"], "the shape depends on the data"),
        ("deciding", ["aten._local_scalar_dense", "depends on the data"], "what runs depends on the data"),
        ("sparse", ["aten.embedding", "depends on the data", "sparse=False"], "as large as the batch has words"),
        ("sparsening", ["aten.", "depends on the data"], "as large as there are numbers that are not 0"),
        (
            "wrong",
            ["aten.mm.default cannot work on", "float32[3,4], float32[7,7]", "must fit"],
            "shapes that do not fit",
        ),
        ("closing", ["uses a tensor of int64[6]", "put it into the batch", "register it as a buffer"], "closes over"),
        ("foreign", ["cannot be traced"], "leaves PyTorch"),
        ("custom", ["prophet_tests.twice", "fake kernel"], "torch.ops.prophet_tests.twice(self"),
    ],
)
def test_model_that_cannot_be_traced(
    predict: Predict, calibrated: Path, factory: str, words: list[str], line: str
) -> None:
    status, out, errors = predict(f"prophet_subjects:{factory}", "--calibration", calibrated, "--json")
    assert (status, out) == (2, "")
    assert errors.count("\n") == 1
    assert f"prophet_subjects.py:{line_of(line)}: " in errors
    for word in words:
        assert word in errors


@pytest.mark.parametrize(
    ("factory", "said"),
    [
        ("nowhere:make", "no module nowhere"),
        ("prophet_subjects:nothing", "prophet_subjects has no nothing; it has "),
        ("prophet_subjects", "it must be MODULE:FACTORY"),
        ("prophet_subjects:", "it must be MODULE:FACTORY"),
        ("prophet_subjects:NOT_CALLABLE", "must be a function"),
        ("prophet_subjects:failing", "RuntimeError: no data here"),
        ("prophet_subjects:pair_of_numbers", "the model must be a torch.nn.Module; it is a int"),
        ("prophet_subjects:no_tensor", "the batch has no tensor"),
        ("prophet_subjects:frozen", "no parameter gets a gradient"),
        ("prophet_subjects:bad_loss", "the loss must be one number"),
        ("broken_subject:make", "cannot be imported: SyntaxError"),
        ("ending_subject:make", "cannot be imported: it called sys.exit('over'), which ends a program"),
        ("lazy_subject:make", "ImportError: an optional part is missing"),
        ("prophet_subjects:ending", "it called sys.exit(0), which ends a program; it must return instead"),
        ("prophet_subjects:ending_model", "it called sys.exit(0), which ends a program; it must return instead"),
        ("prophet_subjects:no_example", "the batch has no example; it begins with a tensor of shape (0, 12)"),
        ("prophet_subjects:no_number", "the batch has no example; it begins with a tensor of shape (6, 0)"),
        ("prophet_subjects:empty_batch", "the batch has no tensor; it is an empty tuple"),
        ("prophet_subjects:unlabelled", "the batch has 2 parts, and the model's forward takes x: return a loss too"),
        (
            "prophet_subjects:misnamed",
            "the batch has targets, which the model's forward does not take; it takes labels, x",
        ),
        ("prophet_subjects:parallel", "the model is wrapped in DataParallel: give the model inside, its module"),
        ("prophet_subjects:quantised", "its module 1 is quantised (Linear): such weights are not trained"),
        (
            "prophet_subjects:lazy",
            "its tensor 0.weight has no shape yet, because its module is lazy: call the model once",
        ),
        ("prophet_subjects:parameterless", "the model has no parameters, so there is nothing to train"),
        ("prophet_subjects:skipping", "other operators in each iteration, because its code draws random numbers"),
    ],
)
def test_wrong_factory(
    predict: Predict, calibrated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, factory: str, said: str
) -> None:
    (tmp_path / "broken_subject.py").write_text("def make(:\n")
    (tmp_path / "ending_subject.py").write_text("raise SystemExit('over')\n")
    (tmp_path / "lazy_subject.py").write_text(
        "def __getattr__(name):\n    raise ImportError('an optional part is missing')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    status, out, errors = predict(factory, "--calibration", calibrated, "--json")
    assert (status, out) == (2, "")
    assert errors.startswith("predict: ")
    assert errors.count("\n") == 1
    assert said in errors


def test_shapes_that_fit_one_batch_size_only(predict: Predict, calibrated: Path) -> None:
    asked = ("prophet_subjects:counted", "--calibration", calibrated, "--json")
    assert predict(*asked)[0] == 0
    status, out, errors = predict(*asked, "--batch-size", "8")
    assert (status, out) == (2, "")
    assert errors.count("\n") == 1
    assert "the example batch has 6 examples, and was made one of 8: a factory that takes batch_size" in errors


def test_uncalibrated_device(predict: Predict) -> None:
    status, out, errors = predict("prophet_subjects:watched", "--threads", "2", "--json")
    assert (status, out) == (2, "")
    assert errors.count("\n") == 1
    assert "is not calibrated: run trainyard predict --calibrate --threads 2" in errors


def test_broken_calibration(predict: Predict, own: Path) -> None:
    own.write_text(own.read_text().replace('"cores": ', '"cores": -'))
    status, _, errors = predict("prophet_subjects:watched", "--calibration", own)
    assert status == 2
    assert f"{own}: provenance.cores: " in errors


def test_other_pytorch_is_said(predict: Predict, own: Path) -> None:
    own.write_text(own.read_text().replace(torch.__version__, "1.0.0"))
    told = document(predict("prophet_subjects:watched", "--calibration", own, "--json"))
    assert any("PyTorch 1.0.0" in note and "calibrate again" in note for note in told["notes"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--device", "tpu"), "it must be cpu or cuda"),
        (("--network", "/nonexistent.yaml"), "/nonexistent.yaml: cannot be read"),
        (("--timeline", "x.txt"), "it must end with .png"),
        (("--timeline", "x.png", "--workers", "1,2"), "give one value to --workers"),
        (("--registration", "x.json", "--dtype", "fp32,bf16"), "give one value to --dtype"),
        (("--timeline", "nowhere/x.png"), "--timeline nowhere/x.png: there is no folder nowhere; make it first"),
        (("--registration", "nowhere/x.json"), "--registration nowhere/x.json: there is no folder nowhere"),
    ],
)
def test_wrong_options(predict: Predict, calibrated: Path, arguments: tuple[str, ...], said: str) -> None:
    status, out, errors = predict("prophet_subjects:watched", "--calibration", calibrated, *arguments)
    assert (status, out) == (2, "")
    assert said in errors


def test_files_are_looked_at_before_the_work(
    predict: Predict, calibrated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody(*_arguments: object) -> None:
        raise AssertionError("the model was loaded first")

    monkeypatch.setattr("deepprophet.engine.load_subject", nobody)
    target = tmp_path / "missing" / "x.png"
    status, _, errors = predict("prophet_subjects:watched", "--calibration", calibrated, "--timeline", target)
    assert status == 2
    assert f"there is no folder {target.parent}" in errors
    assert not target.parent.exists()
    monkeypatch.setattr("deepprophet.device.calibration_run.Calibrator", nobody)
    status, _, errors = predict("--calibrate", "--calibration", target)
    assert status == 2
    assert f"there is no folder {target.parent}" in errors


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
def test_gpu_that_is_not_there(predict: Predict, calibrated: Path) -> None:
    status, _, errors = predict("prophet_subjects:watched", "--calibration", calibrated, "--device", "cuda")
    assert status == 2
    assert "sees no GPU" in errors


@pytest.mark.parametrize(
    ("factory", "words"),
    [
        ("scripted", "its module part is compiled by TorchScript"),
        ("compiled", "the model is compiled by torch.compile"),
        ("compiled_in_place", "the model is compiled by torch.compile"),
    ],
)
def test_model_whose_operators_cannot_be_seen(predict: Predict, calibrated: Path, factory: str, words: str) -> None:
    status, out, errors = predict(f"prophet_subjects:{factory}", "--calibration", calibrated, "--json")
    assert (status, out) == (2, "")
    assert words in errors and "give the model before that" in errors
    assert errors.count("\n") == 1
