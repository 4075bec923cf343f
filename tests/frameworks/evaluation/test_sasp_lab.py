"""The jobs of ``scripts/evaluate sasp`` as they run on the testbed, with this machine's own namespace as every host."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from evaluation.pytorch.digits import HELD_OUT, digits
from evaluation.sasp import claim, lab, pilot
from evaluation.sasp.request import FAMILIES, Family, SaspRequest, Training, reached
from tests.support.paths import ROOT
from topologies.errors import LabError
from topologies.frameworks import PYTHON_SETTING

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="to enter namespaces needs root")


class Here:
    """All hosts are this one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def address(self, host: str) -> str:
        return f"127.0.0.{host[1:]}"

    def pid(self, host: str) -> int:
        return os.getpid()


@pytest.fixture
def launcher(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(PYTHON_SETTING, sys.executable)
    env = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "evaluation.sasp.fork_server"],
        cwd=ROOT,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    yield process
    if process.poll() is None:
        process.kill()
        process.wait()


def request(*trainings: Training) -> SaspRequest:
    return SaspRequest(link_bps=1e8, seed=3, workers=2, trainings=trainings, limit_seconds=100, chunk_bytes=4096)


def test_every_family_trains_with_and_without_sasp(launcher, tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    trainings = (
        *(Training(family, "bsp+sasp", iterations=8, batch=8, learning_rate=0.02) for family in FAMILIES),
        Training("mlp", "bsp", iterations=8, batch=8, learning_rate=0.02),
        Training("mlp", "ssp:2+sasp", iterations=8, batch=8, learning_rate=0.02),
    )
    arms, version = lab.train_all(request(*trainings), Here(tmp_path / "memory"), launcher, tmp_path / "results")
    assert version.startswith("2.")
    assert [arm.training for arm in arms] == list(trainings)
    for arm in arms:
        assert [worker.rank for worker in arm.workers] == [0, 1]
        assert [iteration for _, iteration, _ in arm.workers[0].points] == [2, 4, 6, 8, 8]
        assert all(0 < accuracy < 1 for _, _, accuracy in arm.workers[0].points)
        assert 0 < arm.seconds_an_iteration < 60
        assert all(0 < worker.computing_seconds < worker.seconds for worker in arm.workers)
        assert (tmp_path / "results" / arm.training.name / "server.log").exists()
    by_name = {arm.training.name: arm for arm in arms}
    # Synchronous either way, so the same training.
    plain, sasp = by_name["mlp-bsp"].workers[0].points, by_name["mlp-bsp+sasp"].workers[0].points
    assert plain[-1][2] == pytest.approx(sasp[-1][2], abs=0.01)
    assert not list((tmp_path / "memory").iterdir())


def test_a_job_that_fails_is_named_with_what_it_said(launcher, tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    bad = Training("mlp", "ssp:0", iterations=2, batch=8, learning_rate=0.1)
    with pytest.raises(LabError, match=r"mlp-ssp0: (server|worker\d) ended with status 1: ssp needs a staleness"):
        lab.train_all(request(bad), Here(tmp_path / "memory"), launcher, tmp_path / "results")
    assert (tmp_path / "results" / "mlp-ssp0").is_dir()


def test_shares_of_workers_are_apart_and_nobody_trains_on_what_is_held_out() -> None:
    shares = [digits(5, rank, 4) for rank in range(4)]
    assert sum(len(share.labels) for share in shares) + HELD_OUT == 1797
    seen = [tuple(picture) for share in shares for picture in share.pictures.tolist()]
    held = {tuple(picture) for picture in shares[0].held_out.tolist()}
    assert all((share.held_out == shares[0].held_out).all() for share in shares)
    assert len(held & set(seen)) <= 2  # some pictures of the data set are there twice


def late(training: Training, delay: int) -> int | None:
    """Iterations until the claim's target, on a seed of the pilot's."""
    points = pilot.late_training(training, pilot.SEEDS[1], delay=delay)
    first = reached(points, claim.TARGET)
    return None if first is None else first[1]


@pytest.mark.parametrize("family", FAMILIES)
def test_jobs_of_the_claim_learn_although_gradients_are_as_late_as_the_bound_allows(family: Family) -> None:
    torch.set_num_threads(1)
    whole = claim.training(family, "ssp:2")
    # With a quarter of its iterations to spare.
    assert late(replace(whole, iterations=3 * whole.iterations // 4), pilot.DELAY) is not None


def test_late_gradients_do_harm() -> None:
    torch.set_num_threads(1)
    training = replace(claim.training("mlp", "bsp"), scheme="ssp:2")
    assert late(training, 0) is not None
    assert late(training, 8) is None
