"""A recorded arm tells when its jobs reached their targets."""

from __future__ import annotations

import json
from pathlib import Path

from topologies.lab.recording.reached import add_reached, moments
from topologies.lab.results import JobResult


def _result(t90: float | None, t95: float | None, jct: float | None) -> JobResult:
    return JobResult(t90, t95, jct, censored=jct is None, watched_seconds=60.0, history=())


def test_moments_count_from_the_start_of_the_experiment() -> None:
    jobs = {"a": _result(10.0, 12.5, 30.0), "b": _result(4.0, None, None)}
    assert moments(jobs, {"a": 0.0, "b": 2.25, "never-arrived": 9.0}) == {
        "a": {"arrival": 0.0, "t90": 10.0, "t95": 12.5, "end": 30.0},
        "b": {"arrival": 2.25, "t90": 6.25, "t95": None, "end": None},
    }


def test_they_stand_beside_the_other_facts(tmp_path: Path) -> None:
    (tmp_path / "facts.json").write_text(json.dumps({"title": "jpas", "seconds": 61.5}))
    reached = moments({"a": _result(10.0, 12.5, 30.0)}, {"a": 0.0})
    add_reached(tmp_path, reached)
    facts = json.loads((tmp_path / "facts.json").read_text())
    assert facts == {"title": "jpas", "seconds": 61.5, "reached": reached}
