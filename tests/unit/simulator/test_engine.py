"""The engine on cases small enough to be worked out by hand."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from controller.model import Host, Port
from controller.policies.fair import Fair
from controller.policies.fifo import Fifo
from controller.policies.sebf import Sebf
from simulator.engine import Limits, simulate
from simulator.errors import InputError
from simulator.jobs import Compute, SimJob, Transfer, Workload
from simulator.workloads.transfers import ring, tree
from tests.support.simulator.small_cases import HOSTS, IN, OUT, SECOND, Spy, coflow, ends, run, transfer


def test_two_flows_share_a_port_and_one_gets_the_rest_when_the_other_ends() -> None:
    # Both at half the rate until the first has sent 1, at 2 s; then the other has 2 left at the whole rate.
    assert ends(coflow("1", ("a", "b", 1)), coflow("2", ("a", "c", 3)), policy=Fair()) == pytest.approx([2, 4])


def test_flows_share_one_by_one_not_by_pair_of_hosts() -> None:
    # Three flows out of a: two of them on the same pair. Each gets a third.
    outcome = run(coflow("1", ("a", "b", 1), ("a", "b", 1)), coflow("2", ("a", "c", 1)), policy=Fair())
    assert [job.end for job in outcome.jobs.values()] == pytest.approx([3, 3])


def ring_of(hosts: str, seconds: float) -> Transfer:
    """Each link of the ring sends as much as a port carries in so many seconds."""
    return ring(hosts, seconds * SECOND * len(hosts) / (2 * (len(hosts) - 1)))


def test_a_ring_alone_is_as_fast_as_its_slowest_link() -> None:
    job = SimJob("1", lanes=((ring_of("abcd", 6),),))
    assert ends(job) == pytest.approx([6])
    slow = HOSTS | {"d": Host("d", egress_bps=0.25e9)}
    outcome = simulate(Workload("w", slow, (job,)), Fair(), Limits())
    assert outcome.jobs["1"].end == pytest.approx(24)
    assert outcome.jobs["1"].bytes == pytest.approx(4 * 6 * SECOND)


def test_a_link_of_a_ring_idles_until_its_host_has_the_next_chunk() -> None:
    # d's egress takes 2 s a chunk, so a has a chunk to send in every other second, and 2 has the rest of a's egress.
    hosts = HOSTS | {"d": Host("d", egress_bps=0.5e9)}
    jobs = (SimJob("1", lanes=((ring_of("abcd", 6),),)), coflow("2", ("a", "e", 6)))
    first = simulate(Workload("w", hosts, jobs), Fifo(), Limits())
    assert [job.end for job in first.jobs.values()] == pytest.approx([12, 12])
    # At one rate, that of the slowest, the ring would take half of a's egress all the time: so does the mean.
    assert first.port_bytes[Port("a", OUT)] == pytest.approx(12 * SECOND)


def test_a_ring_shows_what_it_has_left_and_has_sent_on_its_way() -> None:
    spy = Spy()
    job = SimJob("1", lanes=((ring_of("abc", 4),),))
    run(job, coflow("2", ("d", "e", 1.5)), policy=spy)
    left = {(demand.src, demand.dst): demand.bytes / SECOND for demand in spy.shown[-1].jobs[0].demand}
    assert sum(left.values()) == pytest.approx(3 * 2.5), "after 1.5 s 2.5 s are left at every port"
    assert {src for src, _ in left} == {dst for _, dst in left} == {"a", "b", "c"}
    assert spy.shown[-1].jobs[0].sent_bytes == pytest.approx(dict.fromkeys("abc", 1.5 * SECOND))


def test_a_tree_passes_each_chunk_on_when_it_is_there() -> None:
    # Two hosts: eight chunks go up one after another, and each comes down while the next goes up.
    assert ends(SimJob("1", lanes=((tree("ab", 8 * SECOND),),))) == pytest.approx([9])
    # Three hosts: both children share the root's ingress, so a chunk takes 2 s up, and 2 s down.
    assert ends(SimJob("1", lanes=((tree("abc", 8 * SECOND),),))) == pytest.approx([18])


def test_a_relay_that_cannot_be_is_refused() -> None:
    flows = transfer(("a", "b", 1), ("b", "c", 1))
    for relay, problem in (
        (replace(flows, chunks=2), "no flow that passes them on"),
        (replace(flows, after=((),)), "of 2 flows says of 1"),
        (replace(flows, after=((), (2,))), r"passes on those of \(2,\)"),
        (replace(flows, after=((), (0, 0, 0))), r"passes on those of \(0, 0, 0\)"),
        (replace(flows, after=((), (0,)), chunks=0), "has 0 chunks"),
        (replace(flows, after=((), (0,)), lag=-1), "a lag of -1"),
        (replace(flows, after=((1,), (0,))), "flows wait for each other"),
    ):
        with pytest.raises(InputError, match=f"job 1: .*{problem}"):
            run(SimJob("1", lanes=((relay,),)))


def test_max_min_gives_a_flow_what_others_cannot_take() -> None:
    # 1 and 2 into b bind at a half each; 3 shares a's egress with 1, which takes a half of it: half is left.
    # 4 is bound at c's ingress beside 3, and takes the other half.
    jobs = [
        coflow("1", ("a", "b", 1)),
        coflow("2", ("d", "b", 1)),
        coflow("3", ("a", "c", 1)),
        coflow("4", ("e", "c", 1)),
    ]
    assert ends(*jobs, policy=Fair()) == pytest.approx([2, 2, 2, 2])
    # Without 4 all is as before; without 2 and 4 both of a's flows have a half.
    assert ends(*jobs[:3], policy=Fair()) == pytest.approx([2, 2, 2])
    # Three flows into b: a third each; the other flow of a gets two thirds, then the whole port.
    into_b = [coflow(str(i), (host, "b", 1)) for i, host in enumerate("ade")]
    assert ends(*into_b, coflow("x", ("a", "c", 1)), policy=Fair()) == pytest.approx([3, 3, 3, 1.5])


def test_a_lower_rank_takes_what_is_left_and_no_more() -> None:
    # 1 sends from a and d into b, a half each; 2 has the other half of a's port meanwhile.
    assert ends(coflow("1", ("a", "b", 1), ("d", "b", 1)), coflow("2", ("a", "c", 1))) == pytest.approx([2, 2])
    # 2 waits behind 1 on the same pair.
    assert ends(coflow("1", ("a", "b", 1)), coflow("2", ("a", "b", 1))) == pytest.approx([1, 2])


def test_a_later_arrival_that_goes_first_interrupts() -> None:
    # sebf: 1 has 2 left at 1 s, 2 needs 1.5 and goes first; then 1 goes on.
    jobs = [coflow("1", ("a", "b", 3)), coflow("2", ("a", "b", 1.5), arrival=1)]
    assert ends(*jobs, policy=Sebf()) == pytest.approx([4.5, 2.5])
    # At 2 s 1 has 1 left, less than the 1.5 of 2: what is left counts, not what it was.
    jobs = [coflow("1", ("a", "b", 3)), coflow("2", ("a", "b", 1.5), arrival=2)]
    assert ends(*jobs, policy=Sebf()) == pytest.approx([3, 4.5])


def test_sebf_looks_at_what_is_left_of_each_port() -> None:
    # 1: 4 into b from a, and 1 from c to d. At 0.5 s the flow to d has half left, b 3.5: 2 (3.2 into b) is first.
    jobs = [coflow("1", ("a", "b", 4), ("c", "d", 1)), coflow("2", ("e", "b", 3.2), arrival=0.5)]
    assert ends(*jobs, policy=Sebf()) == pytest.approx([7.2, 3.7])


def test_madd_sends_no_faster_than_the_bottleneck_and_hands_out_the_rest() -> None:
    # Both flows of 1 end at 2 s, its bottleneck at b; c's flow needs only a half of its port: 2 has the other half.
    jobs = [coflow("1", ("a", "b", 2), ("c", "d", 1)), coflow("2", ("c", "e", 1))]
    # The half that is left of c's port goes first to 1 itself: its flow of 1 ends at 1 s, then 2 has the whole port.
    assert ends(*jobs, rates="madd") == pytest.approx([2, 2])
    busy = [coflow("1", ("a", "b", 2), ("c", "d", 1)), coflow("2", ("e", "d", 2)), coflow("3", ("c", "f", 1))]
    assert ends(*busy, rates="madd") == pytest.approx([2, 3, 2])


def test_a_flow_to_its_own_source_loads_both_ports() -> None:
    jobs = [coflow("1", ("a", "a", 1)), coflow("2", ("a", "b", 1)), coflow("3", ("c", "a", 1))]
    assert ends(*jobs) == pytest.approx([1, 2, 2])


def test_a_coflow_without_bytes_ends_when_it_comes() -> None:
    jobs = [coflow("1", ("a", "b", 0), arrival=2.5), SimJob(id="2", lanes=((Transfer(()),),), arrival=1.0)]
    outcome = run(*jobs)
    assert [(job.arrival, job.end) for job in outcome.jobs.values()] == [(1.5, 1.5), (0.0, 0.0)]


def test_processor_time_does_not_count_what_others_do_meanwhile() -> None:
    outcome = run(*(coflow(str(i), ("a", "b", 1)) for i in range(4)), progress=lambda _share: time.sleep(0.1))
    assert outcome.wall_seconds >= 0.4
    assert 0 < outcome.cpu_seconds < 0.4


def test_no_jobs_no_time() -> None:
    outcome = run()
    assert outcome.jobs == {}
    assert outcome.plans == 0


def test_an_iteration_alone_takes_its_compute_and_its_busiest_port() -> None:
    workers = "bcde"
    push = transfer(*((worker, "a", 0.25) for worker in workers))
    pull = transfer(*(("a", worker, 0.25) for worker in workers))
    ps = SimJob(id="ps", lanes=((Compute(0.5), push, pull),), iterations=3)
    # The server's link carries four pushes of 0.25 s and then four pulls.
    assert run(ps).jobs["ps"].iteration_ends.tolist() == pytest.approx([2.5, 5.0, 7.5])
    ring = transfer(*((one, other, 2 * 3 / 4 * 0.25) for one, other in zip(workers, "cdeb", strict=True)))
    job = SimJob(id="ring", lanes=((Compute(0.5), ring),), iterations=2)
    assert run(job).jobs["ring"].iteration_ends.tolist() == pytest.approx([0.875, 1.75])


@pytest.mark.parametrize(
    ("staleness", "begins"), [(0, [1, 4, 7]), (1, [1, 2.5, 4]), (2, [1, 2.5, 4]), (None, [1, 2.5, 4])]
)
def test_a_lane_may_lead_by_its_staleness(staleness, begins) -> None:
    # The fast lane computes for 1 s and sends for half a second; the slow one needs 3 s.
    fast = (Compute(1.0), transfer(("a", "b", 0.5)))
    job = SimJob(id="j", lanes=(fast, (Compute(3.0),)), iterations=3, staleness=staleness)
    outcome = run(job, watch=[Port("a", OUT)])
    assert outcome.timeline[Port("a", OUT)][:, 0] == pytest.approx(np.array(begins))
    assert outcome.jobs["j"].iteration_ends.tolist() == pytest.approx([3, 6, 9])


def test_staleness_one_holds_a_lane_back_that_is_two_ahead() -> None:
    fast = (Compute(0.5), transfer(("a", "b", 0.5)))
    job = SimJob(id="j", lanes=(fast, (Compute(3.0),)), iterations=4, staleness=1)
    outcome = run(job, watch=[Port("a", OUT)])
    # Iteration 3 may begin when the slow lane has done 1, at 3 s; iteration 4 when it has done 2, at 6 s.
    assert outcome.timeline[Port("a", OUT)][:, 0] == pytest.approx(np.array([0.5, 1.5, 3.5, 6.5]))


def test_a_job_waits_for_those_it_comes_after() -> None:
    jobs = [
        coflow("1", ("a", "b", 1)),
        coflow("2", ("a", "b", 1), after=("1", "4")),
        coflow("3", ("a", "b", 1), after=("2",), arrival=10),
        coflow("4", ("c", "d", 2)),
    ]
    outcome = run(*jobs)
    assert [job.arrival for job in outcome.jobs.values()] == pytest.approx([0, 2, 10, 0])
    assert [job.end for job in outcome.jobs.values()] == pytest.approx([1, 3, 11, 2])


def test_follow_adds_jobs_when_one_ends() -> None:
    told = []

    def follow(job: str, end: float) -> list[SimJob]:
        told.append((job, end))
        return [coflow(f"{job}+", ("a", "b", 1))] if len(job) < 3 else []

    outcome = run(coflow("1", ("a", "b", 1)), coflow("2", ("c", "d", 5), arrival=0.5), follow=follow)
    arrivals = {"1": 0, "1+": 1, "1++": 2, "2": 0.5, "2+": 5.5, "2++": 6.5}
    assert {job.id: job.arrival for job in outcome.jobs.values()} == pytest.approx(arrivals)
    assert {job.id: job.end for job in outcome.jobs.values()} == pytest.approx(
        {"1": 1, "1+": 2, "1++": 3, "2": 5.5, "2+": 6.5, "2++": 7.5}
    )
    assert [job for job, _ in told] == ["1", "1+", "1++", "2", "2+", "2++"]


def test_a_timeline_tells_who_had_how_much_of_a_port() -> None:
    jobs = [coflow("1", ("a", "b", 1)), coflow("2", ("a", "c", 2), arrival=0.5)]
    outcome = run(*jobs, policy=Fair(), watch=[Port("a", OUT), Port("c", IN)])
    # 1 alone until 0.5, both at a half until 1 has sent 1 at 1.5 s, then 2 alone.
    expected = [[0, 0.5, 0, 1e9], [0.5, 1.5, 0, 5e8], [0.5, 1.5, 1, 5e8], [1.5, 3, 1, 1e9]]
    assert outcome.timeline[Port("a", OUT)] == pytest.approx(np.array(expected))
    assert outcome.timeline[Port("c", IN)] == pytest.approx(np.array(expected[2:]))


def test_a_timeline_carries_all_bytes_of_its_port() -> None:
    step = (Compute(0.01), transfer(*(("a", other, 0.01) for other in "bcd")))
    jobs = [SimJob(id=str(i), lanes=(step,), iterations=150, arrival=0.003 * i) for i in range(6)]
    outcome = run(*jobs, watch=[Port("a", OUT)])
    rows = outcome.timeline[Port("a", OUT)]
    carried = float(((rows[:, 1] - rows[:, 0]) * rows[:, 3] / 8).sum())
    assert carried == pytest.approx(outcome.port_bytes[Port("a", OUT)], rel=1e-6)
    assert (rows[:, 3] <= 1e9 * (1 + 1e-9)).all()


def test_with_a_quantum_what_a_flow_leaves_is_handed_out_a_little_later() -> None:
    flows = [("a", "b", 0.33), ("a", "c", 1.0)]
    behind = coflow("2", ("a", "d", 1))
    # 0.33 ends at 0.66 s; what it leaves is handed out a little later.
    exact = ends(coflow("1", *flows), behind)
    assert exact == pytest.approx([1.33, 2.33])
    coarse = ends(coflow("1", *flows), behind, quantum=0.25)
    assert exact[0] < coarse[0] < exact[0] + 0.25 / 2


def test_the_clock_may_be_late() -> None:
    # Steps of the clock are longer than what counts as one moment otherwise.
    jobs = [
        coflow("1", ("a", "b", 1 / 3), ("a", "c", 1 / 7), arrival=1.7e9),
        coflow("2", ("a", "b", 0.1), arrival=1.7e9),
    ]
    found = run(*jobs).jobs
    assert found["1"].end - found["1"].arrival == pytest.approx(1 / 3 + 1 / 7, abs=1e-5)


def test_progress_reaches_one() -> None:
    told: list[float] = []
    run(*(coflow(str(i), ("a", "b", 1)) for i in range(5)), progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0
