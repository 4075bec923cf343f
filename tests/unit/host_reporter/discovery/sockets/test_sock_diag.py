"""The kernel's own answers about sockets that the test opened, and what becomes of damaged ones."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.bench.support.waiting import wait_until
from host_reporter.discovery.sockets.netlink import Diag
from host_reporter.discovery.sockets.sock_diag import ESTABLISHED, LISTEN, DiagError, Parser, Socket, request
from tests.support.loopback import connections, exchange, pair

LOOPBACK_IPV6 = bytes(15) + b"\1"


@pytest.fixture(scope="module")
def raw() -> bytes:
    """The first piece of a real answer, with at least a few connections in it."""
    with connections(3), socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4) as asking:
        asking.settimeout(2)
        asking.send(request(socket.AF_INET))
        return asking.recv(1 << 18)


def find(diag: Diag, sock: socket.socket) -> Socket | None:
    inode = os.fstat(sock.fileno()).st_ino
    return next((listed for listed in diag.sockets() if listed.inode == inode), None)


@pytest.fixture
def diag() -> Iterator[Diag]:
    created = Diag()
    yield created
    created.close()


def test_both_ends_of_a_connection_are_told_with_their_bytes(diag: Diag) -> None:
    with connections(1) as (server, (client, accepted)):
        exchange(client, accepted, 200_000)
        exchange(accepted, client, 50_000)
        one, other = find(diag, client), find(diag, accepted)
        assert one is not None and other is not None
        assert (one.state, other.state) == (ESTABLISHED, ESTABLISHED)
        assert (socket.inet_ntoa(one.local), one.local_port) == client.getsockname()
        assert (socket.inet_ntoa(one.remote), one.remote_port) == server.getsockname()
        assert (other.local_port, other.remote_port) == (one.remote_port, one.local_port)
        # Whoever opened the connection has one more acknowledged, for the opening itself.
        assert one.acked in (200_000, 200_001) and one.received == 50_000
        assert other.acked in (50_000, 50_001) and other.received == 200_000
        assert one.cookie != other.cookie
        listening = find(diag, server)
        assert listening is not None and listening.state == LISTEN and listening.local_port == one.remote_port


def test_an_ipv6_socket_that_talks_over_ipv4_is_told_as_what_it_is_on_the_wire(diag: Diag) -> None:
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.socket(socket.AF_INET6))
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        server.bind(("::", 0))
        server.listen()
        client, accepted = map(stack.enter_context, pair(server))
        exchange(client, accepted, 1000)
        listed = find(diag, accepted)
        assert listed is not None
        assert (socket.inet_ntoa(listed.remote), listed.remote_port) == client.getsockname()
        assert listed.received == 1000
        assert (listening := find(diag, server)) is not None and listening.state == LISTEN


def test_what_has_ended_is_told_with_its_ports_and_its_last_bytes(diag: Diag) -> None:
    with connections(1) as (server, (client, accepted)):
        port = server.getsockname()[1]
        known = find(diag, client)
        assert known is not None
        diag.ended()
        exchange(client, accepted, 3000)
        # Too short for any look.
        with contextlib.ExitStack() as stack:
            short, taken = map(stack.enter_context, pair(server))
            exchange(short, taken, 5000)
            local = short.getsockname()[1]
        client.close()
        accepted.close()
        listed: dict[tuple[int, int], Socket] = {}

        def all_told() -> bool:
            ended = diag.ended()
            assert ended.is_all
            listed.update({(sock.local_port, sock.remote_port): sock for sock in ended.sockets})
            return {(local, port), (port, local), (known.local_port, port)} <= listed.keys()

        wait_until(all_told)
        assert listed[known.local_port, port].cookie == known.cookie
        # The opening and the end count one each.
        assert 3000 <= listed[known.local_port, port].acked <= 3002
        assert 5000 <= listed[local, port].acked <= 5002 and 5000 <= listed[port, local].received <= 5002
        assert diag.ended().sockets == []


def test_more_ends_than_there_is_room_for_are_said_to_be_missing() -> None:
    diag = Diag(event_bytes=4096)
    for _ in range(100):
        with connections(1):
            pass
    wait_until(lambda: not diag.ended().is_all)
    with connections(1):
        pass
    wait_until(lambda: diag.ended() == ([], True), what="and it goes on")
    diag.close()


def test_connections_over_ipv6_are_told_with_their_bytes_and_their_end(diag: Diag) -> None:
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        listening = find(diag, server)
        assert listening is not None and (listening.state, listening.local) == (LISTEN, LOOPBACK_IPV6)
        with socket.create_connection(("::1", server.getsockname()[1])) as client:
            accepted, _ = server.accept()
            client.sendall(bytes(1000))
            assert len(accepted.recv(1000, socket.MSG_WAITALL)) == 1000
            wait_until(lambda: (seen := find(diag, client)) is not None and seen.acked >= 1000)
            known = find(diag, client)
            assert known is not None and (known.remote, known.remote_port) == (LOOPBACK_IPV6, server.getsockname()[1])
            assert (known.local, known.local_port) == (LOOPBACK_IPV6, client.getsockname()[1])
            diag.ended()
            accepted.close()
    ended: list[Socket] = []
    wait_until(lambda: ended.extend(diag.ended().sockets) or known.cookie in {gone.cookie for gone in ended})


def test_what_is_over_is_not_told_any_more(diag: Diag) -> None:
    with connections(1) as (_, (client, accepted)):
        known = find(diag, client)
        assert known is not None
        accepted.close()
        client.close()
        assert known.cookie not in {listed.cookie for listed in diag.sockets()}


def test_the_same_addresses_again_are_another_socket(diag: Diag) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        cookies = set()
        port = None
        for _ in range(2):
            with socket.socket() as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                # Ended by a reset, so that nothing waits for stray packets.
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.bind(("127.0.0.1", port or 0))
                port = client.getsockname()[1]
                client.connect(server.getsockname())
                server.accept()[0].close()
                listed = find(diag, client)
                assert listed is not None and listed.local_port == port
                cookies.add(listed.cookie)
        assert len(cookies) == 2


def test_a_thousand_sockets_are_all_there(diag: Diag) -> None:
    with connections(400) as (_, ends):
        inodes = {os.fstat(end.fileno()).st_ino for end in ends}
        assert len(inodes) == 800
        assert inodes <= {listed.inode for listed in diag.sockets()}


def test_an_error_of_the_kernel_is_told_in_words() -> None:
    answer = struct.pack("=IHHIIi", 20, 2, 0, 1, 0, -2)
    with pytest.raises(DiagError, match="tcp_diag"):
        Parser().parse(answer, [])
    with pytest.raises(DiagError, match="not permitted"):
        Parser().parse(struct.pack("=IHHIIi", 20, 2, 0, 1, 0, -1), [])


def test_an_answer_without_cgroups_or_counts_still_names_the_sockets(raw: bytes) -> None:
    bare, place = b"", 0
    while place + 88 <= len(raw):
        length, kind = struct.unpack_from("=IH", raw, place)
        if kind == 20:
            bare += struct.pack("=I", 88) + raw[place + 4 : place + 88]
        place += (length + 3) & ~3
    full: list[Socket] = []
    Parser().parse(raw, full)
    listed: list[Socket] = []
    assert Parser().parse(bare, listed) is False
    assert listed == [sock._replace(cgroup=0, acked=0, received=0) for sock in full]
    # One parser for both kinds: a layout that was learned is not believed where it does not fit.
    mixed: list[Socket] = []
    parser = Parser()
    parser.parse(raw + bare + raw, mixed)
    assert mixed == full + listed + full


def test_attributes_in_another_order_are_not_misread(raw: bytes) -> None:
    length, kind = struct.unpack_from("=IH", raw, 0)
    assert kind == 20
    attributes, place = [], 88
    while place + 4 <= length:
        size = struct.unpack_from("=H", raw, place)[0]
        padded = (size + 3) & ~3
        attributes.append(raw[place : place + padded])
        place += padded
    right: list[Socket] = []
    parser = Parser()
    parser.parse(raw[:length], right)
    # Of the same length, with cgroup and counts elsewhere.
    turned = raw[:88] + b"".join([attributes[-1], *attributes[:-1]])
    listed: list[Socket] = []
    parser.parse(turned, listed)
    assert listed[0].cookie == right[0].cookie
    assert listed[0].cgroup == right[0].cgroup
    # The counts come before the cgroup there: they are left out, not misread.
    assert (listed[0].acked, listed[0].received) == (0, 0)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damage_is_an_error_or_another_list_never_a_crash(raw: bytes, data: st.DataObject) -> None:
    damaged = bytearray(raw[: data.draw(st.integers(0, len(raw)))])
    for _ in range(data.draw(st.integers(0, 6))):
        if damaged:
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    listed: list[Socket] = []
    try:
        Parser().parse(bytes(damaged), listed)
    except DiagError:
        return
    for sock in listed:
        assert len(sock.local) == len(sock.remote) == 4
        assert 0 <= sock.local_port < 65536 and 0 <= sock.remote_port < 65536
