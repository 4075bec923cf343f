"""``trainyard predict`` with PyTorch: from a calibration of this very device to predictions."""

from __future__ import annotations

import json
import os
import statistics
from importlib import import_module
from pathlib import Path

import pytest
import torch

from controller.wire import JobSpec
from deepprophet import command
from deepprophet.costs import store
from deepprophet.device.loop import iteration, timed
from deepprophet.graph.subject import subject
from evaluation.deepprophet import models
from tests.support.frameworks.predicting import Predict, document

CPU = torch.device("cpu")


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


def test_loss_of_the_factory_and_a_batch_of_keywords(predict: Predict, calibrated: Path) -> None:
    (one,) = document(predict("prophet_subjects:labelled", "--calibration", calibrated, "--json"))["predictions"]
    assert one["batch_size"] == 6


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
