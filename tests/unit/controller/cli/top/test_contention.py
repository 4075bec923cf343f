"""Which jobs meet at a host's link, and who is served first there."""

from __future__ import annotations

from controller.cli.top.contention import Wait, cannot_meet, load_of, rates_of, waits
from controller.model import Direction, Port
from controller.wire import DemandSpec, LinkEnd
from tests.support.controller.cli.pictures import job, network

IN, OUT = Direction.INGRESS, Direction.EGRESS


def test_a_job_waits_at_the_port_that_it_keeps_busy_for_longest() -> None:
    loads = {
        "a": {Port("h1", IN): 1.0},
        "b": {Port("h1", IN): 1.0, Port("h2", OUT): 3.0},
        "c": {Port("h1", IN): 2.0, Port("h2", OUT): 1.0},
        "alone": {Port("h3", IN): 5.0},
        "idle": {},
    }
    found = waits([["a", "alone", "idle"], ["b"], ["c"]], loads)
    assert found == {
        "a": Wait(Port("h1", IN), (), 2),
        "b": Wait(Port("h2", OUT), (), 1),
        "c": Wait(Port("h1", IN), ("a", "b"), 2),
        "alone": Wait(Port("h3", IN), (), 0),
    }


def test_jobs_of_one_class_are_not_before_each_other() -> None:
    loads = {name: {Port("h1", IN): 1.0} for name in "abc"}
    found = waits([["a"], ["c", "b"]], loads)
    assert [found[name].before for name in "abc"] == [(), ("a",), ("a",)]
    assert {wait.shares for wait in found.values()} == {2}


def test_a_slow_link_is_busy_for_longer() -> None:
    known = network(h1={}, h2={})
    slow = known.links[0].model_copy(update={"b_to_a_bps": 1e8})
    rates = rates_of(known.model_copy(update={"links": (slow, known.links[1])}))
    assert rates == {Port("h1", IN): 1e8, Port("h1", OUT): 1e9, Port("h2", IN): 1e9, Port("h2", OUT): 1e9}
    assert load_of(job("a", 0, ("h2", "h1", 1e7)), rates) == {Port("h2", OUT): 0.08, Port("h1", IN): 0.8}
    assert rates_of(None) == {}


def test_without_a_declared_demand_the_measured_one_counts() -> None:
    measured = (DemandSpec(src="h1", dst="h2", bytes=1e6), DemandSpec(src="h1", dst="h3", bytes=1e6))
    assert load_of(job("a", 0, measured_demand=measured), {})[Port("h1", OUT)] == 0.016
    assert load_of(job("a", 0, ("h1", "h2", 5e6), measured_demand=measured), {})[Port("h1", OUT)] == 0.04
    assert load_of(job("a", 0), {}) == {}


def test_jobs_cannot_meet_where_no_two_use_a_port_and_all_is_known() -> None:
    known = network(h1={}, h2={})
    a = {Port("h1", IN): 1.0, Port("h2", OUT): 3.0}
    b = {Port("h1", OUT): 2.0, Port("h2", IN): 9.0}
    assert cannot_meet([a, b], known)
    assert not cannot_meet([a, {Port("h2", OUT): 0.1}], known), "they meet at a port that is the busiest of neither"
    assert not cannot_meet([a, {}], known), "the traffic of a job is not known"
    assert not cannot_meet([a, None], known)
    assert not cannot_meet([a, b], None), "a tenant sees neither the network nor the jobs of others"
    assert not cannot_meet([], known)
    inner = known.links[0].model_copy(update={"a": LinkEnd(node="0000000000000002", port=1)})
    assert not cannot_meet([a, b], known.model_copy(update={"links": (*known.links, inner)})), "a link between switches"
