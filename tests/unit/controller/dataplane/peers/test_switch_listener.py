"""Who may pass for a switch: addresses that are named, and one connection an id as long as that one answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ryu.lib import hub

from controller.config.config import ConfigError
from controller.dataplane.peers.admission import Admission
from evaluation.bench.support.api_client import Controller
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.dataplane.dataplane_world import connect, make_plane, ready
from tests.support.controller.dataplane.fake_datapath import FakeDatapath
from tests.support.controller.dataplane.openflow_peer import Peer, is_connected
from tests.support.controller.settings_file import load

Connect = Callable[..., Peer]


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    yard = Controller(tmp_path_factory.mktemp("listener"))
    yard.settings["openflow"]["switches"] = ["127.0.0.1", "127.0.7.0/24"]
    yard.write()
    yield yard.start()
    yard.stop()


@pytest.fixture
def peer(yard: Controller) -> Iterator[Connect]:
    made: list[Peer] = []

    def make(dpid: int, source: str = "127.0.0.1") -> Peer:
        made.append(Peer(yard.settings["openflow"]["port"], dpid, source))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_a_second_connection_does_not_end_a_switch_that_answers(yard: Controller, peer: Connect) -> None:
    first = peer(1)
    wait_until(lambda: is_connected(yard, 1))
    for _ in range(3):
        assert peer(1, "127.0.7.9").ended.wait(10), "it must be refused"
    assert not first.ended.is_set()
    assert is_connected(yard, 1)
    said = "a second connection, from 127.0.7.9, is refused: its session with 127.0.0.1 answers"
    assert yard.log().count(said) == 1, "one line a peer and minute"


def test_a_switch_that_answers_no_more_gives_way_to_its_return(yard: Controller, peer: Connect) -> None:
    before = peer(2)
    wait_until(lambda: is_connected(yard, 2))
    before.is_silent = True
    again = peer(2, "127.0.7.2")
    wait_until(lambda: "switch 0000000000000002 has connected from 127.0.7.2" in yard.log())
    assert not again.ended.is_set()
    assert is_connected(yard, 2)


def test_a_switch_that_has_gone_comes_back_at_once(yard: Controller, peer: Connect) -> None:
    before = peer(3)
    wait_until(lambda: is_connected(yard, 3))
    before.close()
    again = peer(3)
    wait_until(lambda: yard.log().count("switch 0000000000000003 has connected from") == 2)
    assert not again.ended.is_set()


def test_an_address_that_is_not_named_may_not_connect(yard: Controller, peer: Connect) -> None:
    for _ in range(3):
        assert peer(4, "127.0.8.1").ended.wait(10)
    assert not is_connected(yard, 4)
    said = "127.0.8.1 may not connect as a switch: openflow.switches does not name it"
    assert yard.log().count(said) == 1, "each address is said once"
    peer(4, "127.0.7.1")
    wait_until(lambda: is_connected(yard, 4))


def test_the_listener_survived_all_of_this(yard: Controller) -> None:
    assert "Traceback" not in yard.log()
    assert "may pass for a switch" not in yard.log()
    assert "without TLS" not in yard.log()


def test_an_open_listener_is_said_at_the_start(tmp_path: Path) -> None:
    yard = Controller(tmp_path)
    yard.settings["openflow"] |= {"host": "0.0.0.0", "insecure": True}
    yard.write()
    try:
        yard.start()
        port = yard.settings["openflow"]["port"]
        assert f"openflow.insecure is true: switches connect to 0.0.0.0:{port} without TLS" in yard.log()
        problems = yard.call("GET", "/v1/status").json()["problems"]
        assert "switches connect without TLS: openflow.insecure is true; set openflow.tls" in problems
        assert f"whoever reaches 0.0.0.0:{port} may pass for a switch; name the switches' addresses in" in yard.log()
    finally:
        yard.stop()


@pytest.mark.parametrize(
    ("switches", "address", "expected"),
    [
        ([], "203.0.113.9", True),
        (["10.0.0.7"], "10.0.0.7", True),
        (["10.0.0.7"], "10.0.0.8", False),
        (["10.0.0.0/24", "fd00::/8"], "10.0.1.1", False),
        (["10.0.0.0/24", "fd00::/8"], "fd00::1%eth0", True),
        (["10.0.0.0/24"], "::ffff:10.0.0.9", True),
    ],
)
def test_addresses_and_networks(switches: list[str], address: str, expected: bool) -> None:
    assert Admission(switches).admits(address) is expected


def test_addresses_are_checked_with_the_settings(tmp_path: Path) -> None:
    assert load(tmp_path, "openflow: {switches: [10.0.0.7, 10.1.0.9/16]}\n").openflow.switches == (
        "10.0.0.7/32",
        "10.1.0.0/16",
    )
    for wrong in ("switch-1", "10.0.0.0/33", "''"):
        with pytest.raises(ConfigError, match=r":1: openflow\.switches.*like 10\.0\.0\.7 or 10\.0\.0\.0/24"):
            load(tmp_path, f"openflow: {{switches: [{wrong}]}}\n")


# The dataplane alone -------------------------------------------------------------------------------------------------


def rival(plane: Any, dpid: int = 1) -> FakeDatapath:
    return FakeDatapath(dpid, plane.deliver, address=("10.9.0.2", 50_001))


def test_what_a_refused_connection_tells_is_not_believed() -> None:
    plane = make_plane()
    switch = connect(plane)
    ready(plane)
    other = rival(plane)
    plane.connected(other)
    wait_until(lambda: other.closed, sleep=hub.sleep)
    plane.disconnected(other)
    assert not switch.closed
    assert len(plane.switches()) == 1
    asked = len(switch.messages)
    plane.ports_changed(other)
    hub.sleep(0.1)
    assert len(switch.messages) == asked, "no port of the switch itself has changed"
    plane.close()


def test_a_rival_that_has_left_does_not_become_the_switch() -> None:
    plane = make_plane()
    switch = connect(plane)
    ready(plane)
    switch.behaviour.silent = True
    other, third = rival(plane), rival(plane)
    plane.connected(other)
    plane.connected(third)
    wait_until(lambda: third.closed, sleep=hub.sleep)  # one at a time is looked at
    plane.disconnected(other)
    hub.sleep(0.5)  # by now the echo is overdue
    plane.disconnected(switch)
    assert (plane.switches(), other.messages) == ((), [])
    plane.close()
