"""Which jobs meet at a host's link, and who is served first there."""

from __future__ import annotations

from controller.cli.top.contention import Wait, cannot_meet, interfaces_of, load_of, waits
from controller.endpoints.servers import Servers
from controller.model import Direction, Host, Port
from controller.wire import LinkEnd, MeasuredDemand
from tests.support.controller.cli.pictures import job, network

IN, OUT = Direction.INGRESS, Direction.EGRESS
NOBODY = Servers({})


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
        "a": Wait(Port("h1", IN), (), 0),
        "b": Wait(Port("h2", OUT), (), 0),
        "c": Wait(Port("h1", IN), ("a", "b"), 0),
        "alone": Wait(Port("h3", IN), (), 0),
    }


def test_jobs_of_one_class_are_not_before_each_other() -> None:
    loads = {name: {Port("h1", IN): 1.0} for name in "abc"}
    found = waits([["a"], ["c", "b"]], loads)
    assert [found[name].before for name in "abc"] == [(), ("a",), ("a",)]
    assert [found[name].shares for name in "abc"] == [0, 1, 1]


def test_a_slow_link_is_busy_for_longer() -> None:
    known = network(h1={}, h2={})
    slow = known.links[0].model_copy(update={"b_to_a_bps": 1e8})
    interfaces = interfaces_of(known.model_copy(update={"links": (slow, known.links[1])}))
    assert dict(interfaces) == {"h1": (Host("h1", 1e8, 1e9),), "h2": (Host("h2", 1e9, 1e9),)}
    assert load_of(job("a", 0, ("h2", "h1", 1e7)), interfaces) == {Port("h2", OUT): 0.08, Port("h1", IN): 0.8}
    assert dict(interfaces_of(None)) == {}


def test_jobs_meet_at_the_interfaces_of_a_host() -> None:
    known = network(h1={}, h2={})
    rails = tuple(
        link.model_copy(update={"a": link.a.model_copy(update={"interface": name})})
        for link in known.links
        for name in ("eth0", "eth1")
    )
    interfaces = interfaces_of(known.model_copy(update={"links": rails}))
    assert load_of(job("a", 0, ("h1", "h2", 1e7)), interfaces) == {
        Port(f"{host}/{name}", direction): 0.04
        for host, direction in (("h1", OUT), ("h2", IN))
        for name in ("eth0", "eth1")
    }
    measured = (MeasuredDemand(src="h1/eth1", dst="h2/eth0", bytes=1e7),)
    assert load_of(job("b", 0, measured_demand=measured), interfaces) == {
        Port("h1/eth1", OUT): 0.08,
        Port("h2/eth0", IN): 0.08,
    }


def test_without_a_declared_demand_the_measured_one_counts() -> None:
    measured = (MeasuredDemand(src="h1", dst="h2", bytes=1e6), MeasuredDemand(src="h1", dst="h3", bytes=1e6))
    assert load_of(job("a", 0, measured_demand=measured), NOBODY)[Port("h1", OUT)] == 0.016
    both = job("a", 0, ("h1", "h2", 5e6), measured_demand=measured)
    assert load_of(both, NOBODY)[Port("h1", OUT)] == 0.04
    in_epochs = both.model_copy(update={"spec": both.spec.model_copy(update={"unit": "epoch"})})
    assert load_of(in_epochs, NOBODY)[Port("h1", OUT)] == 0.016, "what is declared is of an iteration"
    assert load_of(job("a", 0), NOBODY) == {}


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


def test_a_job_waits_at_the_port_that_the_plan_names() -> None:
    loads = {"a": {Port("h1", IN): 1.0}, "b": {Port("h1", IN): 1.0, Port("h2", OUT): 5.0}}
    assert waits([["a"], ["b"]], loads)["b"] == Wait(Port("h2", OUT), (), 0)
    assert waits([["a"], ["b"]], loads, {"b": "h1 ingress"})["b"] == Wait(Port("h1", IN), ("a",), 0)
    assert waits([["a"], ["b"]], loads, {"b": "h9 ingress"})["b"].port == Port("h2", OUT), "it moved meanwhile"
