"""What is wrong at one port is that port's problem; a switch none of whose ports is proven is not believed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ryu.lib import hub

from controller.dataplane.plane import Dataplane
from controller.dataplane.queues.ovsdb import Database
from controller.dataplane.queues.ovsdb_select import OvsdbError
from controller.dataplane.values import SwitchStatus
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.dataplane.dataplane_world import connect, make_plane, ready, reason, rules_for
from tests.support.controller.dataplane.fake_datapath import Behaviour, FakeDatapath
from tests.support.controller.dataplane.ovsdb_server import OvsdbServer, own_tags


def state(plane: Dataplane) -> SwitchStatus:
    return plane.status()[0]


def proven(plane: Dataplane) -> list[int]:
    return [proof.port for proof in state(plane).ports if proof.problem is None]


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        (
            {"deaf": frozenset({2})},
            "port eth2: packets for queue 1, 2, 3, 4, 5, 6, 7 left by queue 0; the switch ignores",
        ),
        ({"bare": frozenset({2})}, "port eth2 has no queue 0, 1, 2, 3, 4, 5, 6, 7; it needs 0 to 7"),
    ],
)
def test_a_port_that_is_not_proven_is_named_and_the_others_are_ordered(
    behaviour: dict[str, Any], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    plane = make_plane(queue_seconds=0.05)
    switch = connect(plane, behaviour=Behaviour(**behaviour), ports=(1, 2, 3))
    ready(plane)
    assert proven(plane) == [1, 3]
    assert plane.apply(rules_for({"a": 0})).errors == ()
    (problem,) = state(plane).problems
    assert problem.startswith(f"1 of its 3 ports is not ordered: {said}")
    hub.sleep(0.5)
    assert len([message for message in caplog.messages if "not ordered" in message]) == 1, "it is said once"
    switch.behaviour = Behaviour()
    wait_until(lambda: proven(plane) == [1, 2, 3], sleep=hub.sleep)
    assert state(plane).problems == ()
    plane.close()


def test_a_switch_that_ignores_set_queue_at_every_port_is_not_ready() -> None:
    plane = make_plane()
    switch = connect(plane, behaviour=Behaviour(deaf=frozenset({1, 2})))
    assert "the switch ignores set_queue" in reason(plane, switch)
    assert plane.switches() == ()
    plane.close()


def test_a_port_whose_queues_go_is_named_and_the_switch_stays_ready() -> None:
    plane = make_plane(queue_seconds=0.05)
    switch = connect(plane)
    ready(plane)
    switch.behaviour.bare = frozenset({1})
    wait_until(lambda: state(plane).problems, sleep=hub.sleep)
    assert (state(plane).ready, proven(plane)) == (True, [2])
    switch.behaviour.bare = frozenset({1, 2})
    wait_until(lambda: not state(plane).ready, sleep=hub.sleep)
    plane.close()


def test_a_port_that_goes_down_while_it_is_probed_is_left_out_until_it_is_up() -> None:
    plane = make_plane()
    behaviour = Behaviour()
    switch = FakeDatapath(1, plane.deliver, behaviour)
    behaviour.at_probe = lambda: switch.down.add(2)
    plane.connected(switch)
    ready(plane)
    assert (proven(plane), state(plane).problems) == ([1], ())
    behaviour.at_probe = lambda: None
    switch.down.clear()
    plane.ports_changed(switch)
    wait_until(lambda: proven(plane) == [1, 2], sleep=hub.sleep)
    plane.close()


# With managed queues, in a real database ----------------------------------------------------------------------------


@pytest.fixture
def server(tmp_path: Any) -> Iterator[OvsdbServer]:
    made = OvsdbServer(tmp_path / "s1", 1)
    yield made
    made.close()


def managed(server: OvsdbServer) -> Dataplane:
    return make_plane(queues="managed", ovsdb=server.address, queue_seconds=0.05)


def foreign_qos(server: OvsdbServer, port: str) -> str:
    command = ["--", "--id=@q", "create", "qos", "type=linux-htb", "--", "set", "port", port, "qos=@q"]
    return server.vsctl(*command).split()[0]


def qos(server: OvsdbServer, port: str) -> str:
    return server.vsctl("get", "port", port, "qos").strip()


def max_rate(server: OvsdbServer, port: str) -> str:
    return server.vsctl("get", "qos", qos(server, port), "other_config:max-rate").strip().strip('"')


def test_one_foreign_qos_row_costs_its_own_port_alone(server: OvsdbServer) -> None:
    foreign = foreign_qos(server, "eth2")
    plane = managed(server)
    connect(plane)
    ready(plane)
    assert proven(plane) == [1]
    assert state(plane).problems == (
        "1 of its 2 ports is not ordered: port eth2 has queues that are not Trainyard's; "
        "clear them (ovs-vsctl clear port eth2 qos) or set queues: existing",
    )
    assert (server.owners(), qos(server, "eth2")) == ({f"{1:016x}/1"}, foreign)
    server.vsctl("clear", "port", "eth2", "qos", "--", "destroy", "qos", foreign)
    wait_until(lambda: proven(plane) == [1, 2], sleep=hub.sleep)
    assert (state(plane).problems, server.owners()) == ((), own_tags(1))
    plane.close()


def test_a_switch_with_nothing_but_foreign_qos_is_not_ready(server: OvsdbServer) -> None:
    for port in ("eth1", "eth2"):
        foreign_qos(server, port)
    plane = managed(server)
    switch = connect(plane)
    assert reason(plane, switch).count("queues that are not Trainyard's") == 2
    assert plane.switches() == ()
    plane.close()


def test_foreign_qos_that_comes_later_is_named_and_the_switch_stays_ready(server: OvsdbServer) -> None:
    plane = managed(server)
    connect(plane)
    ready(plane)
    foreign = foreign_qos(server, "eth2")
    wait_until(lambda: state(plane).problems, sleep=hub.sleep)
    assert (state(plane).ready, proven(plane), qos(server, "eth2")) == (True, [1], foreign)
    plane.close()


@pytest.mark.parametrize("change", ["clear", "edit"])
def test_queues_that_somebody_takes_away_or_changes_are_made_again_and_that_is_said(
    server: OvsdbServer, change: str, caplog: pytest.LogCaptureFixture
) -> None:
    plane = managed(server)
    connect(plane)
    ready(plane)
    before = qos(server, "eth1")
    if change == "clear":
        server.vsctl("clear", "port", "eth1", "qos")
    else:
        server.vsctl("set", "qos", before, "other_config:max-rate=1000000")
    wait_until(lambda: state(plane).repairs == 1, sleep=hub.sleep)
    assert max_rate(server, "eth1") == "100000000"
    assert (qos(server, "eth1") == before) == (change == "edit"), "rows that are there are changed in place"
    assert (state(plane).ready, proven(plane)) == (True, [1, 2])
    said = [message for message in caplog.messages if "somebody else changed it" in message]
    assert len(said) == 1
    assert said[0].endswith("queues had been deleted or changed and were made again (port eth1)")
    plane.close()


def test_a_database_that_refuses_one_port_costs_that_port_alone(
    server: OvsdbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Database.run

    def refuse(self: Database, *arguments: str) -> str:
        if "eth2" in arguments:
            raise OvsdbError("constraint violation")
        return run(self, *arguments)

    monkeypatch.setattr(Database, "run", refuse)
    plane = managed(server)
    connect(plane)
    ready(plane)
    assert proven(plane) == [1]
    assert "port eth2: its queues could not be made: constraint violation" in state(plane).problems[0]
    monkeypatch.setattr(Database, "run", run)
    wait_until(lambda: proven(plane) == [1, 2], sleep=hub.sleep)
    plane.close()


def test_garbage_that_cannot_be_collected_is_said_and_costs_nothing(
    server: OvsdbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Database.run

    def refuse(self: Database, *arguments: str) -> str:
        if "destroy" in arguments:
            raise OvsdbError("not allowed")
        return run(self, *arguments)

    server.vsctl("create", "queue", "external_ids:trainyard=0000000000000001/9")
    monkeypatch.setattr(Database, "run", refuse)
    plane = managed(server)
    connect(plane)
    ready(plane)
    assert state(plane).problems == (
        "queues in its database that no port uses any more could not be deleted: not allowed",
    )
    plane.close()


def test_a_database_that_goes_away_takes_no_proven_port_with_it(server: OvsdbServer) -> None:
    plane = managed(server)
    connect(plane)
    ready(plane)
    server.close()
    wait_until(lambda: state(plane).problems, sleep=hub.sleep)
    assert "its queues cannot be compared with its database" in state(plane).problems[0]
    assert (state(plane).ready, proven(plane)) == (True, [1, 2])
    plane.close()


def test_a_port_without_a_known_speed_is_ordered_at_a_rate_that_is_said(server: OvsdbServer) -> None:
    plane = managed(server)
    connect(plane, behaviour=Behaviour(speed_kbps=0))
    ready(plane)
    (problem,) = state(plane).problems
    assert problem.endswith("made for 1 Gbit/s; name it in hosts or links: eth1; eth2")
    assert max_rate(server, "eth1") == "1000000000"
    plane.close()
