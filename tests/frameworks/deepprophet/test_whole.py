"""DeepProphet's processes: a calibration that is stopped, a busy core, and factories that do what they should not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deepprophet.costs.calibration_journal import SUFFIX
from tests.support.paths import ROOT, SUPPORT

HERE = SUPPORT / "frameworks"

CALIBRATE = [sys.executable, "-m", "deepprophet", "--calibrate", "--quick", "--json", "--calibration"]


def test_a_calibration_that_is_stopped_goes_on_from_there(calibrated: Path, tmp_path: Path) -> None:
    path = tmp_path / "device.json"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}

    def started() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*CALIBRATE, str(path)], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip

    def told_until(process: subprocess.Popen[str], words: str) -> list[str]:
        assert process.stderr is not None
        told = []
        for line in process.stderr:
            told.append(line)
            if words in line:
                return told
        raise AssertionError("".join(told))

    first = started()
    told = told_until(first, "operators alone: 100 of")
    every = int(told[-1].split(" of ")[1].split(";")[0])
    first.send_signal(signal.SIGKILL)
    first.communicate()
    second = started()
    told = told_until(second, "going on from an earlier calibration: ")
    kept = int(told[-1].split("calibration: ")[1].split()[0])
    assert kept >= 100
    told = told_until(second, "operators alone: ")
    left = int(told[-1].split(" of ")[1].split(";")[0])
    second.send_signal(signal.SIGINT)
    _, errors = second.communicate()
    assert second.returncode == 130
    assert "kept so far: " in errors and "the same command goes on from there" in errors
    # What was kept was not measured again: together they are what is measured alone.
    assert left + kept == every
    assert path.with_name(path.name + SUFFIX).exists() and not path.exists()
    assert not calibrated.with_name(calibrated.name + SUFFIX).exists()


MEASURES = """
import os, sys
import torch
from deepprophet.device import bench
from deepprophet.graph.spec import Call, TensorSpec
torch.set_num_threads(1)
os.sched_setaffinity(0, {int(sys.argv[1])})
key = Call("aten.mm.default", (TensorSpec("float32", (700, 700)),) * 2, {}).key()
print(sum(bench.measure(key, torch.device("cpu"), bench.Effort(seconds=0.1)).disturbed for _ in range(3)))
"""


def test_an_operator_that_shares_its_core_is_seen_to_be_disturbed() -> None:
    core = max(os.sched_getaffinity(0))
    loaders = [
        subprocess.Popen([sys.executable, "-c", f"import os\nos.sched_setaffinity(0, {{{core}}})\nwhile True: pass"])
        for _ in range(2)
    ]
    try:
        done = subprocess.run(
            [sys.executable, "-c", MEASURES, str(core)],
            cwd=ROOT, capture_output=True, text=True, check=True, timeout=120,
        )  # fmt: skip
    finally:
        for loader in loaders:
            loader.kill()
            loader.wait()
    assert int(done.stdout) > 0


@pytest.mark.parametrize(
    ("factory", "status", "words"),
    [
        ("quitting", 2, "while prophet_subjects:quitting was called the code ended the process with status 0"),
        ("quitting_model", 2, "while an iteration of prophet_subjects:quitting_model was traced the code ended"),
        ("crashing", 2, "while prophet_subjects:crashing was called the process was ended by SIGSEGV"),
        ("odd", 2, "prophet_subjects:odd failed: OddError: strange"),
        ("lingering", 0, ""),
    ],
)
def test_whatever_a_factory_does_the_command_answers(calibrated: Path, factory: str, status: int, words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "deepprophet", f"prophet_subjects:{factory}", "--json", "--measure", "0",
         "--calibration", str(calibrated)],
        cwd=HERE, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    if status:
        assert done.stdout == ""
        assert f"predict: {words}" in done.stderr
    else:
        assert len(json.loads(done.stdout)["predictions"]) == 1


def test_whole_command_in_a_process(calibrated: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "deepprophet", "prophet_subjects:deciding", "--calibration", str(calibrated)],
        cwd=HERE, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1


def test_what_a_model_prints_leaves_stdout_to_the_document(calibrated: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "deepprophet", "prophet_subjects:talking", "--json",
         "--calibration", str(calibrated)],
        cwd=HERE, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["predictions"]) == 1
    for origin in ("the factory", "the model", "Python's own stdout", "below Python", "a process"):
        assert f"from {origin}\n" in done.stderr
