"""What arms used of links and the emulated hosts' processors, and what TCP did."""

from __future__ import annotations

import pytest

from evaluation.tensorlights import use
from evaluation.tensorlights.groups import AS_CLAIMED
from evaluation.tensorlights.workload import COMPUTE_SECONDS, HOSTS, experiment
from topologies.lab.results import ArmResult, Control, JobResult
from topologies.lab.use.meters import LinkUse
from topologies.lab.use.tcp_use import TcpUse

MADE = experiment((10, 11), 1, 16, AS_CLAIMED)
SERVERS = {job.hosts[0] for job in MADE.jobs}


def arm(jct: float | None = 200.0, links: tuple[LinkUse, ...] = (), tcp: tuple[TcpUse, ...] = ()) -> ArmResult:
    control = Control(3, 0.05, 0.09, plans=10, flow_mods=20, gate_renewals=5)
    job = JobResult(1.0, 2.0, jct, jct is None, 300.0, history=())
    return ArmResult("x", 1, "fair", {each.id: job for each in MADE.jobs}, control, (1,), 0.5, 60.0, links, tcp=tcp)


def test_links_are_told_of_the_hosts_with_servers_and_of_all() -> None:
    links = tuple(
        LinkUse(f"h{n}", 0.9, 0.25, "", 0.04, 0.01) if f"h{n}" in SERVERS else LinkUse(f"h{n}", 0.1, 0.25)
        for n in range(1, HOSTS + 1)
    )
    found = use.links([(MADE, arm(links=links))])
    assert found is not None
    assert found["servers_egress_share"] == pytest.approx(0.9)
    assert found["servers_ingress_share"] == pytest.approx(0.25)
    assert (found["servers_egress_variance"], found["servers_ingress_variance"]) == (
        pytest.approx(0.04),
        pytest.approx(0.01),
    )
    mean = (2 * 0.9 + 19 * 0.1) / 21
    assert found["mean_egress_share"] == pytest.approx(mean)
    assert found["egress_variance_over_hosts"] == pytest.approx((2 * (0.9 - mean) ** 2 + 19 * (0.1 - mean) ** 2) / 21)
    assert found["busiest_egress_share"] == pytest.approx(0.9)
    assert use.links([(MADE, arm())]) is None


def test_workers_compute_for_a_share_of_their_jobs_time() -> None:
    assert use.computing_share([(MADE, arm(200.0)), (MADE, arm(400.0))]) == pytest.approx(
        16 * COMPUTE_SECONDS * (1 / 200 + 1 / 400) / 2
    )
    assert use.computing_share([(MADE, arm(None))]) is None, "what did not end has computed for an unknown time"


def test_tcp_is_summed_over_hosts_and_averaged_over_arms() -> None:
    first = arm(tcp=(TcpUse("h1", 100, 4, 3, 1), TcpUse("h2", 50, 2, 1, 0)))
    second = arm(tcp=(TcpUse("h1", 50, 0, 0, 0),))
    assert use.tcp([first, second]) == {
        "segments": 100.0,
        "retransmitted": 3.0,
        "timeouts": 2.0,
        "spurious_timeouts": 0.5,
    }
    assert use.tcp([first, arm()]) is None
