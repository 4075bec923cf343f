"""``trainyard predict`` with PyTorch: from a calibration of this very device to predictions, and every wrong input."""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch

from controller.wire import JobSpec
from deepprophet import command, engine, factory_main
from deepprophet.costs import store
from deepprophet.device.loop import iteration, timed
from deepprophet.graph.subject import subject
from evaluation.deepprophet import models
from tests.support.paths import SUPPORT

HERE = SUPPORT / "frameworks"
CPU = torch.device("cpu")


@pytest.fixture
def own(calibrated: Path, tmp_path: Path) -> Path:
    """A copy to write to."""
    copy = tmp_path / "device.json"
    copy.write_bytes(calibrated.read_bytes())
    return copy


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    threads = torch.get_num_threads()
    monkeypatch.setenv(store.FOLDER_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(HERE))
    yield
    torch.set_num_threads(threads)


Predict = Callable[..., tuple[int, str, str]]


@pytest.fixture
def predict(capsys: pytest.CaptureFixture[str]) -> Predict:
    """Exit status, stdout and stderr of the command, without the process that it has for a factory."""

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        parser = argparse.ArgumentParser(prog="trainyard")
        command.add_command(parser.add_subparsers(required=True))
        options = parser.parse_args(["predict", *map(str, arguments)])
        if options.calibrate:
            status, out = options.run(options), ""
        else:
            answer = factory_main.predict(options, time.perf_counter(), lambda _doing, _theirs: None)
            status, out = answer.status, answer.out
            if answer.problem:
                sys.stderr.write(f"predict: {answer.problem}\n")
        told = capsys.readouterr()
        assert "Traceback" not in told.err
        return status, out + told.out, told.err

    return run


def document(told: tuple[int, str, str]) -> dict[str, Any]:
    assert told[0] == 0, told[2]
    return json.loads(told[1])


def test_calibration_knows_where_it_comes_from(calibrated: Path) -> None:
    known = store.read(calibrated, "this", 1)
    assert known.provenance.cores == len(os.sched_getaffinity(0))
    assert known.provenance.quick
    assert {one.neighbours for one in known.contexts} == {0, max(known.provenance.cores - 1, 0)}
    assert known.collective is not None
    assert known.collective.message > 0
    families = {one.family for one in known.rooflines}
    assert {"matmul", "conv-spatial", "conv-grad-spatial", "elementwise", "copy", "view"} <= families
    assert {one.dtype for one in known.rooflines} >= {"float32", "bfloat16"}


def test_prediction_runs_no_training_step(predict: Predict, calibrated: Path) -> None:
    # The command imports the factories' module by this name, which is another copy than that of this test.
    subjects = import_module("prophet_subjects")
    subjects.SEEN.clear()
    told = document(predict("prophet_subjects:watched", "--calibration", calibrated, "--json"))
    assert set(subjects.SEEN) == {"FakeTensor"}
    assert all(parameter.grad is None for parameter in subjects.MODELS[-1].parameters())
    (one,) = told["predictions"]
    assert one["iteration_seconds"] > 0
    assert one["interval_seconds"][0] <= one["iteration_seconds"] <= one["interval_seconds"][1]
    assert one["batch_size"] == 6
    assert told["calibration"]["file"] == str(calibrated)


@pytest.mark.parametrize("name", ["mlp-wide", "alexnet"])
def test_prediction_is_near_what_happens(predict: Predict, own: Path, name: str) -> None:
    """Within a factor that a busy machine keeps: how near it is on a quiet one the evaluation measures."""
    torch.set_num_threads(1)
    run = iteration(subject(models.factory(name)(32)), "sgd", CPU)
    before = statistics.median(timed(run, CPU, seconds=1.0))
    factory = f"evaluation.deepprophet.models:{name.replace('-', '_')}"
    (one,) = document(predict(factory, "--calibration", own, "--measure", "--json"))["predictions"]
    after = statistics.median(timed(run, CPU, seconds=1.0))
    assert min(before, after) / 4 < one["iteration_seconds"] < max(before, after) * 4


def known_by(prediction: dict[str, Any]) -> set[str]:
    return {part["known_by"] for part in prediction["unseen_operators"]}


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


def test_what_if(predict: Predict, calibrated: Path) -> None:
    told = document(
        predict(
            "prophet_subjects:sized", "--calibration", calibrated, "--json", "--batch-size", "8,32", "--measure", "0",
            "--dtype", "fp32,bf16",
            "--workers", "1,2,4", "--architecture", "ring,ps", "--link-rate", "1e6,1e7",
        )
    )  # fmt: skip
    found = {
        (p["batch_size"], p["dtype"], p["workers"], p["architecture"], p["link_bps"]): p for p in told["predictions"]
    }
    # A worker alone crosses no link: one prediction for all rates.
    assert len(found) == len(told["predictions"]) == 2 * 2 * (1 + 2 + 2 * 2 * 2)
    gradients = 4 * (12 * 20 + 20 + 20 * 3 + 3)
    ring, half = found[8, "fp32", 2, "ring", 1e6], found[8, "bf16", 2, "ring", 1e6]
    assert ring["bytes_per_iteration"] == 2 * gradients
    assert half["bytes_per_iteration"] == gradients
    assert found[8, "fp32", 4, "ps", 1e6]["bytes_per_iteration"] == 8 * gradients
    slow, fast = (
        ring["exposed_communication_seconds"],
        found[8, "fp32", 2, "ring", 1e7]["exposed_communication_seconds"],
    )
    assert slow > fast > 0
    assert slow == pytest.approx(gradients * 8 / 0.95e6, rel=0.3)
    servers = found[8, "fp32", 4, "ps", 1e6]["exposed_communication_seconds"]
    assert servers > 3 * slow
    assert {p["batch_size"] for p in told["predictions"]} == {8, 32}


def test_batch_size_without_a_word_from_the_factory(predict: Predict, calibrated: Path) -> None:
    told = document(
        predict(
            "prophet_subjects:adapted", "--calibration", calibrated, "--json", "--batch-size", "4,64", "--measure", "0"
        )
    )
    small, large = told["predictions"]
    assert (small["batch_size"], large["batch_size"]) == (4, 64)
    assert large["model_compute_seconds"][0] > small["model_compute_seconds"][0]


def test_described_network_registration_and_picture(predict: Predict, calibrated: Path, tmp_path: Path) -> None:
    net = tmp_path / "net.yaml"
    net.write_text(
        "hosts:\n  - {name: gpu01, ingress_bps: 1.0e+5, egress_bps: 1.0e+5}\n"
        "  - {name: gpu02, ingress_bps: 1.0e+5, egress_bps: 1.0e+5}\n"
        "loads:\n  - {src: gpu01, dst: gpu02, bps: 5.0e+4}\n"
    )
    asked = ("prophet_subjects:watched", "--calibration", calibrated, "--network", net, "--workers", "2")
    spec, picture = tmp_path / "job.json", tmp_path / "iteration.png"
    (busy,) = document(predict(*asked, "--registration", spec, "--timeline", picture, "--iterations", "500", "--json"))[
        "predictions"
    ]
    registered = JobSpec.model_validate_json(spec.read_text())
    assert registered == JobSpec.model_validate_json(json.dumps(busy["registration"]))
    assert {(part.src, part.dst) for part in registered.demand} == {("gpu01", "gpu02"), ("gpu02", "gpu01")}
    assert registered.iterations == 500
    assert registered.compute_seconds == pytest.approx(busy["compute_seconds"])
    assert picture.read_bytes().startswith(b"\x89PNG")
    net.write_text(net.read_text().partition("loads")[0])
    (quiet,) = document(predict(*asked, "--json"))["predictions"]
    # On links this slow what a collective costs beside its bytes, which a busy machine's calibration overstates, is
    # a small part.
    assert busy["exposed_communication_seconds"] > 1.5 * quiet["exposed_communication_seconds"]


def test_lines_for_people(predict: Predict, calibrated: Path) -> None:
    status, lines, errors = predict("prophet_subjects:partly_used", "--calibration", calibrated, "--workers", "2")
    assert (status, errors) == (0, "")
    for word in (
        "iteration",
        "compute",
        "exposed communication",
        "critical path",
        "bytes an iteration",
        "measured just now",
    ):
        assert any(line.startswith(word) for line in lines.splitlines())
    assert "spare.weight" in lines
    assert "find_unused_parameters" in lines


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
        ("wrong", ["aten.mm", "cannot be traced"], "shapes that do not fit"),
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


def test_loss_of_the_factory_and_a_batch_of_keywords(predict: Predict, calibrated: Path) -> None:
    (one,) = document(predict("prophet_subjects:labelled", "--calibration", calibrated, "--json"))["predictions"]
    assert one["batch_size"] == 6


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

    monkeypatch.setattr("deepprophet.graph.subject.load", nobody)
    target = tmp_path / "missing" / "x.png"
    status, _, errors = predict("prophet_subjects:watched", "--calibration", calibrated, "--timeline", target)
    assert status == 2
    assert f"there is no folder {target.parent}" in errors
    assert not target.parent.exists()
    monkeypatch.setattr("deepprophet.device.calibration_run.Calibrator", nobody)
    status, _, errors = predict("--calibrate", "--calibration", target)
    assert status == 2
    assert f"there is no folder {target.parent}" in errors


def test_thousands_of_workers(predict: Predict, calibrated: Path, tmp_path: Path) -> None:
    most = str(command.MAX_WORKERS)
    asked = ("prophet_subjects:adapted", "--calibration", calibrated, "--json", "--workers", most)
    ring, servers = document(predict(*asked, "--architecture", "ring,ps"))["predictions"]
    assert ring["workers"] == servers["workers"] == command.MAX_WORKERS
    assert len(servers["registration"]["tasks"]) == command.MAX_WORKERS + 1
    net = tmp_path / "net.yaml"
    net.write_text("hosts:\n  - {name: a}\n  - {name: b}\nps: [a, b]\n")
    status, out, errors = predict(*asked, "--architecture", "ps", "--network", net)
    assert (status, out) == (2, "")
    assert errors == "predict: 4095 workers and 2 parameter servers: a job has at most 4096 processes\n"


def test_latency_at_its_bound(predict: Predict, calibrated: Path) -> None:
    asked = ("prophet_subjects:watched", "--calibration", calibrated, "--json", "--workers", "2", "--latency", "10")
    (one,) = document(predict(*asked))["predictions"]
    assert one["exposed_communication_seconds"] > 10


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
