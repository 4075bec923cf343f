"""The jobs of the claim, as the authors of TensorLights had them."""

from __future__ import annotations

from collections import Counter

import pytest

from evaluation.tensorlights.groups import AS_CLAIMED, BURSTS, HALF, PROCESSORS, SENT, SEVEN, SHALLOW
from evaluation.tensorlights.workload import (
    COMPUTE_PER_ROUND,
    COMPUTE_SECONDS,
    HOSTS,
    JOBS,
    MODEL_BYTES,
    PLACEMENTS,
    ROUND_SECONDS,
    Placement,
    experiment,
    placement_key,
    placement_name,
)
from topologies.trainer.transfers.frames import HEADER_BYTES


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_each_job_has_a_server_and_a_worker_on_every_other_host(placement: Placement) -> None:
    made = experiment(placement, 7, 16, AS_CLAIMED)
    assert made == experiment(placement, 7, 16, AS_CLAIMED)
    assert made != experiment(placement, 8, 16, AS_CLAIMED)
    assert (len(made.jobs), made.hosts) == (JOBS, HOSTS) == (21, 21)
    servers = Counter(job.hosts[0] for job in made.jobs)
    assert sorted(servers.values()) == sorted(placement)
    for job in made.jobs:
        assert set(job.hosts) == {f"h{n}" for n in range(1, HOSTS + 1)}
        assert (job.architecture, job.iterations, job.pulls) == ("ps", 16, "asked")
    assert len({job.hosts[1:] for job in made.jobs}) == JOBS, "each has its workers in an order of its own"
    arrivals = [job.arrival for job in made.jobs]
    assert arrivals == sorted(arrivals)
    assert arrivals[-1] <= 2.0
    assert len({job.model_bytes for job in made.jobs}) == 1, "equal jobs: bands change among them"
    assert made.barriers
    assert made.nic_queue_bytes is not None
    at_once = sum((len(job.hosts) - 1) * job.model_bytes for job in made.jobs)
    assert made.nic_queue_bytes > 2 * at_once, "what fair sharing queues must fit"


def test_a_round_of_all_fan_outs_and_computing_have_the_ratio_that_is_said() -> None:
    made = experiment(PLACEMENTS[0], 7, 16, AS_CLAIMED)
    wire = sum((len(job.hosts) - 1) * job.model_bytes for job in made.jobs) * 1514 / 1448 * 8 / made.link_bps
    assert pytest.approx(wire) == ROUND_SECONDS
    assert pytest.approx(COMPUTE_PER_ROUND, rel=0.02) == COMPUTE_SECONDS / ROUND_SECONDS


def test_a_variant_changes_one_thing() -> None:
    claimed = experiment((21,), 7, 16, AS_CLAIMED)
    sent, bursts = (experiment((21,), 7, 16, variant) for variant in (SENT, BURSTS))
    assert {job.pulls for job in sent.jobs} == {"sent"}
    assert sent.jobs[3].model_copy(update={"pulls": "asked"}) == claimed.jobs[3]
    assert bursts.jobs == claimed.jobs
    assert (claimed.segments, bursts.segments) == (2, 9)
    message = HEADER_BYTES + MODEL_BYTES
    assert 4 < message / (2 * 1448) <= 5, "five packets"
    assert 8 < message / 1448 <= 9, "one packet"
    pushed = sum((len(job.hosts) - 1) * job.model_bytes for job in claimed.jobs)
    assert claimed.port_packets is not None
    assert claimed.port_packets * claimed.segments * 1448 > 2 * pushed, "what all workers push at once must fit"
    shallow = experiment((21,), 7, 16, SHALLOW)
    assert (shallow.port_packets, shallow.rto_min_seconds, shallow.jobs) == (None, None, claimed.jobs)
    assert {job.compute_seconds for job in experiment((21,), 7, 16, HALF).jobs} == {COMPUTE_SECONDS / 2}
    shared = experiment((21,), 7, 16, PROCESSORS)
    assert (claimed.processors, shared.processors) == (None, 6)
    assert all(job.compute_seconds * JOBS / 6 == pytest.approx(COMPUTE_SECONDS) for job in shared.jobs)
    seven = experiment((7,), 7, 16, SEVEN)
    assert len(seven.jobs) == 7
    assert sum(job.model_bytes for job in seven.jobs) == sum(job.model_bytes for job in claimed.jobs)


@pytest.mark.parametrize(
    ("placement", "key", "words"),
    [
        ((21,), "21", "21 parameter servers on one host"),
        ((5, 16), "5-16", "21 parameter servers on 2 hosts, 5 + 16"),
        ((7,) * 3, "7x3", "21 parameter servers on 3 hosts, 7 each"),
        ((1,) * 21, "1x21", "21 parameter servers on 21 hosts, one each"),
    ],
)
def test_placements_have_names(placement: Placement, key: str, words: str) -> None:
    assert (placement_key(placement), placement_name(placement)) == (key, words)
    assert len(set(map(placement_key, PLACEMENTS))) == len(PLACEMENTS) == 8
    assert {sum(each) for each in PLACEMENTS} == {JOBS}
