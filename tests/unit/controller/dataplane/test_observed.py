"""Where switches are only observed, they are planned for, and nothing on them changes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3_parser as parser

from controller.dataplane.observed import REASON
from controller.dataplane.plane import Dataplane
from controller.model import Switch
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.dataplane.dataplane_world import connect, make_plane, ready, rules_for

READS = (parser.OFPPortDescStatsRequest, parser.OFPEchoRequest, parser.OFPBarrierRequest)


@pytest.fixture
def plane() -> Iterator[Dataplane]:
    made = make_plane(only_observes=True, queues="managed", untrusted=frozenset({(1, 2)}))
    yield made
    made.close()


def test_a_switch_is_planned_for_and_asked_only(plane: Dataplane) -> None:
    heard: list[str] = []
    plane.subscribe(heard.append)
    switch = connect(plane)
    ready(plane)
    assert heard == [f"switch {1:016x} is observed"]
    (known,) = plane.switches()
    assert known == Switch(1, trusted_ports=known.trusted_ports)
    assert known.trusted_ports is not None and 2 not in known.trusted_ports
    applied = plane.apply(rules_for({"a": 0}))
    assert (applied.errors, applied.flow_mods) == ((), 0)
    assert plane.renew_gates() == 0
    plane.set_paused(True)
    plane.renew_gates()
    assert plane.class_bytes() == {}
    plane.ports_changed(switch)
    hub.sleep(0.2)
    assert switch.table == {}
    assert [type(message) for message in switch.messages if not isinstance(message, READS)] == []
    (status,) = plane.status()
    assert (status.ready, status.reason, status.rules, status.connected) == (False, REASON, 0, True)


def test_it_comes_and_goes(plane: Dataplane) -> None:
    heard: list[str] = []
    plane.subscribe(heard.append)
    switch = connect(plane)
    ready(plane)
    plane.disconnected(switch)
    assert plane.switches() == ()
    assert heard[-1] == f"switch {1:016x} has disconnected"
    again = connect(plane)
    ready(plane)
    rival = connect(plane)
    wait_until(lambda: rival.closed, sleep=hub.sleep, what="the refusal of a second connection with the same id")
    assert not again.closed


def test_a_switch_that_tells_nothing_is_asked_again(plane: Dataplane) -> None:
    switch = connect(plane)
    switch.behaviour.silent = True
    plane.disconnected(switch)
    switch = connect(plane, behaviour=switch.behaviour)
    hub.sleep(0.3)
    assert plane.switches() == ()
    switch.behaviour.silent = False
    ready(plane)
