"""The family of a job in the file of ``trainyard order``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from controller.cli.ordering.snapshot_file import SnapshotError, read_snapshot
from controller.families.sentence import sentence
from tests.support.controller.cli.snapshots import job, snapshot, write

RUN = {
    "iterations": 1000,
    "converged": 0.94,
    "t90_iteration": 140,
    "t95_iteration": 200,
    "curve": [[1, 0.1], [1e3, 0.94]],
}


def test_a_job_may_have_a_family(tmp_path: Path, run: Any) -> None:
    runs = [RUN, RUN | {"converged": 0.945, "t90_iteration": 200}, {"iterations": 5, "ending": "aborted"}]
    document = snapshot(
        job("a", ("h1", "h2", 1e6), family={"name": "resnet50", "runs": runs}),
        job("b", family={"name": "bert"}),
        job("c"),
    )
    first, second, third = read_snapshot(write(tmp_path, document)).jobs
    assert first.family is not None
    assert sentence(first.family) == (
        "2 earlier runs of resnet50: 0.94 to 0.945, 90 % at 14 to 20 % of the run; not counted: 1 aborted"
    )
    assert first.family.gate.is_open
    assert first.family.runs[0].curve == ((1.0, 0.1), (1000.0, 0.94))
    assert second.family is not None
    assert second.family.runs == ()
    assert third.family is None
    assert run("--policy", "jpas", write(tmp_path, document))[0] == 0


@pytest.mark.parametrize(
    ("runs", "more", "field", "said"),
    [
        (
            [RUN, RUN | {"t90_iteration": 1001}],
            {},
            "jobs[0].family.runs[1].t90_iteration",
            "the run has 1000 iterations",
        ),
        ([{"iterations": 10}], {}, "jobs[0].family.runs[0].converged", "a run that finished has one"),
        ([RUN | {"t90_iteration": None}], {}, "jobs[0].family.runs[0].t90_iteration", "a run that finished has one"),
        ([RUN | {"curve": []}], {"metric": {"direction": "min"}}, "jobs[0].family.runs[0].curve", "its first value"),
        ([RUN | {"ending": "lost"}], {}, "jobs[0].family.runs[0].ending", "finished"),
        ([RUN | {"curve": [[1, 2]] * 65}], {}, "jobs[0].family.runs[0].curve", "64"),
        ([RUN | {"iterations": 0}], {}, "jobs[0].family.runs[0].iterations", "0"),
    ],
)
def test_what_is_wrong_with_a_family_is_said(tmp_path: Path, runs: Any, more: Any, field: str, said: str) -> None:
    document = snapshot(job("a", family={"name": "f", "runs": runs}), **more)
    with pytest.raises(SnapshotError) as refused:
        read_snapshot(write(tmp_path, document))
    assert f": {field}: " in str(refused.value)
    assert said in str(refused.value)
