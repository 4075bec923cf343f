"""Operators that the calibration does not have: measured, kept, predicted by family, or guessed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from deepprophet import engine
from tests.support.frameworks.predicting import Predict, document, known_by


def test_measured_operators_are_kept(predict: Predict, own: Path) -> None:
    asked = ("prophet_subjects:adapted", "--calibration", own, "--json")
    (before,) = document(predict(*asked, "--measure", "0"))["predictions"]
    assert before["unseen_count"] > 0
    assert len(before["unseen_operators"]) == min(before["unseen_count"], 20)
    assert known_by(before) == {"roofline"}
    (measured,) = document(predict(*asked, "--measure", "100"))["predictions"]
    assert measured["unseen_count"] == before["unseen_count"]
    assert known_by(measured) == {"measured"}
    assert measured["cost_shares"]["measured"] > 0
    (after,) = document(predict(*asked))["predictions"]
    assert after["unseen_count"] == 0
    assert after["cost_shares"]["table"] == pytest.approx(1.0)
    assert after["iteration_seconds"] == pytest.approx(measured["iteration_seconds"])


def test_what_was_measured_is_kept_where_a_later_size_fails(predict: Predict, own: Path) -> None:
    asked = ("prophet_subjects:failing_at_9", "--calibration", own, "--json")
    status, _, errors = predict(*asked, "--batch-size", "7,9", "--measure", "100")
    assert status == 2 and "no nine here" in errors
    (after,) = document(predict(*asked, "--batch-size", "7", "--measure", "0"))["predictions"]
    assert after["unseen_count"] == 0


def test_without_a_word_a_prediction_measures_and_keeps_nothing(predict: Predict, own: Path) -> None:
    before = own.read_bytes()
    told = document(predict("prophet_subjects:adapted", "--calibration", own, "--json"))
    (one,) = told["predictions"]
    assert "measured" in known_by(one)
    assert one["cost_shares"]["measured"] > 0
    assert own.read_bytes() == before
    _, lines, _ = predict("prophet_subjects:adapted", "--calibration", own)
    assert "measured just now" in lines


def test_without_a_word_a_prediction_measures_for_as_long_as_there_is_time(predict: Predict, own: Path) -> None:
    told = document(
        predict("evaluation.deepprophet.models:resnet50", "--calibration", own, "--json", "--batch-size", "64")
    )
    (one,) = told["predictions"]
    # On a machine that is busy all but the measuring may take as long.
    assert told["seconds"]["measuring"] < engine.MEASURED_BY + 1
    assert one["cost_shares"]["roofline"] > 0
    assert one["unseen_count"] > 20


def test_measuring_keeps_to_its_time(predict: Predict, own: Path) -> None:
    told = document(
        predict("evaluation.deepprophet.models:resnet50", "--calibration", own, "--measure", "0.5", "--json")
    )
    assert told["seconds"]["measuring"] < 20
    (one,) = told["predictions"]
    assert one["unseen_count"] > 0
    assert one["cost_shares"]["measured"] > 0


def test_operator_of_an_unknown_family_widens_the_interval_and_is_listed(predict: Predict, calibrated: Path) -> None:
    asked = ("prophet_subjects:known", "--calibration", calibrated)
    (one,) = document(predict(*asked, "--json", "--measure", "0"))["predictions"]
    first, *others = one["unseen_operators"]
    assert (first["operator"], first["known_by"]) == ("prophet_tests.thrice float32[3,4]", "guess")
    assert {part["known_by"] for part in others} == {"roofline"}
    assert one["cost_shares"]["guess"] > 0
    (measured,) = document(predict(*asked, "--json"))["predictions"]
    named = {part["operator"]: part["known_by"] for part in measured["unseen_operators"]}
    assert named["prophet_tests.thrice float32[3,4]"] == "measured"
    for more in ([], ["--workers", "1,2"]):
        _, told, _ = predict(*asked, "--measure", "0", *more)
        lines = dict(re.split(r"  +", line, maxsplit=1) for line in told.splitlines() if " has more time" in line)
        assert "prophet_tests.thrice float32[3,4]" in lines["unknown family"]
        assert "thrice" not in lines["never measured"]
        assert "predicted by family" in lines["never measured"]


def test_calibration_of_another_device_is_told_and_not_added_to(predict: Predict, own: Path) -> None:
    document = json.loads(own.read_text())
    here, document["provenance"]["device"] = document["provenance"]["device"], "Abacus 3000"
    own.write_text(json.dumps(document))
    status, out, _ = predict("prophet_subjects:adapted", "--calibration", own, "--json")
    assert status == 0
    assert any("Abacus 3000" in note and here in note for note in json.loads(out)["notes"])
    assert known_by(json.loads(out)["predictions"][0]) == {"roofline"}
    before = own.read_bytes()
    status, _, errors = predict("prophet_subjects:adapted", "--calibration", own, "--measure", "1")
    assert status == 2 and "Abacus 3000" in errors
    assert own.read_bytes() == before
