"""What was answered is not lost: an agent does not tell it again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.journal.writer import GATHER_SECONDS
from evaluation.bench.support.api_client import Controller
from tests.unit.controller.api.test_api import batch, spec


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Controller]:
    yard = Controller(tmp_path, journal=str(tmp_path / "j.db"), token=False)
    yield yard.start()
    yard.stop()


def test_progress_that_was_answered_survives_a_kill(yard: Controller) -> None:
    assert yard.call("PUT", "/v1/jobs/a", spec(5000)).status_code == 201
    taken = []
    for _ in range(20):
        began = time.perf_counter()
        assert yard.call("POST", "/v1/hosts/h1/reports", batch({"job": "a", "sent_bytes": 1.0})).ok
        taken.append(time.perf_counter() - began)
    assert sorted(taken)[5] < GATHER_SECONDS, "a count that comes again need not wait for the journal"
    for k in range(1, 6):
        point = {"iteration": k, "time": time.time(), "metric": 0.1 * k}
        assert yard.call("POST", "/v1/hosts/h1/reports", batch({"job": "a", "points": [point]})).ok
    yard.stop(kill=True)
    yard.start()
    assert yard.call("GET", "/v1/jobs/a").json()["iterations_done"] == 5
