"""``scripts/bench``: what is measured is written as it goes, whatever becomes of the benches that follow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaluation.bench import __main__ as command
from evaluation.bench.figures import Bench, Figure


def good(_folder: Path, _data: Path | None) -> Bench:
    return Bench(
        figures=(Figure("a claim", "a metric", "s", value=1.0, baseline=2.0, baseline_name="a floor", ci95=(0.4, 0.6)),)
    )


def broken(folder: Path, _data: Path | None) -> Bench:
    assert json.loads((folder / "summary.json").read_text())["benches"].keys() == {"first"}
    raise KeyError("nobody expects it")


def test_a_late_fault_costs_its_own_bench_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    benches = {"first": good, "second": broken, "third": good}
    assert command.main(["--results", str(tmp_path)], benches) == 1
    assert json.loads((tmp_path / "summary.json").read_text())["benches"].keys() == {"first", "third"}
    assert "bench second: Traceback" in capsys.readouterr().err
