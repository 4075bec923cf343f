"""The engine on cases small enough to be worked out by hand."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from controller.model import Demand, Direction, Host, Metric, Ordering, Port, Snapshot
from controller.policies.base import Policy
from controller.policies.fair import Fair
from controller.policies.fifo import Fifo
from controller.policies.jpas import Jpas
from controller.policies.las import Las
from controller.policies.sebf import Sebf
from controller.policies.tensorlights_rr import TensorLightsRr
from simulator.engine import Limits, simulate
from simulator.errors import InputError
from simulator.jobs import Compute, SimJob, Transfer, Workload
from simulator.workloads.transfers import ring, tree

SECOND = 125e6  # bytes that a port of 1 Gbit/s carries in a second
HOSTS = {name: Host(name) for name in "abcdef"}
OUT, IN = Direction.EGRESS, Direction.INGRESS


def transfer(*flows: tuple[str, str, float]) -> Transfer:
    return Transfer(tuple(Demand(src, dst, seconds * SECOND) for src, dst, seconds in flows))


def coflow(name: str, *flows: tuple[str, str, float], **fields) -> SimJob:
    return SimJob(id=name, lanes=((transfer(*flows),),), **fields)


def run(*jobs: SimJob, policy: Policy | None = None, **options):
    limits = {key: options.pop(key) for key in list(options) if key in Limits.__dataclass_fields__}
    return simulate(Workload("w", HOSTS, jobs), policy or Fifo(), Limits(**limits), **options)


def ends(*jobs: SimJob, **options) -> list[float]:
    return [job.end for job in run(*jobs, **options).jobs.values()]


class Spy(Policy):
    """Fair sharing that remembers what it was shown, and asks for targets."""

    name = "spy"

    def __init__(self, watch: float | None = None) -> None:
        self.shown: list[Snapshot] = []
        self.watch = watch

    def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
        self.shown.append(snapshot)
        ids = tuple(job.id for job in snapshot.jobs)
        watch = {} if self.watch is None else dict.fromkeys(ids, self.watch)
        return Ordering(self.name, (ids,) if ids else (), dict.fromkeys(ids, "spied"), watch=watch)

    @property
    def times(self) -> list[float]:
        return [snapshot.now for snapshot in self.shown]


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


# What the policy is shown ------------------------------------------------------------------------------------------


def test_a_coflow_shows_what_it_has_left_by_port_and_what_it_has_sent() -> None:
    spy = Spy()
    jobs = [coflow("1", ("a", "b", 2), ("a", "c", 1), ("d", "c", 1)), coflow("2", ("e", "f", 1), arrival=1)]
    run(*jobs, policy=spy)
    shown = spy.shown[1].jobs[0]
    # At 1 s: a has sent a half to b and to c, d a half to c.
    left = {
        "out": {host: sum(d.bytes for d in shown.demand if d.src == host) / SECOND for host in "ad"},
        "in": {host: sum(d.bytes for d in shown.demand if d.dst == host) / SECOND for host in "bc"},
    }
    assert left == {"out": pytest.approx({"a": 2, "d": 0.5}), "in": pytest.approx({"b": 1.5, "c": 1})}
    assert shown.iterations_left == 1
    assert shown.sent_bytes == pytest.approx({"a": SECOND, "d": SECOND / 2})
    assert spy.shown[0].jobs[0].sent_bytes == {}


def test_a_training_job_shows_its_iterations_and_its_metric() -> None:
    spy = Spy()
    step = (Compute(0.5), transfer(("a", "b", 0.5)))
    job = SimJob(id="1", lanes=(step,), iterations=4, curve=(0.1, 0.2, 0.3, 0.4), stage="s", weight=2.0)
    run(job, coflow("2", ("e", "f", 1), arrival=2.75), policy=spy)
    shown = spy.shown[1].jobs[0]
    assert [(point.iteration, point.time, point.metric) for point in shown.progress] == [(1, 1, 0.1), (2, 2, 0.2)]
    assert (shown.iterations_left, shown.iterations_total, shown.compute_seconds) == (2, 4, 0.5)
    assert shown.demand == (Demand("a", "b", 0.5 * SECOND),)
    assert shown.sent_bytes == pytest.approx({"a": 1.25 * SECOND})
    assert (shown.stage, shown.weight) == ("s", 2.0)
    assert [stage.jobs for stage in spy.shown[1].stages] == [("1",)]


def test_training_jobs_are_shown_one_beside_the_other_and_anew_only_when_they_have_sent() -> None:
    spy = Spy()
    pair = transfer(("b", "a", 0.5), ("a", "b", 1), ("b", "c", 0))
    near = SimJob("near", lanes=((Compute(3.0), pair),), iterations=2, curve=(0.5, 0.6))
    far = SimJob("far", lanes=((transfer(("d", "c", 4)),),), iterations=2, curve=(0.2, 0.4))
    run(near, far, policy=spy, period=1.0)
    shown = {shot.now: {job.id: job for job in shot.jobs} for shot in spy.shown}
    assert shown[2.0]["near"] is shown[1.0]["near"], "it computes"
    assert [shown[now]["near"].sent_bytes for now in (2.0, 3.0)] == [{}, {}]
    assert shown[4.0]["near"].sent_bytes == pytest.approx({"a": SECOND, "b": SECOND / 2})
    assert shown[4.0]["near"].iterations_done == 1
    assert shown[6.0]["near"] is shown[5.0]["near"], "it computes again"
    assert [shown[now]["far"].sent_bytes["d"] for now in (1.0, 2.0, 6.0)] == pytest.approx(
        [SECOND, 2 * SECOND, 6 * SECOND]
    )


def test_a_long_history_is_thinned_evenly_and_keeps_its_last_point() -> None:
    spy = Spy()
    job = SimJob(id="1", lanes=((Compute(1.0),),), iterations=5000, curve=tuple(k / 5000 for k in range(1, 5001)))
    run(job, policy=spy, period=37.0, classes=1)
    for snapshot in spy.shown[1:]:
        points = snapshot.jobs[0].progress
        assert points[-1].iteration == pytest.approx(snapshot.now, abs=1)
        assert len(points) <= 401
        steps = np.diff([0, *(point.iteration for point in points)])
        assert len(set(steps[:-1])) <= 1
        assert all(point.metric == point.iteration / 5000 for point in points)


# When it plans -----------------------------------------------------------------------------------------------------


def test_without_a_period_it_plans_when_a_job_comes_or_ends() -> None:
    spy = Spy()
    jobs = [
        coflow("1", ("a", "b", 1)),
        coflow("2", ("c", "d", 3), arrival=0.5),
        coflow("3", ("e", "f", 1), arrival=3.5),
    ]
    outcome = run(*jobs, policy=spy)
    # 2 and 3 end... 2 at 3.5, when 3 comes: one plan for both.
    assert spy.times == pytest.approx([0, 0.5, 1, 3.5])
    assert outcome.plans == 4


def test_with_a_period_it_plans_then_too() -> None:
    spy = Spy()
    run(coflow("1", ("a", "b", 3)), coflow("2", ("c", "d", 1), arrival=0.5), policy=spy, period=1.0)
    assert spy.times == pytest.approx([0, 0.5, 1, 1.5, 2])
    assert {snapshot.period for snapshot in spy.shown} == {1.0}


def test_las_moves_a_coflow_down_when_it_has_had_its_share() -> None:
    policy = Las(first_seconds=1.0)
    jobs = [coflow("1", ("a", "b", 4)), coflow("2", ("a", "b", 1), arrival=3.0)]
    assert ends(*jobs, policy=policy, period=0.5) == pytest.approx([5, 4])
    # It had the port for 3 s before 2 came, so it is in another band then, period or not.
    assert ends(*jobs, policy=policy) == pytest.approx([5, 4])
    together = [coflow("1", ("a", "b", 4)), coflow("2", ("a", "b", 1.2), arrival=0.5)]
    # Both share the first band; at 1.5 s 1 has had 1 s and makes way; 2 has had 0.5 and passes 1 s at 2 s.
    assert ends(*together, policy=policy, period=0.5)[1] == pytest.approx(2.4)
    assert ends(*together, policy=policy)[1] == pytest.approx(2.4, abs=0.05)


def test_a_delay_serves_a_new_job_last_until_the_plan_is_in_force() -> None:
    jobs = [coflow("1", ("a", "b", 4)), coflow("2", ("a", "c", 1), arrival=1.0)]
    assert ends(*jobs, policy=Sebf()) == pytest.approx([5, 2])
    # Both share for the half second until 2 goes first, with 0.75 left.
    assert ends(*jobs, policy=Sebf(), delay=0.5) == pytest.approx([5, 2.25])
    # A plan takes in what happens meanwhile.
    both = [*jobs, coflow("3", ("a", "d", 0.5), arrival=1.2)]
    spy = Spy()
    run(*both, policy=spy, delay=0.5)
    assert [tuple(job.id for job in shown.jobs) for shown in spy.shown][:2] == [("1",), ("1", "2", "3")]
    assert spy.times[:2] == pytest.approx([0.5, 1.5])
    assert spy.shown[0].jobs[0].sent_bytes == pytest.approx({"a": 0.5 * SECOND}), "what it sent before it was seen"


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "policy", [Las(first_seconds=0.5), Jpas(), TensorLightsRr(rotate_seconds=2.0)], ids=lambda policy: policy.name
)
def test_with_a_delay_and_no_period_an_order_whose_time_is_up_is_followed_by_another(policy) -> None:
    fan = SimJob(
        "1", lanes=((Compute(0.2), transfer(("a", "b", 0.3), ("a", "c", 0.3))),), iterations=10,
        curve=tuple(1 - 1 / (k + 1) for k in range(1, 11)),
    )  # fmt: skip
    outcome = run(fan, replace(fan, id="2"), policy=policy, delay=0.3)
    # a's port carries 12 s of bytes, and is idle at most while both compute.
    assert 12 < max(job.end for job in outcome.jobs.values()) < 16
    # One plan when both come, one when the first has ended; the others by the policy's own time.
    assert outcome.plans > 2


@pytest.mark.parametrize("direction", ["max", "min"])
def test_a_crossed_target_makes_a_plan_at_once_and_once(direction) -> None:
    rising = (0.1, 0.5, 0.6, 0.4, 0.7)
    curve = rising if direction == "max" else tuple(1 - value for value in rising)
    job = SimJob(
        id="1", lanes=((Compute(1.0),),), iterations=5, curve=curve, metric=Metric("m", direction), arrival=0.25
    )
    spy = Spy(watch=0.5)
    run(job, policy=spy, period=100.0, classes=2)
    assert spy.times == pytest.approx([0, 2])


def test_classes_are_cut_as_the_planner_cuts_them() -> None:
    # 0 is on ports of its own; 1 and 2 share theirs.
    jobs = [coflow("0", ("a", "b", 1)), coflow("1", ("c", "d", 1)), coflow("2", ("c", "d", 1))]
    assert ends(*jobs, classes=2) == pytest.approx([1, 1, 2])
    assert ends(*jobs, classes=1) == pytest.approx([1, 2, 2])
    # top joins 1 and 2 until 0 has ended; then 1, with a half left, goes first.
    assert ends(*jobs, classes=2, assign="top") == pytest.approx([1, 1.5, 2])


# Wrong input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("job", "said"),
    [
        (coflow("1", ("a", "b", -1)), "job 1: -125000000.0 bytes from a to b"),
        (coflow("1", ("a", "z", 1)), "host z"),
        (coflow("1", ("a", "b", float("nan"))), "nan bytes"),
        (coflow("1", ("a", "b", 1), arrival=-1.0), "arrival"),
        (coflow("1", ("a", "b", 1), iterations=0), "iterations"),
        (coflow("1", ("a", "b", 1), staleness=-1), "staleness"),
        (coflow("1", ("a", "b", 1), weight=0.0), "weight"),
        (coflow("1", ("a", "b", 1), after=("2",)), "waits for 2, but there is no such job"),
        (coflow("1", ("a", "b", 1), after=("1",)), "waits for 1"),
        (coflow("1", ("a", "b", 1), curve=(0.1, 0.2)), "curve"),
        (SimJob(id="1", lanes=()), "lanes"),
        (SimJob(id="1", lanes=((Compute(-1.0),),)), "computes"),
    ],
)
def test_a_job_that_cannot_run_is_refused(job, said) -> None:
    with pytest.raises(InputError, match=r"job 1|host z") as error:
        run(job)
    assert said in str(error.value)


def test_two_jobs_of_one_id_are_refused() -> None:
    with pytest.raises(InputError, match="job 1: two jobs"):
        run(coflow("1", ("a", "b", 1)), coflow("1", ("a", "b", 1)))


def test_the_clock_may_be_late() -> None:
    # Steps of the clock are longer than what counts as one moment otherwise.
    jobs = [
        coflow("1", ("a", "b", 1 / 3), ("a", "c", 1 / 7), arrival=1.7e9),
        coflow("2", ("a", "b", 0.1), arrival=1.7e9),
    ]
    found = run(*jobs).jobs
    assert found["1"].end - found["1"].arrival == pytest.approx(1 / 3 + 1 / 7, abs=1e-5)


def test_what_never_ends_is_refused() -> None:
    with pytest.raises(InputError, match="job 1: it would never end"):
        hosts = {name: Host(name, 1e-300, 1e-300) for name in "ab"}
        simulate(Workload("w", hosts, (coflow("1", ("a", "b", 10)),)), Fifo(), Limits())


@pytest.mark.parametrize(
    "limits", [{"classes": 0}, {"period": 0.0}, {"period": -1.0}, {"quantum": -0.1}, {"delay": -1.0}]
)
def test_limits_that_cannot_be_are_refused(limits) -> None:
    with pytest.raises(InputError, match=next(iter(limits))):
        Limits(**limits)


def test_a_host_without_a_rate_is_refused() -> None:
    with pytest.raises(InputError, match="host a: egress_bps is 0"):
        simulate(Workload("w", {"a": Host("a", 1e9, 0.0)}, ()), Fifo(), Limits())


def test_a_port_that_is_not_there_cannot_be_watched() -> None:
    with pytest.raises(InputError, match="port z egress"):
        run(coflow("1", ("a", "b", 1)), watch=[Port("z", OUT)])


def test_progress_reaches_one() -> None:
    told: list[float] = []
    run(*(coflow(str(i), ("a", "b", 1)) for i in range(5)), progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0
