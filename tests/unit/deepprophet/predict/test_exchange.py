"""Transfers over a described network, worked out by hand: rings, servers and trees."""

from __future__ import annotations

import pytest

from deepprophet.costs.calibration import Collective
from deepprophet.predict import network
from deepprophet.predict.exchange import Wire
from deepprophet.predict.network import Placement
from tests.support.prophet_links import HOST, even


def test_ring_sends_its_share_over_every_link() -> None:
    net = even(4, latency=0.01)
    wire = Wire(net, network.place(net, 4, "ring"), "ring", HOST)
    (transfer,) = wire.of_bucket(2e6)
    assert transfer.seconds == pytest.approx(6 * 0.011 + 3.0)
    assert {(d.src, d.dst): d.bytes for d in transfer.demand} == {
        ("h1", "h2"): 3e6, ("h2", "h3"): 3e6, ("h3", "h4"): 3e6, ("h4", "h1"): 3e6,
    }  # fmt: skip


def test_servers_link_is_shared_by_all_workers_and_several_servers_share_the_bytes() -> None:
    net = even(4)
    alone = Wire(net, network.place(net, 3, "ps"), "ps")
    assert alone.placement.ps == ("h4",)
    push, pull = alone.of_bucket(1e6)
    assert push.seconds == pull.seconds == pytest.approx(3.0)
    assert push.links.isdisjoint(pull.links)
    two = Wire(net, Placement(("h1", "h2"), ("h3", "h4")), "ps")
    assert two.of_bucket(1e6)[0].seconds == pytest.approx(1.0)


def test_worker_beside_its_server_crosses_no_link() -> None:
    net = even(2)
    wire = Wire(net, Placement(("h1", "h2"), ("h1",)), "ps")
    push, _ = wire.of_bucket(1e6)
    assert [(d.src, d.dst) for d in push.demand] == [("h2", "h1")]
    assert push.seconds == pytest.approx(1.0)


def test_two_workers_of_a_host_share_its_link_and_pass_each_other_without() -> None:
    net = even(2)
    wire = Wire(net, network.place(net, 4, "ring"), "ring")
    assert wire.placement.workers == ("h1", "h2", "h1", "h2")
    (transfer,) = wire.of_bucket(2e6)
    assert transfer.seconds == pytest.approx(6.0)  # two of the ring's four hops in each direction of each link


def test_lone_worker_asks_nobody() -> None:
    net = even(1)
    wire = Wire(net, network.place(net, 1, "ring"), "ring", HOST)
    assert wire.of_bucket(1e6) == []
    assert wire.of_buffers([100]) == []


def test_host_that_is_slower_than_its_link_sets_the_pace() -> None:
    net = even(2, rate=1e15)
    slow = Collective(message=0.0, byte=1e-6, processor_byte=0.5e-6, low=1.0, high=1.0)
    (transfer,) = Wire(net, network.place(net, 2, "ring"), "ring", slow).of_bucket(1e6)
    assert transfer.seconds == pytest.approx(1.0, rel=1e-3)
    assert transfer.work == pytest.approx(0.5)
    known = slow.model_copy(update={"lost_byte": 2e-6})
    assert Wire(net, network.place(net, 2, "ring"), "ring", known).of_bucket(1e6)[0].work == pytest.approx(2.0)


def test_a_core_works_on_bytes_before_they_are_sent_on() -> None:
    """A megabyte takes a second on these links; the host copies and adds it up in between."""
    net = even(2)
    host = Collective(message=0.0, byte=0.9e-6, processor_byte=0.5e-6, low=1.0, high=1.0)
    (transfer,) = Wire(net, network.place(net, 2, "ring"), "ring", host).of_bucket(1e6)
    assert transfer.seconds == pytest.approx(1.5)


def test_buffers_go_down_a_tree() -> None:
    net = even(4, latency=0.5)
    (transfer,) = Wire(net, network.place(net, 4, "ring"), "ring").of_buffers([1_000_000])
    assert {(d.src, d.dst) for d in transfer.demand} == {("h1", "h2"), ("h1", "h3"), ("h2", "h4")}
    assert transfer.seconds == pytest.approx(2 * 0.5 + 2.0)
