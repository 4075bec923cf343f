"""The thin edge to OpenFlow peers: deadlines, turns, and one line for each address and minute."""

from __future__ import annotations

import gc
import logging
import socket
import ssl
import subprocess
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eventlet.green import socket as green_socket
from eventlet.green import ssl as green_ssl
from eventlet.greenio import GreenSocket
from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3 as ofp

from controller.dataplane.peers import log as peer_log
from controller.dataplane.peers.admission import Admission
from controller.dataplane.peers.checked_socket import TURN_SECONDS, CheckedSocket
from controller.dataplane.peers.listener import Listener, Peers
from controller.dataplane.peers.log import PeerLog
from evaluation.bench.support.openflow.messages import message, parts, parts_request
from evaluation.bench.support.openflow.reader import FEATURES
from evaluation.bench.support.waiting import wait_until

LOG = logging.getLogger("test")
EVERYBODY = Peers(Admission(()), None)
HELLO = message(ofp.OFPT_HELLO, b"")


class Connection:
    """A checked socket and the peer at its other end, who is nobody's green thread."""

    def __init__(self, **options: float) -> None:
        near, self.peer = socket.socketpair()
        self.peer.settimeout(5)
        self.readies = 0
        self.checked = CheckedSocket(GreenSocket(near), "192.0.2.7", PeerLog(LOG), self._ready, **options)

    def _ready(self) -> None:
        self.readies += 1

    def close(self) -> None:
        self.checked.close()
        self.peer.close()

    def become_ready(self) -> None:
        self.peer.sendall(HELLO)
        assert self.checked.recv(8) == HELLO
        self.checked.sendall(message(ofp.OFPT_FEATURES_REQUEST, b"", xid=5))
        self.checked.sendall(parts_request(ofp.OFPMP_PORT_DESC, xid=6))
        self.peer.sendall(FEATURES + parts(ofp.OFPMP_PORT_DESC, b"", xid=6))
        assert self.checked.recv(8) == FEATURES
        assert self.checked.recv(8)
        self.peer.recv(4096)


@pytest.fixture
def connection() -> Iterator[Connection]:
    made = Connection()
    yield made
    made.close()


def test_one_message_at_a_time_however_they_come(connection: Connection) -> None:
    connection.become_ready()
    assert connection.readies == 1
    error = message(ofp.OFPT_ERROR, bytes(4))
    connection.peer.sendall(error * 3 + error[:5])
    assert [connection.checked.recv(8) for _ in range(3)] == [error] * 3
    connection.peer.sendall(error[5:])
    connection.peer.shutdown(socket.SHUT_WR)
    assert [connection.checked.recv(8), connection.checked.recv(8)] == [error, b""]
    assert connection.readies == 1


def test_an_echo_is_answered_without_ryu(connection: Connection) -> None:
    connection.become_ready()
    connection.peer.sendall(message(ofp.OFPT_ECHO_REQUEST, b"?") + message(ofp.OFPT_ERROR, bytes(4)))
    assert connection.checked.recv(8)[1] == ofp.OFPT_ERROR
    assert connection.peer.recv(100) == message(ofp.OFPT_ECHO_REPLY, b"?")


def test_a_peer_that_breaks_a_rule_is_ended_with_a_line(
    connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    connection.peer.sendall(message(ofp.OFPT_HELLO, b"", version=1))
    assert connection.checked.recv(8) == b""
    assert connection.checked.recv(8) == b""
    (record,) = caplog.records
    assert record.getMessage().startswith("the OpenFlow connection from 192.0.2.7 is ended: it speaks OpenFlow 1.0")
    assert connection.peer.recv(100)[1] == ofp.OFPT_ERROR
    assert connection.peer.recv(100) == b""


def test_a_peer_that_does_not_become_a_switch_is_ended(caplog: pytest.LogCaptureFixture) -> None:
    slow = Connection(handshake_seconds=0.3)
    data = HELLO + message(ofp.OFPT_ECHO_REQUEST, bytes(1000))
    sent: list[int] = []

    def dribble() -> None:
        for byte in data:
            sent.append(slow.peer.send(bytes([byte])))
            hub.sleep(0.05)

    thread = hub.spawn(dribble)
    while slow.checked.recv(8):
        pass
    assert len(sent) < len(data) / 2, "a byte now and then must not help"
    assert "it has not become a switch within 0.3 s" in caplog.text
    hub.kill(thread)
    slow.close()

    switch = Connection(handshake_seconds=0.3)
    switch.become_ready()
    hub.sleep(0.5)
    switch.peer.sendall(message(ofp.OFPT_ERROR, bytes(4)))
    assert switch.checked.recv(8), "a switch may be silent as long as it likes"
    switch.close()


def test_a_peer_that_does_not_read_waits_alone(connection: Connection, caplog: pytest.LogCaptureFixture) -> None:
    connection.become_ready()
    connection.checked.settimeout(0.3)
    connection.peer.setblocking(False)

    def flood() -> None:
        echoes = message(ofp.OFPT_ECHO_REQUEST, bytes(1000)) * 50
        while True:
            try:
                connection.peer.send(echoes)
            except BlockingIOError:
                pass
            except OSError:
                return
            hub.sleep(0.01)

    thread = hub.spawn(flood)
    assert connection.checked.recv(8) == b""
    assert "it does not read the messages sent to it" in caplog.text
    hub.kill(thread)


class Flood:
    """A socket at which there is always more."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def recv(self, _size: int) -> bytes:
        return self.data

    def sendall(self, _data: bytes) -> None:
        pass


@pytest.mark.parametrize("kind", [ofp.OFPT_ERROR, ofp.OFPT_ECHO_REQUEST, ofp.OFPT_BARRIER_REPLY, ofp.OFPT_PACKET_IN])
@pytest.mark.usefixtures("frozen_heap")
def test_a_flood_leaves_the_loop_to_others(connection: Connection, kind: int) -> None:
    connection.become_ready()
    near, connection.checked._socket = connection.checked._socket, Flood(message(kind, bytes(4)) * 4000)
    reader = hub.spawn(lambda: all(connection.checked.recv(8) for _ in iter(int, 1)))
    turns = 0
    begin = time.thread_time()
    while (spent := time.thread_time() - begin) < 0.3:
        hub.sleep(0)
        turns += 1
    hub.kill(reader)
    connection.checked._socket = near
    assert turns > spent / TURN_SECONDS / 5, "the flood's turn is several times as long as it may be"


def test_the_oldest_that_is_no_switch_makes_way_for_the_next() -> None:
    def handle(connection: Any, _address: Any) -> None:
        while connection.recv(8):
            pass

    server = Listener(("127.0.0.1", 0), handle, peers=EVERYBODY, connections=3)
    port = server.server.getsockname()[1]
    thread = hub.spawn(server.serve_forever)
    peers = [socket.create_connection(("127.0.0.1", port), 5) for _ in range(3)]
    wait_until(lambda: server._open == 3, sleep=hub.sleep)
    peers += [socket.create_connection(("127.0.0.1", port), 5) for _ in range(2)]
    wait_until(lambda: server._open == 3 and len(server._unknown) == 3, sleep=hub.sleep)
    for peer in peers:
        peer.settimeout(0.2)
    hub.sleep(0.1)
    assert [ended(peer) for peer in peers] == [True, True, False, False, False]
    for peer in peers:
        peer.close()
    wait_until(lambda: server._open == 0, sleep=hub.sleep)
    assert not server._unknown
    hub.kill(thread)
    server.server.close()


def test_what_ryu_raises_costs_a_line(caplog: pytest.LogCaptureFixture) -> None:
    def handle(_connection: Any, _address: Any) -> None:
        raise KeyError("unknown field")

    server = Listener(("127.0.0.1", 0), handle, peers=EVERYBODY, connections=3)
    thread = hub.spawn(server.serve_forever)
    for _ in range(3):
        socket.create_connection(server.server.getsockname(), 5).close()
    wait_until(lambda: "from 127.0.0.1 is ended: KeyError: 'unknown field'" in caplog.text, sleep=hub.sleep)
    wait_until(lambda: server._open == 0, sleep=hub.sleep)
    assert caplog.text.count("is ended") == 1
    assert "Traceback" not in caplog.text
    hub.kill(thread)
    server.server.close()


def test_a_peer_whose_tls_breaks_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    request = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=yard"
    subprocess.run([*request.split(), "-keyout", "key", "-out", "cert"], check=True, capture_output=True)
    context = green_ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    read: list[bytes] = []

    def handle(connection: Any, _address: Any) -> None:
        while data := connection.recv(8):
            read.append(data)

    options = {"ssl_ctx": context, "certfile": "cert", "keyfile": "key"}
    server = Listener(("127.0.0.1", 0), handle, peers=EVERYBODY, connections=3, **options)
    thread = hub.spawn(server.serve_forever)
    client = ssl.create_default_context(cafile="cert")
    client.check_hostname = False
    peer = green_socket.create_connection(server.server.getsockname(), 5)
    raw = peer.dup()
    secret = green_ssl.GreenSSLSocket(peer, server_side=False, _context=client)
    secret.sendall(HELLO)
    wait_until(lambda: read == [HELLO], sleep=hub.sleep)
    raw.sendall(b"\x17\x03\x03\0\x08" + bytes(8))
    wait_until(lambda: "its TLS is broken" in caplog.text, sleep=hub.sleep)
    wait_until(lambda: server._open == 0, sleep=hub.sleep)
    for each in (raw, secret):
        each.close()
    hub.kill(thread)
    server.server.close()


def ended(peer: socket.socket) -> bool:
    try:
        return peer.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True


# One line for each address and minute ---------------------------------------------------------------------------------


def test_an_address_is_told_of_once_a_minute_with_what_was_left_out(caplog: pytest.LogCaptureFixture) -> None:
    now = 100.0
    log = PeerLog(LOG, clock=lambda: now)
    for _ in range(5):
        log.say(logging.WARNING, "a", "bad a")
    log.say(logging.WARNING, "b", "bad b")
    now += peer_log.MINUTE
    log.say(logging.WARNING, "a", "worse a")
    log.say(logging.WARNING, "b", "worse b")
    said = [record.getMessage() for record in caplog.records]
    assert said == ["bad a", "bad b", "worse a (4 lines like this were left out)", "worse b"]


def test_addresses_are_remembered_up_to_a_bound(caplog: pytest.LogCaptureFixture) -> None:
    now = 100.0
    log = PeerLog(LOG, clock=lambda: now)
    for number in range(3 * peer_log.MAX_ADDRESSES):
        log.say(logging.WARNING, f"{number}", "bad")
    assert len(caplog.records) == len(log._minutes) == peer_log.MAX_ADDRESSES
    now += peer_log.MINUTE
    log.say(logging.WARNING, "new", "bad")
    assert len(caplog.records) == peer_log.MAX_ADDRESSES + 1
    assert len(log._minutes) == peer_log.MAX_ADDRESSES


def test_nothing_of_a_closed_connection_stays_until_a_collection() -> None:
    listener = object.__new__(Listener)
    listener._unknown = {}
    listener._admission, listener._handshakes = EVERYBODY
    listener._log = PeerLog(LOG)
    gone: list[Any] = []

    def handle(checked: CheckedSocket, _address: Any) -> None:
        gone.extend((weakref.ref(checked), weakref.ref(checked._stream)))

    gc.collect()
    gc.disable()
    try:
        near, far = socket.socketpair()
        listener._handle_checked(handle, GreenSocket(near), ("192.0.2.7", 1))
        far.close()
        hub.sleep(0)
        assert [each() for each in gone] == [None, None]
    finally:
        gc.enable()
