"""The bytes of all sockets of a namespace, over looks in which sockets come, end and are left out."""

from __future__ import annotations

from host_reporter.discovery.sockets.sock_diag import ESTABLISHED, LISTEN, Socket
from host_reporter.unseen import tcp_bytes
from host_reporter.unseen.tcp_bytes import TcpBytes

OWN, PEER = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
WITHIN = frozenset({OWN})


def sock(cookie: int, acked: int, received: int = 0, *, remote: bytes = PEER, state: int = ESTABLISHED) -> Socket:
    return Socket(cookie, 1, 1, state, OWN, 5000, remote, 6000, acked, received)


def test_what_was_carried_before_the_first_look_does_not_count() -> None:
    table = TcpBytes(from_first_look=True)
    table.count([sock(1, 1000)], WITHIN)
    assert table.sum == (0, 0)
    table.count([sock(1, 1500, 7), sock(2, 30)], WITHIN)
    assert table.total == {OWN: (530, 7)}


def test_of_a_namespace_that_was_found_late_everything_counts() -> None:
    table = TcpBytes(from_first_look=False)
    table.count([sock(1, 1000)], WITHIN)
    assert table.sum == (1000, 0)


def test_a_socket_that_has_ended_counts_once_and_to_its_last_byte() -> None:
    table = TcpBytes(from_first_look=True)
    table.count([], WITHIN)
    table.count([sock(1, 100)], WITHIN)
    table.settle([sock(1, 150), sock(2, 40)], WITHIN)
    assert table.sum == (190, 0)
    table.count([], WITHIN)
    assert table.sum == (190, 0)


def test_a_socket_that_is_not_listed_until_it_ends_counts_once() -> None:
    table = TcpBytes(from_first_look=True)
    table.count([], WITHIN)
    table.count([sock(1, 100)], WITHIN)
    table.count([], WITHIN)
    table.settle([sock(1, 120)], WITHIN)
    assert table.sum == (120, 0)
    table.count([sock(2, 10)], WITHIN)
    table.count([], WITHIN)
    table.count([sock(2, 15)], WITHIN)
    assert table.sum == (135, 0)


def test_what_no_interface_carries_does_not_count() -> None:
    table = TcpBytes(from_first_look=False)
    loopback = bytes([127, 9, 9, 9])
    table.count([sock(1, 9, remote=OWN), sock(2, 9, remote=loopback), sock(3, 9, state=LISTEN)], WITHIN)
    table.settle([sock(4, 9, remote=OWN)], WITHIN)
    assert table.sum == (0, 0)


def test_sockets_whose_end_is_never_told_are_forgotten() -> None:
    table = TcpBytes(from_first_look=True)
    for first in range(0, 3 * tcp_bytes.MAX_LEAVING, 10_000):
        table.count([sock(cookie, 1) for cookie in range(first, first + 10_000)], WITHIN)
    assert len(table._leaving) == tcp_bytes.MAX_LEAVING
