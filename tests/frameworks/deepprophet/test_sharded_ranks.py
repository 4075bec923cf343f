"""What is predicted of FSDP beside what two real ranks exchange: the same parts in the same order, with their bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deepprophet.graph.subject import subject
from deepprophet.graph.trace import trace
from deepprophet.predict.mapping import MappingSpec
from deepprophet.predict.prediction import Configuration, predict
from tests.support.frameworks import prophet_subjects
from tests.support.paths import ROOT
from tests.support.prophet_links import even
from tests.support.prophet_world import calibration, roofline

RANKS = 2


def exchanged(tmp_path: Path, reshard: str) -> list[list[object]]:
    environment = os.environ | {"GLOO_SOCKET_IFNAME": "lo", "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    module = "tests.support.frameworks.sharded_rank"
    ranks = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", module, str(rank), str(RANKS), str(tmp_path / "store"), reshard],
            cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(RANKS)
    ]  # fmt: skip
    try:
        (out, errors), (_, others) = (rank.communicate(timeout=120) for rank in ranks)
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    assert [rank.returncode for rank in ranks] == [0, 0], errors + others
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.parametrize("reshard", ["reshard", "keep"])
def test_ranks_gather_and_scatter_what_is_predicted(tmp_path: Path, reshard: str) -> None:
    graph = trace(subject(prophet_subjects.sharded()))
    spec = {"fsdp": {"units": ["blocks.*"], "reshard_after_forward": reshard == "reshard"}}
    known = calibration(rooflines=(roofline(once=1e-3),))
    found = predict(graph, known, {}, Configuration(RANKS, "ring", even(RANKS), MappingSpec.model_validate(spec)))
    # Of a part that is gathered a ring of two sends half over each link, at a megabyte a second; what gloo scatters is
    # first added up at both. The ranks wait for each.
    turns = {"gather": 1, "scatter": 2}
    predicted = [
        [span.name, round((span.end - span.start) * RANKS * 1e6 / turns[span.name]), False]
        for span in sorted(found.played.spans, key=lambda span: span.start)
        if span.kind == "communicate"
    ]
    assert not found.played.overlapped
    real = exchanged(tmp_path, reshard)
    for name in ("gather", "scatter"):
        assert [part for part in predicted if part[0] == name] == [part for part in real if part[0] == name]
