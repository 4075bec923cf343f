"""The comparison on a real interface with real sockets, in network namespaces of the test's own."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from controller.wire import InterfaceTraffic
from host_reporter.discovery.sockets.netlink import Diag, Looked
from host_reporter.nic import netdev_list
from host_reporter.notices import Notices
from host_reporter.unseen import observer as module
from host_reporter.unseen import verdict, window
from host_reporter.unseen.observer import Observer
from tests.support.agent.cabled_host import INTERFACE, OWN, PEER, PEER_IPV6, PORT, Peer, cabled_host, send_tcp, send_udp
from tests.support.rounds import first_that

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace needs root")


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Peer]:
    # A shorter window, and less than a slow machine sends.
    monkeypatch.setattr(window, "WINDOW_SECONDS", 1.0)
    monkeypatch.setattr(module, "INTERVAL_SECONDS", 0.2)
    monkeypatch.setattr(verdict, "FLOOR", 2e4)
    with cabled_host() as peer:
        yield peer


class Book:
    addresses: Mapping[str, str] | None = {OWN: "h1", PEER: "h2"}


class Watched:
    """An observer that is shown the sockets of this namespace."""

    def __init__(self, rdma: Path) -> None:
        self.latest: dict[str, InterfaceTraffic] = {}
        self.observer = Observer(
            "h1", Book(), Notices(logging.getLogger("test")), interfaces=(), changed=self._changed, rdma=rdma
        )
        self.diag = Diag()

    def _changed(self, interfaces: tuple[InterfaceTraffic, ...]) -> None:
        self.latest = {each.interface: each for each in interfaces}

    def look(self) -> None:
        self.observer.looking()
        sockets = self.diag.sockets()
        ended = self.diag.ended()
        looked = Looked(0, sockets, ended.sockets)
        self.observer.looked([looked], is_whole=ended.is_all)

    def look_during(self, traffic: Callable[[], object]) -> list[InterfaceTraffic]:
        """Looks until the traffic is over; what was told of the interface meanwhile."""
        told = []
        thread = threading.Thread(target=traffic)
        thread.start()
        while thread.is_alive():
            self.look()
            told.append(self.latest[INTERFACE])
            time.sleep(0.1)
        thread.join()
        return told


@pytest.fixture
def watched(peer: Peer, tmp_path: Path) -> Iterator[Watched]:
    made = Watched(tmp_path)
    made.look()
    yield made
    made.diag.close()


def test_tcp_is_never_said_and_udp_is_in_its_direction(watched: Watched, peer: Peer) -> None:
    told = watched.look_during(lambda: send_tcp(3.0))
    assert told[-1].sent > 1e6
    assert {(each.unseen_sent_rate, each.unseen_received_rate) for each in told} == {(None, None)}
    assert told[-1].unseen_sent == 0

    told = watched.look_during(lambda: send_udp(3.0))
    assert told[-1].unseen_sent_rate is not None
    assert told[-1].unseen_received_rate is None
    assert 0 < told[-1].unseen_sent < told[-1].sent

    with peer.blasting():
        told = watched.look_during(lambda: time.sleep(4.0))
    assert told[-1].unseen_received_rate is not None
    assert told[-1].unseen_sent_rate is None, "it is over"

    watched.observer.idle()
    assert watched.latest == {}


@pytest.mark.parametrize("address", [PEER, PEER_IPV6])
def test_connections_that_end_between_two_looks_are_explained(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    # The kernel tells of ends from a queue of its own work, which waits where processors are busy: now and then so long
    # that what it has not told yet is a large share.
    monkeypatch.setattr(window, "WINDOW_SECONDS", 5.0)

    def churn() -> None:
        end = time.monotonic() + 8.0
        while time.monotonic() < end:
            with socket.create_connection((address, PORT), 10) as short:
                short.sendall(bytes(100_000))

    def is_explained(told: list[InterfaceTraffic]) -> bool:
        return {each.unseen_sent_rate for each in told} == {None}

    told = first_that(is_explained, lambda: watched.look_during(churn))
    assert told[-1].sent > 1e6
    assert is_explained(told)


def test_rdma_is_told_by_device_and_port(watched: Watched, tmp_path: Path) -> None:
    counters = tmp_path / "mlx5_0/ports/1/counters"
    counters.mkdir(parents=True)
    for step in range(20):
        (counters / "port_xmit_data").write_text(f"{step * 10**6}\n")
        (counters / "port_rcv_data").write_text("0\n")
        watched.look()
        time.sleep(0.1)
    port = watched.latest["mlx5_0:1"]
    assert port.kind == "rdma"
    assert port.unseen_sent_rate is not None
    assert port.unseen_received_rate is None
    assert watched.latest[INTERFACE].unseen_sent_rate is None


def test_sockets_that_were_not_all_listed_decide_nothing(watched: Watched) -> None:
    def half_blind() -> None:
        watched.observer.looking()
        watched.observer.looked([], is_whole=False)

    watched.look = half_blind  # type: ignore[method-assign]
    told = watched.look_during(lambda: send_udp(2.0))
    assert {each.unseen_sent_rate for each in told} == {None}


def test_the_kernel_tells_interfaces_and_their_addresses(peer: Peer) -> None:
    send_tcp(0.1)
    network = netdev_list.read()
    own = network.netdevs[network.addresses[socket.inet_aton(OWN)]]
    assert (own.name, own.kind, own.lower, own.master) == (INTERFACE, "veth", None, None)
    assert own.bytes.sent > 0 and own.packets.sent > 0
    assert network.netdevs[network.addresses[socket.inet_aton("127.0.0.1")]].name == "lo"
    assert network.netdevs[network.addresses[socket.inet_pton(socket.AF_INET6, "::1")]].link_type == 772
