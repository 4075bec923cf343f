"""Arms in which TensorLights orders the hosts' NICs, on the emulated network: real traffic, everything collected."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluation.tensorlights.claim import FAIR, ONE
from simulator.workloads import curves
from topologies.experiments.experiment import Experiment, JobPlan
from topologies.lab.lab import run_lab
from topologies.lab.results import ArmResult, LabRequest, LabResult, load_result

ITERATIONS = 8
LINK_BPS = 10e6
SERVER = "h1"
pytestmark = pytest.mark.timeout(420)


def experiment() -> Experiment:
    """Six jobs whose servers share a host, with a worker each on three others: their fan-out fills its link."""
    curve = next(curve.name for curve in curves.index() if curve.iterations >= ITERATIONS)
    workers = ("h2", "h3", "h4")
    return Experiment(
        name="lights",
        hosts=4,
        link_bps=LINK_BPS,
        period_seconds=1.0,
        limit_seconds=120.0,
        barriers=True,
        nic_queue_bytes=4 * 2**20,
        jobs=tuple(
            JobPlan(id=f"job{n}", arrival=0.1 * n, architecture="ps", hosts=(SERVER, *workers), port=5000 + n,
                    model="equal", model_bytes=80_000, compute_seconds=0.3, iterations=ITERATIONS, curve=curve)
            for n in range(6)
        ),
    )  # fmt: skip


@pytest.fixture(scope="module")
def results_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


@pytest.fixture
def result(alone: None, results_dir: Path) -> LabResult:
    stored = results_dir / "lab.json"
    if not stored.exists():
        run_lab(LabRequest((experiment(),), (FAIR, ONE)), "kernel", results_dir=results_dir)
    return load_result(stored)


def log(results_dir: Path, arm: ArmResult, host: str) -> str:
    return (results_dir / "lights-0" / arm.policy / "reporters" / f"{host}.log").read_text()


def test_jobs_end_and_workers_tell_of_their_waits_in_every_arm(result: LabResult) -> None:
    assert [arm.policy for arm in result.arms] == ["fair", "tls-one"]
    for arm in result.arms:
        for name, job in arm.jobs.items():
            assert not job.censored, (arm.policy, name)
            assert job.barrier is not None
            assert job.barrier.barriers == ITERATIONS - 1
            assert 0 < job.barrier.mean_seconds < 10


def test_the_servers_link_is_the_busy_one(result: LabResult) -> None:
    for arm in result.arms:
        shares = {link.host: link.egress_share for link in arm.links}
        assert set(shares) == {"h1", "h2", "h3", "h4"}
        assert max(shares, key=shares.__getitem__) == SERVER
        assert 0.2 < shares[SERVER] < 1.05


def test_agents_order_the_servers_host_alone_and_give_it_back(result: LabResult, results_dir: Path) -> None:
    for arm in result.arms[1:]:
        for host in ("h1", "h2", "h3", "h4"):
            said = log(results_dir, arm, host)
            assert "does not order" not in said, said
            assert "the agent was killed" not in said, said
            assert "Traceback" not in said, said
            assert ("orders this host's parameter servers" in said) is (host == SERVER), said
    assert "serves the classes" not in log(results_dir, result.arms[0], SERVER)


def test_with_fixed_bands_the_jobs_that_were_launched_first_are_done_first(result: LabResult) -> None:
    # Of single jobs chance decides; sharing favours those that begin first, too, but less.
    fair, one = (_later_over_earlier(arm) for arm in result.arms)
    assert one > 1.2
    assert one > 1.1 * fair


def _later_over_earlier(arm: ArmResult) -> float:
    """How much longer the later half of the jobs took than the earlier one."""
    times = [job.jct_seconds for _, job in sorted(arm.jobs.items())]
    half = len(times) // 2
    return sum(time or 0.0 for time in times[half:]) / sum(time or 0.0 for time in times[:half])
