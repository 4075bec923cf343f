"""A real controller among hostile peers: it answers, its memory stays, and each costs a line, not a traceback."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp

from evaluation.bench.support.api_client import Controller
from evaluation.bench.support.openflow.messages import Case, Generator, message, parts
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.dataplane.openflow_peer import Peer, is_connected

MIB = 2**20
CONNECTIONS = 300


class BadPeer(Peer):
    """A switch up to the first request for its rules, which it answers with ``bad`` as the body."""

    def __init__(self, port: int, dpid: int, source: str, bad: bytes) -> None:
        self.bad = bad
        super().__init__(port, dpid, source)

    def _answer(self, kind: int, xid: int, body: bytes) -> None:
        if kind == ofp.OFPT_MULTIPART_REQUEST and struct.unpack("!H", body[:2])[0] == ofp.OFPMP_FLOW:
            self._socket.sendall(parts(ofp.OFPMP_FLOW, self.bad, xid=xid))
        super()._answer(kind, xid, body)


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    yard = Controller(tmp_path_factory.mktemp("hostile")).start()
    yield yard
    yard.stop()


def connect(yard: Controller, source: str) -> socket.socket:
    port = yard.settings["openflow"]["port"]
    return socket.create_connection(("127.0.0.1", port), 10, source_address=(source, 0))


def lives(yard: Controller, seconds: float = 5.0) -> bool:
    return bool(yard.session.get(yard.url + "/healthz", timeout=seconds).ok)


def resident_bytes(yard: Controller) -> int:
    assert yard.process is not None
    text = Path(f"/proc/{yard.process.pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) * 1024


def read_to_end(peer: socket.socket) -> bytes:
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while chunk := peer.recv(65536):
            data += chunk
    return data


def test_one_packet_does_not_hang_the_controller(yard: Controller) -> None:
    with connect(yard, "127.0.1.1") as peer:
        peer.sendall(bytes.fromhex("0400000c0000000100010000"))
        read_to_end(peer)
    assert lives(yard)
    said = (
        "the OpenFlow connection from 127.0.1.1 is ended: its HELLO message is malformed: at offset 8 there is a hello"
    )
    assert said in yard.log()


def test_nor_does_a_rule_of_length_0(yard: Controller) -> None:
    peer = BadPeer(yard.settings["openflow"]["port"], 11, "127.0.1.2", bytes(56))
    assert peer.ended.wait(10)
    peer.close()
    assert lives(yard)
    assert (
        "from 127.0.1.2 is ended: its MULTIPART_REPLY message is malformed: at offset 16 there is a rule of 0 bytes"
        in (yard.log())
    )
    wait_until(lambda: not is_connected(yard, 11))


def test_a_peer_that_floods_and_never_reads_holds_up_no_other(yard: Controller) -> None:
    good = Peer(yard.settings["openflow"]["port"], 12)
    wait_until(lambda: is_connected(yard, 12))
    with connect(yard, "127.0.1.3") as peer:
        peer.sendall(message(ofp.OFPT_HELLO, b""))
        peer.settimeout(0.2)
        echoes = message(ofp.OFPT_ECHO_REQUEST, bytes(1000)) * 64
        with contextlib.suppress(OSError):  # sooner or later nothing more fits in between
            for _ in range(1000):
                peer.sendall(echoes)
        again = Peer(yard.settings["openflow"]["port"], 13)
        wait_until(lambda: is_connected(yard, 13))
        assert lives(yard)
        wait_until(lambda: "from 127.0.1.3 is ended: it does not read the messages sent to it" in yard.log())
    assert not good.ended.is_set()
    for each in (good, again):
        each.close()


def test_a_peer_of_another_version_is_told_and_logged_once(yard: Controller) -> None:
    for _ in range(5):
        with connect(yard, "127.0.1.4") as peer:
            peer.sendall(message(ofp.OFPT_HELLO, b"", version=1))
            assert b"this controller speaks OpenFlow 1.3 alone" in read_to_end(peer)
    line = "from 127.0.1.4 is ended: it speaks OpenFlow 1.0, and the controller 1.3; allow OpenFlow 1.3 at the switch"
    assert yard.log().count(line) == 1


def session(case: Case) -> bytes:
    """What leads a controller on until the case is read, where it is not to come at once."""
    return case.data if case.early else message(ofp.OFPT_HELLO, b"") + case.data


def test_hundreds_of_random_peers_leave_it_as_it_was(yard: Controller) -> None:
    cases = list(Generator(22).cases(2 * CONNECTIONS))
    before = 0
    begin = time.monotonic()
    for number in range(CONNECTIONS):
        if number == CONNECTIONS // 3:
            before = resident_bytes(yard)
        if number % 3 == 0:
            bad = BadPeer(yard.settings["openflow"]["port"], 100 + number, "127.0.1.5", cases[number].data[16:])
            bad.ended.wait(0.05)
            bad.close()
            continue
        with connect(yard, "127.0.1.5") as peer, contextlib.suppress(OSError):
            peer.sendall(b"".join(session(case) for case in cases[2 * number : 2 * number + 2]))
            peer.shutdown(socket.SHUT_WR)
            read_to_end(peer)
    assert lives(yard)
    assert resident_bytes(yard) - before < 20 * MIB
    log = yard.log()
    assert "Traceback" not in log
    assert log.count("from 127.0.1.5 is ended") <= 1 + (time.monotonic() - begin) // 60
    wait_until(lambda: not any(switch["connected"] for switch in yard.call("GET", "/v1/status").json()["switches"]))
    whole = Peer(yard.settings["openflow"]["port"], 14)
    wait_until(lambda: is_connected(yard, 14))
    whole.close()
