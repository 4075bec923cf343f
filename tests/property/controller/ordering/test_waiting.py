"""What a job waits for, beside a plain computation, and how long it takes for many jobs."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.model import Demand, Direction, Host, Job, Ordering, Port, Routes, Snapshot
from controller.ordering.waiting import MOST_OTHERS, MOST_PORTS, PIECE, OtherJob, PortWait, longest_waits, waits
from controller.pieces import whole
from controller.planner import objective_and_bound

LINK = Port("s1-s2", Direction.EGRESS)
HOSTS = {f"h{i}": Host(f"h{i}", 1e9 * (i + 1), 2e9) for i in range(4)}
ROUTES = Routes(((LINK, 5e8),), lambda src, dst: (0,) if {src, dst} == {"h0", "h3"} else ())
DEMAND = st.builds(
    lambda pair, size: Demand(*pair, size),
    st.permutations(sorted(HOSTS)).map(lambda names: names[:2]),
    st.sampled_from([0.0, 1e6, 3e6, 5e7]),
)
JOB = st.tuples(st.lists(DEMAND, max_size=4), st.sampled_from([0.0, 0.5, 1.0, 20.0]), st.integers(0, 3))


def snapshot(jobs: tuple[Job, ...], routes: Routes | None = None) -> Snapshot:
    return Snapshot(now=0.0, hosts=HOSTS, jobs=jobs, routes=routes)


def plain_seconds(job: Job, routes: Routes | None) -> dict[Port, float]:
    """The seconds of one iteration of a job at each port, flow by flow."""
    seconds: dict[Port, float] = defaultdict(float)
    for demand in job.demand:
        ends = (Port(demand.src, Direction.EGRESS), Port(demand.dst, Direction.INGRESS))
        rates = {end: HOSTS[end.host].rate_bps(end.direction) for end in ends}
        for link in routes.crossed(demand.src, demand.dst) if routes is not None else ():
            rates[routes.links[link][0]] = routes.links[link][1]
        for port, rate in rates.items():
            seconds[port] += 8 * demand.bytes / rate
    return {port: each for port, each in seconds.items() if each > 0}


def check_wait(wait: PortWait, job: Job, others: list[tuple[Job, int]], own_class: int, routes: Routes | None) -> None:
    left = [
        (other.id, k, plain_seconds(other, routes).get(wait.port, 0.0) * other.iterations_left) for other, k in others
    ]
    there = [each for each in left if each[2] > 0]
    before, alike = ([each for each in there if fits(each[1])] for fits in (own_class.__gt__, own_class.__eq__))
    own = plain_seconds(job, routes)[wait.port]
    assert wait.own_seconds == pytest.approx(own)
    assert wait.own_seconds_left == pytest.approx(own * job.iterations_left)
    assert wait.seconds_before == pytest.approx(math.fsum(each[2] for each in before))
    assert wait.seconds_beside == pytest.approx(math.fsum(each[2] for each in alike), abs=1e-8)
    assert (wait.before_count, wait.alike_count) == (len(before), len(alike))
    assert wait.after_count == len(there) - len(before) - len(alike)
    for told, all_of_them in ((wait.before, before), (wait.alike, alike)):
        assert [other.seconds_left for other in told] == pytest.approx(
            sorted((each[2] for each in all_of_them), reverse=True)[:MOST_OTHERS]
        )
        expected = {name: (k, seconds) for name, k, seconds in all_of_them}
        assert len({other.job for other in told}) == len(told)
        for other in told:
            assert (other.service_class, other.seconds_left) == pytest.approx(expected[other.job])


@settings(max_examples=200, deadline=None)
@given(st.lists(JOB, min_size=1, max_size=25), st.booleans())
def test_waits_are_those_of_a_plain_computation(drawn: Any, has_routes: bool) -> None:
    routes = ROUTES if has_routes else None
    jobs = tuple(Job(f"j{i}", tuple(demand), iterations_left=left) for i, (demand, left, _) in enumerate(drawn))
    classes = {f"j{i}": k for i, (_, _, k) in enumerate(drawn)}
    job = jobs[0]
    found = waits(snapshot(jobs, routes), classes, job.id)
    assert {wait.port for wait in found.ports} == set(plain_seconds(job, routes))
    for wait in found.ports:
        check_wait(wait, job, [(other, classes[other.id]) for other in jobs[1:]], classes[job.id], routes)
    keys = [(-(wait.seconds_before + wait.seconds_beside), -wait.own_seconds) for wait in found.ports]
    assert keys == sorted(keys)
    meet = [
        classes[other.id] - classes[job.id]
        for other in jobs[1:]
        if other.iterations_left > 0 and plain_seconds(other, routes).keys() & plain_seconds(job, routes).keys()
    ]
    assert (found.before_count, found.alike_count) == (sum(each < 0 for each in meet), meet.count(0))


@settings(max_examples=200, deadline=None)
@given(st.lists(JOB, min_size=1, max_size=25), st.booleans())
def test_all_pages_name_the_port_and_the_jobs_that_a_job_waits_for_longest(drawn: Any, has_routes: bool) -> None:
    jobs = tuple(Job(f"j{i}", tuple(demand), iterations_left=left) for i, (demand, left, _) in enumerate(drawn))
    classes = {f"j{i}": k for i, (_, _, k) in enumerate(drawn)}
    known = snapshot(jobs, ROUTES if has_routes else None)
    found = whole(longest_waits(known, classes))
    for job in jobs:
        ports = waits(known, classes, job.id).ports
        if not ports:
            assert job.id not in found
            continue
        worst = ports[0]
        port, seconds, beside, before, first, alike, until = found[job.id]
        assert (port, seconds, beside) == (worst.port, worst.seconds_before, worst.seconds_beside)
        assert (before, alike) == (worst.before_count, worst.alike_count)
        last = max(each.seconds_before + each.seconds_beside + each.own_seconds_left for each in ports)
        assert until == (pytest.approx(last) if job.iterations_left > 0 else 0.0)
        at_port = [other.job for other in worst.before if len(worst.before) < MOST_OTHERS]
        best = min(((classes[name], int(name[1:]), name) for name in at_port), default=None)
        assert best is None or first == best[2]
        assert (first is None) is (before == 0)


@settings(max_examples=100, deadline=None)
@given(st.lists(JOB, min_size=1, max_size=20), st.booleans())
def test_what_jobs_wait_adds_up_to_the_objective_of_the_plan(drawn: Any, has_routes: bool) -> None:
    """Also where jobs share a band: what the page of a job says, and that of the plan, are of one rule."""
    jobs = tuple(
        Job(f"j{i}", tuple(demand), weight=1.0 + i % 3, iterations_left=left)
        for i, (demand, left, _) in enumerate(drawn)
    )
    classes = {f"j{i}": k for i, (_, _, k) in enumerate(drawn)}
    known = snapshot(jobs, ROUTES if has_routes else None)
    bands = tuple(tuple(job.id for job in jobs if classes[job.id] == k) for k in sorted(set(classes.values())))
    objective, _ = objective_and_bound(known, Ordering("any", bands, {}))
    found = whole(longest_waits(known, classes))
    served = [job.weight * found[job.id].seconds_until_served for job in jobs if job.id in found]
    assert sum(served) / sum(job.weight for job in jobs) == pytest.approx(objective, abs=1e-8)


def test_who_shares_a_port_waits_for_the_others() -> None:
    """Sharing is no way to wait less: two equal jobs are served when both have sent all."""
    jobs = tuple(Job(name, (Demand("h1", "h2", 1e9),), iterations_left=1.0) for name in "ab")
    shared = whole(longest_waits(snapshot(jobs), {"a": 0, "b": 0}))
    ordered = whole(longest_waits(snapshot(jobs), {"a": 0, "b": 1}))
    assert [ordered[name].seconds for name in "ab"] == pytest.approx([0.0, 4.0])
    assert [shared[name].seconds for name in "ab"] == pytest.approx([4.0, 4.0])
    assert [shared[name].seconds_until_served for name in "ab"] == pytest.approx([8.0, 8.0])


def test_others_may_go_on_between_the_waits_of_many_jobs() -> None:
    many = tuple(Job(f"j{i}", (Demand("h1", "h2", 1.0),)) for i in range(3 * PIECE))
    assert len(list(longest_waits(snapshot(many), {job.id: 0 for job in many}))) == 1 + 3


def test_a_job_without_demand_waits_nowhere() -> None:
    assert waits(snapshot((Job("a"),)), {"a": 0}, "a") == ((), 0, 0)
    with pytest.raises(KeyError):
        waits(snapshot((Job("a"),)), {"a": 0}, "b")


def test_the_ports_with_the_longest_wait_are_told() -> None:
    hosts = {f"h{i}": Host(f"h{i}") for i in range(40)}
    wide = Job("wide", tuple(Demand("h0", f"h{i}", 1e6) for i in range(1, 40)))
    few = tuple(Job(f"j{i}", (Demand("h39", f"h{i}", i * 1e6),)) for i in range(1, 11))
    known = replace(snapshot((wide, *few)), hosts=hosts)
    found, before, alike = waits(known, {job.id: job is wide for job in (wide, *few)}, "wide")
    assert (before, alike) == (10, 0)
    assert len(found) == MOST_PORTS
    assert [wait.port.host for wait in found[:10]] == [f"h{i}" for i in range(10, 0, -1)]
    assert found[0].before == (OtherJob("j10", 0, pytest.approx(0.08)),)
    assert found[10].port == Port("h0", Direction.EGRESS), "then the port that the job itself loads most"


def test_a_thousand_jobs_take_milliseconds() -> None:
    draw = np.random.default_rng(5)
    hosts = {f"h{i}": Host(f"h{i}") for i in range(1000)}
    jobs = []
    for i in range(1000):
        used = [f"h{h}" for h in draw.choice(1000, 16, replace=False)]
        pairs = [(src, dst) for src in used[:4] for dst in used[4:]]
        jobs.append(Job(f"j{i}", tuple(Demand(src, dst, 1e6) for src, dst in pairs), iterations_left=10.0))
    known = Snapshot(now=0.0, hosts=hosts, jobs=tuple(jobs))
    classes = {job.id: i % 7 for i, job in enumerate(jobs)}
    waits(known, classes, "j6")  # as after a plan, which has added up the demands
    seconds = []
    for _ in range(5):
        began = time.thread_time()
        waits(known, classes, "j6")
        seconds.append(time.thread_time() - began)
    assert min(seconds) < 0.02
