"""MLflow's metric files: the newest run, and its metric."""

from __future__ import annotations

import os
import time
from pathlib import Path

from host_reporter.formats.events import Described, Point
from host_reporter.formats.outputs.line_reader import Declared
from host_reporter.readers.auto import auto_source, kind_of
from host_reporter.readers.location import Location
from host_reporter.readers.sources.mlflow import MlflowSource
from tests.support.agent.sources import events, points


def log(run: Path, name: str, *values: float, age: float = 0.0) -> None:
    path = run / "metrics" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"171456480{i}000 {value} {10 * i}\n" for i, value in enumerate(values)))
    os.utime(run / "metrics", (time.time() - age,) * 2)


def test_the_metric_of_the_newest_run(tmp_path: Path) -> None:
    log(tmp_path / "0" / "aaa", "loss", 9.0, age=100)
    log(tmp_path / "0" / "bbb", "system/cpu", 1.0)
    log(tmp_path / "0" / "bbb", "loss", 0.9, 0.8)
    log(tmp_path / "0" / "bbb", "val_loss", 1.0, 0.95)
    assert kind_of(Location(tmp_path, "mlruns")) == "mlflow"
    found = events(auto_source(Location(tmp_path, "mlruns")))
    assert [e for e in found if isinstance(e, Point)] == [Point(0, 1.0, 1714564800.0), Point(10, 0.95, 1714564801.0)]
    assert [e for e in found if isinstance(e, Described)] == [Described("val_loss", "min", None, "mlflow")]


def test_a_declared_metric_and_none_that_is_known(tmp_path: Path) -> None:
    log(tmp_path / "run", "thing", 0.9, 0.8)
    source = MlflowSource(tmp_path / "run", Declared())
    assert events(source) == []
    assert "declare progress.metric and progress.direction; there are thing" in str(source.problem())
    assert points(MlflowSource(tmp_path / "run", Declared("thing", "max"))) == [(0, 0.9), (10, 0.8)]


def test_one_metric_s_file(tmp_path: Path) -> None:
    log(tmp_path / "run", "val/loss", 0.9, 0.8)
    path = tmp_path / "run" / "metrics" / "val" / "loss"
    assert kind_of(Location(path, str(path))) == "log"
    (tmp_path / "run" / "meta.yaml").write_text("run_id: run\n")
    assert kind_of(Location(path, str(path))) == "mlflow"
    assert points(auto_source(Location(path, str(path)))) == [(0, 0.9), (10, 0.8)]
