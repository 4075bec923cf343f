"""Arms in which TensorLights orders the hosts' NICs, on the emulated network: real traffic, everything collected."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import fmean

import pytest

from evaluation.tensorlights.groups import EACH, FAIR, ONE
from simulator.workloads import curves
from topologies.emulation import Emulation, emulate
from topologies.experiments.experiment import Experiment, JobPlan
from topologies.lab import nic_queues
from topologies.lab.lab import network_of, run_lab
from topologies.lab.results import ArmResult, LabRequest, LabResult, load_result

ITERATIONS = 8
LINK_BPS = 10e6
MODEL_BYTES = 80_000
FAN_OUT_SECONDS = 3 * MODEL_BYTES * 8 / LINK_BPS
SERVER = "h1"
pytestmark = pytest.mark.timeout(420)


def experiment(jobs: int = 6) -> Experiment:
    """Jobs whose servers share a host, with a worker each on three others: their fan-out fills its link."""
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
                    model="equal", model_bytes=MODEL_BYTES, compute_seconds=0.05, iterations=ITERATIONS, curve=curve)
            for n in range(jobs)
        ),
    )  # fmt: skip


def small_packets() -> Experiment:
    """Two of these jobs whose workers ask for the model, on hosts whose packets have two frames at most."""
    plain = experiment()
    jobs = tuple(job.model_copy(update={"pulls": "asked"}) for job in plain.jobs[:2])
    return plain.model_copy(update={"name": "small-packets", "jobs": jobs, "segments": 2})


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
            assert job.barrier.at_server is not None
            assert 0 < job.barrier.at_server.mean_seconds < 10
            assert job.barrier.causes is not None
            assert 0 <= job.barrier.causes.late_seconds < 5
            assert job.barrier.causes.fan_out_seconds > 0.9 * FAN_OUT_SECONDS, "no link is faster than its rate"


def test_every_host_tells_what_its_tcp_did(result: LabResult) -> None:
    for arm in result.arms:
        assert {host.host for host in arm.tcp} == {"h1", "h2", "h3", "h4"}
        assert all(host.sent > 0 for host in arm.tcp)
        assert all(0 <= host.spurious <= host.timeouts for host in arm.tcp)


def test_the_use_of_links_varies_from_second_to_second(result: LabResult) -> None:
    for arm in result.arms:
        assert {link.host for link in arm.links if link.egress_variance > 0} == {"h1", "h2", "h3", "h4"}
        assert 0 < arm.cpu_variance < 0.25


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
    """How much longer the later half of the jobs took than the earlier one, in the mean."""
    times = [job.jct_seconds or 0.0 for _, job in sorted(arm.jobs.items())]
    half = len(times) // 2
    return fmean(times[half:]) / fmean(times[:half])


@pytest.mark.usefixtures("alone")
def test_jobs_whose_models_are_asked_for_end_on_hosts_with_small_packets(tmp_path: Path) -> None:
    lab = run_lab(LabRequest((small_packets(),), (ONE,)), "kernel", results_dir=tmp_path)
    (arm,) = lab.arms
    for job in arm.jobs.values():
        assert not job.censored
        assert job.barrier is not None
        assert job.barrier.causes is not None
        assert job.barrier.causes.fan_out_seconds > 0.9 * FAN_OUT_SECONDS


@pytest.mark.usefixtures("alone")
def test_more_jobs_than_bands_end_in_the_order_of_their_launch_where_each_has_a_band(tmp_path: Path) -> None:
    lab = run_lab(LabRequest((experiment(jobs=9),), (EACH,)), "kernel", results_dir=tmp_path)
    (arm,) = lab.arms
    assert arm.policy == "tls-each"
    assert not [name for name, job in arm.jobs.items() if job.censored]
    assert _later_over_earlier(arm) > 1.2
    said = log(tmp_path, arm, SERVER)
    assert "orders this host's parameter servers" in said
    assert "somebody else has changed" not in said
    assert "Traceback" not in said


@pytest.mark.usefixtures("alone")
def test_hashed_queues_are_in_every_hosts_tree_for_an_arm_and_then_gone() -> None:
    with emulate(network_of(experiment(), "kernel")) as emulation:
        before = tree(emulation, "h2")
        with nic_queues.as_wanted(emulation, experiment(), "hashed"):
            inside = tree(emulation, "h2")
            for number in range(nic_queues.HASHED_QUEUES):
                leaf, queue = f"7472:{0x40 + number:x}", f"{0x7540 + number:x}:"
                assert any(line.startswith(f"class htb {leaf} parent 7472:1 leaf {queue} ") for line in inside)
                assert any(f"flowid {leaf} " in f"{line} " for line in inside)
        assert tree(emulation, "h2") == before


def tree(emulation: Emulation, host: str) -> list[str]:
    """The traffic control of a host's interface, as tc shows it, in an order of its own."""
    shown = (f"tc {kind} show dev {host}-eth0" for kind in ("qdisc", "class", "filter"))
    lines = emulation.run(host, ["sh", "-ec", "; ".join(shown)]).splitlines()
    return sorted(re.sub(r"direct_packets_stat \d+ ", "", line.rstrip()) for line in lines)
