"""What ``trainyard lab`` says of wrong input, before it starts anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from controller.cli import main

JOB = {
    "id": "a", "arrival": 0.0, "architecture": "ps", "hosts": ["h1", "h2"], "port": 5000, "model": "m",
    "model_bytes": 1000, "compute_seconds": 0.1, "iterations": 10, "curve": "digits-linear-40",
}  # fmt: skip


def spec(path: Path, **changes: Any) -> Path:
    path.write_text(json.dumps({"name": "x", "jobs": [JOB]} | changes, indent=1))
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    status = main(["lab", *map(str, arguments)])
    told = capsys.readouterr()
    return status, told.out, told.err


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"link_bps": -1}, ["spec.yaml:", "link_bps"]),
        ({"linkbps": 1}, ["spec.yaml:", "linkbps", "link_bps"]),
        ({"jobs": []}, ["spec.yaml:", "jobs"]),
        ({"jobs": [JOB | {"hosts": ["h1", "h99"]}]}, ["spec.yaml:", "h99"]),
        ({"jobs": [JOB | {"curve": "digits-linear-4"}]}, ["spec.yaml:", "curve", "did you mean digits-linear-4"]),
        ({"jobs": [JOB | {"curve": "digits-linear-40", "iterations": 9999}]}, ["spec.yaml:", "iterations, not 9999"]),
        ({"jobs": [JOB, JOB]}, ["spec.yaml:", "two jobs are called a"]),
    ],
)
def test_a_wrong_experiment_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], wanted: list[str]
) -> None:
    status, out, err = run(capsys, "--policy", "fair", spec(tmp_path / "spec.yaml", **changes))
    assert status == 2
    assert out == ""
    assert all(part in err for part in wanted), err


def test_an_unknown_policy_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, "--policy", "fairest", spec(tmp_path / "spec.yaml"))
    assert (status, out) == (2, "")
    assert "fairest" in err
    assert "fair" in err


def test_a_missing_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _out, err = run(capsys, "--policy", "fair", tmp_path / "none.yaml")
    assert status == 2
    assert "none.yaml" in err
