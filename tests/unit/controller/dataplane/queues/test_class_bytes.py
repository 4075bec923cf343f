"""The bytes by class are counters: they only rise, whatever becomes of ports, queues and switches."""

from __future__ import annotations

from controller.dataplane.queues.byte_counts import ByteCounts
from controller.dataplane.queues.received import NOT_COUNTED
from tests.support.controller.dataplane.dataplane_world import connect, make_plane, ready


def test_counters_that_begin_anew_go_on_where_they_were() -> None:
    counts = ByteCounts()
    counts.update(1, {(1, 1): (3, 300), (2, 1): (1, 100), (1, 0): (1, 50)})
    assert counts.totals() == {(1, 0): 400, (1, None): 50}
    counts.update(1, {(1, 1): (4, 350), (2, 1): (1, 100)})
    assert counts.totals()[1, 0] == 450
    counts.update(1, {(1, 1): (1, 40)})
    assert counts.totals()[1, 0] == 490, "the queue was made anew, and has sent 40 since"
    counts.update(2, {(1, 1): (1, 7)})
    assert counts.totals() == {(1, 0): 490, (1, None): 50, (2, 0): 7}
    counts.update(1, {(1, 1): (2, 90), (2, 1): (2, 150)})
    assert counts.totals()[1, 0] == 590, "a port that was away has sent 50 more"
    assert counts.by_port() == {(1, 1): {0: 440, None: 50}, (1, 2): {0: 150}, (2, 1): {0: 7}}


def test_ports_that_are_gone_do_not_fill_the_memory() -> None:
    counts = ByteCounts(max_remembered=10)
    for port in range(100):
        counts.update(1, {(port, 1): (1, 10)})
    assert counts.totals() == {(1, 0): 1000}
    assert len(counts._last[1]) <= 10
    assert len(counts.by_port()) <= 10


def test_a_switch_that_is_away_or_makes_its_queues_anew_takes_no_bytes_back() -> None:
    plane = make_plane()
    switch = connect(plane)
    ready(plane)
    before = plane.class_bytes()
    assert set(before.values()) == {600}
    ports = {(1, port): {each: 300 for _, each in before} for port in (1, 2)}
    assert plane.port_bytes() == ports
    switch._counts = dict.fromkeys(switch._counts, 1)
    assert plane.port_bytes(anew=False) == ports, "the switch was not asked"
    assert plane.class_bytes() == dict.fromkeys(before, 800), "two ports have sent a packet of 100 B since"
    plane.disconnected(switch)
    assert plane.class_bytes() == dict.fromkeys(before, 800)
    plane.close()


def test_queues_and_ports_that_a_switch_cannot_have_count_nothing() -> None:
    plane = make_plane()
    switch = connect(plane)
    ready(plane)
    before = plane.class_bytes()
    # It has not told of the port 77 yet, and the queues above 7 are somebody else's.
    switch.ports = (*switch.ports, 77)
    switch.behaviour.queues = 12
    switch._counts |= dict.fromkeys([(1, 8), (1, 11), (77, 1), (77, 9)], 50)
    assert plane.class_bytes() == before
    plane.close()


def test_what_ports_have_received_is_asked_of_ready_switches() -> None:
    plane = make_plane()
    switch = connect(plane)
    switch.received = {1: 500, 2: NOT_COUNTED, 77: 9}
    ready(plane)
    assert plane.received_bytes() == {(1, 1): 500}, "it does not count at port 2, and has told of no port 77"
    switch.received = {1: 40}
    assert plane.received_bytes() == {(1, 1): 40, (1, 2): 0}
    switch.behaviour.silent = True
    assert plane.received_bytes() == {}
    plane.disconnected(switch)
    assert plane.received_bytes() == {}
    plane.close()
