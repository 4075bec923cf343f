"""``trainyard predict --mapping`` and ``--device-sheet``: from files to predictions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.frameworks.predicting import Predict, document

LAYERED = "prophet_subjects:layered"


@pytest.fixture
def mapping(tmp_path: Path) -> Path:
    return tmp_path / "mapping.yaml"


def test_gradients_are_added_up_and_modules_run_again(predict: Predict, calibrated: Path, mapping: Path) -> None:
    # Without an optimiser: it steps once in both, and its share of the time depends on the calibration.
    asked = (LAYERED, "--calibration", calibrated, "--optimizer", "none", "--measure", "0", "--workers", "2", "--json")
    (plain,) = document(predict(*asked))["predictions"]
    mapping.write_text("accumulate: 4\ncheckpoint: [blocks.*]\n")
    (mapped,) = document(predict(*asked, "--mapping", mapping))["predictions"]
    assert mapped["bytes_per_iteration"] == plain["bytes_per_iteration"]
    assert mapped["examples_per_iteration"] == 4 * plain["examples_per_iteration"]
    assert mapped["model_compute_seconds"][0] > 4 * plain["model_compute_seconds"][0]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("fsdp: {units: [blocks.*]}", {"gather", "scatter"}),
        ("pipeline: {stages: [[first, blocks.0], [blocks.1, last]], micro_batches: 3}", {"send 1 to 2", "send 2 to 1"}),
    ],
)
def test_a_model_in_parts(predict: Predict, calibrated: Path, mapping: Path, text: str, parts: set[str]) -> None:
    mapping.write_text(text)
    picture = mapping.with_name("iteration.png")
    asked = (LAYERED, "--calibration", calibrated, "--measure", "0", "--workers", "2", "--json", "--mapping", mapping)
    (one,) = document(predict(*asked, "--link-rate", "1e6", "--timeline", picture))["predictions"]
    assert {part["name"] for part in one["critical_path"]} & parts
    assert picture.stat().st_size > 1000
    assert one["registration"]["demand"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("accumulate: x", "mapping.yaml:1: accumulate: "),
        ("checkpoint: [layers.*]", "the mapping's checkpoint: no module of the model is named layers.*"),
        (
            "pipeline: {stages: [[first], [blocks.*], [last]]}",
            "--workers 2: the mapping needs 3 workers for the model once",
        ),
    ],
)
def test_wrong_mapping(predict: Predict, calibrated: Path, mapping: Path, text: str, said: str) -> None:
    mapping.write_text(text)
    asked = (LAYERED, "--calibration", calibrated, "--measure", "0", "--workers", "2", "--mapping", mapping)
    status, out, errors = predict(*asked)
    assert (status, out) == (2, "")
    assert errors.count("\n") == 1
    assert said in errors


def test_a_device_by_its_sheet(predict: Predict, tmp_path: Path) -> None:
    sheet = tmp_path / "device.yaml"
    sheet.write_text("name: Abacus\nflops_per_second: {fp32: 1.0e+13}\nmemory_bytes_per_second: 1.0e+12\n")
    told = document(predict(LAYERED, "--device-sheet", sheet, "--json"))
    (one,) = told["predictions"]
    low, high = one["interval_seconds"]
    assert low < one["iteration_seconds"] / 2.5 and high > 2.5 * one["iteration_seconds"]
    assert one["cost_shares"]["roofline"] == pytest.approx(1.0)
    assert any("known by a sheet" in note for note in told["notes"])
    assert any("the operators are those that PyTorch runs on cpu" in note for note in told["notes"])
    assert not any("PyTorch" in note and "calibrate again" in note for note in told["notes"])
    for more, name in ((("--measure", "1"), "measure"), (("--calibration", sheet), "calibration")):
        status, _, errors = predict(LAYERED, "--device-sheet", sheet, *more)
        assert status == 2
        assert f"--device-sheet is instead of a calibration; leave --{name} out" in errors
