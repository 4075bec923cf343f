"""What was answered is not lost: an agent does not tell it again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluation.bench.support.api_client import Controller
from tests.support.controller.api.cases import batch, spec


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Controller]:
    yard = Controller(tmp_path, journal=str(tmp_path / "j.db"), token=False)
    yield yard.start()
    yard.stop()


def seconds_of_a_report(yard: Controller, job: dict[str, Any]) -> float:
    began = time.perf_counter()
    assert yard.call("POST", "/v1/hosts/h1/reports", batch(job)).ok
    return time.perf_counter() - began


def test_progress_that_was_answered_survives_a_kill(yard: Controller) -> None:
    assert yard.call("PUT", "/v1/jobs/a", spec(5000)).status_code == 201
    points, counts = [], []
    for k in range(1, 6):
        point = {"iteration": k, "time": time.time(), "metric": 0.1 * k}
        points.append(seconds_of_a_report(yard, {"job": "a", "points": [point]}))
        counts.append(seconds_of_a_report(yard, {"job": "a", "sent_bytes": 1.0}))
    assert min(counts) < min(points), "a count that comes again need not wait for the journal"
    yard.stop(kill=True)
    yard.start()
    assert yard.call("GET", "/v1/jobs/a").json()["iterations_done"] == 5
