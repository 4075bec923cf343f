"""The command in this process, with a calibration of this device that a test may write to."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from deepprophet import command, factory_main
from deepprophet.costs import store
from tests.support.frameworks.predicting import HERE, Predict


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
