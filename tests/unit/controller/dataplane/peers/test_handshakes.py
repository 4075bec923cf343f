"""TLS in front of OpenFlow: who is admitted, what is said of others, and what a renewal does to open connections."""

from __future__ import annotations

import contextlib
import select
import shutil
import socket
import ssl
import time
from collections.abc import Callable, Iterator

import pytest

from controller.access.certificates.authority import utc_now
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.dataplane.openflow_peer import Peer, is_connected
from tests.support.controller.tls.tls_yard import TlsYard

Connect = Callable[..., Peer]


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsYard]:
    yard = TlsYard(tmp_path_factory.mktemp("tls"))
    yield yard.start()
    yard.stop()


@pytest.fixture
def peer(yard: TlsYard) -> Iterator[Connect]:
    made: list[Peer] = []

    def make(dpid: int, name: str | None = "good", source: str = "127.0.0.1") -> Peer:
        made.append(Peer(yard.openflow_port, dpid, source, tls=yard.certificates.client(name)))
        return made[-1]

    yield make
    for each in made:
        each.close()


def test_a_switch_with_a_good_certificate_is_admitted(yard: TlsYard, peer: Connect) -> None:
    switch = peer(1)
    wait_until(lambda: is_connected(yard, 1))
    assert not switch.ended.is_set()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("expired", "its certificate has expired"),
        ("foreign", "its certificate is of an authority that is not trusted here"),
        ("host", "its certificate is of an authority that is not trusted here"),
        ("revoked", "its certificate is revoked"),
        (None, "it shows no certificate"),
    ],
)
def test_who_shows_no_good_certificate_is_refused_and_named_once(
    yard: TlsYard, peer: Connect, name: str | None, expected: str
) -> None:
    source = f"127.0.9.{len(expected)}" if name != "host" else "127.0.9.200"
    for _ in range(3):
        assert peer(2, name, source).ended.wait(10)
    assert not is_connected(yard, 2)
    assert yard.log().count(f"{source} may not connect as a switch: {expected}\n") == 1, "one line a peer and minute"


@pytest.mark.parametrize("pause", [0.0, 0.2])
def test_a_peer_that_speaks_first_still_learns_why_it_is_refused(yard: TlsYard, pause: float) -> None:
    context = yard.certificates.client(None)
    for _ in range(10):
        with (
            socket.create_connection(("127.0.0.1", yard.openflow_port), 10, ("127.0.13.1", 0)) as raw,
            context.wrap_socket(raw) as client,
        ):
            client.sendall(b"x" * 2000)
            time.sleep(pause)
            with pytest.raises(ssl.SSLError, match="CERTIFICATE_REQUIRED"):
                client.recv(1)


def test_openflow_without_tls_is_refused(yard: TlsYard) -> None:
    plain = Peer(yard.openflow_port, 3, "127.0.10.1")
    assert plain.ended.wait(10)
    plain.close()
    wait_until(lambda: "127.0.10.1 may not connect as a switch: it does not speak TLS" in yard.log())
    assert not is_connected(yard, 3)


def is_open(connection: socket.socket) -> bool:
    """Returns whether the other side has not ended it."""
    return not select.select([connection], [], [], 0)[0]


def test_handshakes_that_hang_end_soon_and_hold_up_nobody(yard: TlsYard, peer: Connect) -> None:
    began = time.monotonic()
    silent = [socket.create_connection(("127.0.0.1", yard.openflow_port), 20, ("127.0.11.1", 0)) for _ in range(40)]
    for each in silent[:20]:
        each.sendall(b"\x16\x03\x01\x02\x00\x01")
    peer(4)
    wait_until(lambda: is_connected(yard, 4))
    assert is_open(silent[-1]), "nobody waits for those that hang"
    for each in silent:
        with contextlib.suppress(ConnectionResetError):
            assert each.recv(1) == b""
        each.close()
    assert time.monotonic() - began > 4
    said = "127.0.11.1 may not connect as a switch: it has not completed the TLS handshake within 5 s"
    assert yard.log().count(said) == 1


def test_a_flood_of_handshakes_ends_the_oldest_ones(yard: TlsYard, peer: Connect) -> None:
    with contextlib.ExitStack() as stack:
        opened = [
            stack.enter_context(socket.create_connection(("127.0.0.1", yard.openflow_port), 20, ("127.0.11.2", 0)))
            for _ in range(100)
        ]
        for each in opened[:30]:
            with contextlib.suppress(ConnectionResetError):
                assert each.recv(1) == b""
        assert is_open(opened[-1]), "they end before their time"
        peer(5)
        wait_until(lambda: is_connected(yard, 5))
    assert "127.0.11.2 may not connect as a switch: too many TLS handshakes are pending" in yard.log()


def test_a_renewal_while_messages_flow_loses_none(yard: TlsYard, peer: Connect) -> None:
    stays = peer(6)
    wait_until(lambda: is_connected(yard, 6))
    pinging = stays.ping(4000)
    yard.certificates.make("controller", "controller", replace=True)
    for _ in range(5):
        yard.renew()
    assert pinging.wait(60)
    assert stays.lost == 0
    assert not stays.ended.is_set()
    shown = ssl.PEM_cert_to_DER_cert(yard.certificates.for_switches.certificate.read_text())
    assert stays.shown != shown, "an open connection keeps the certificate that it began with"
    new = peer(7)
    wait_until(lambda: is_connected(yard, 7))
    assert new.shown == shown, "a new connection gets the new one"
    assert is_connected(yard, 6)


def test_a_renewal_ends_what_has_been_revoked_and_nothing_else(yard: TlsYard, peer: Connect) -> None:
    yard.certificates.make("switch", "lost")
    stays, goes = peer(8), peer(9, "lost")
    wait_until(lambda: is_connected(yard, 8) and is_connected(yard, 9))
    yard.certificates.folder.revoke(["lost"], utc_now())
    assert not goes.ended.wait(0.5), "until the renewal nothing changes"
    yard.renew()
    assert goes.ended.wait(10)
    wait_until(lambda: not is_connected(yard, 9))
    assert not stays.ended.wait(0.5)
    assert is_connected(yard, 8)
    assert "the OpenFlow connection from 127.0.0.1 is ended: its certificate is revoked\n" in yard.log()


@contextlib.contextmanager
def half_a_handshake(yard: TlsYard, name: str, source: str) -> Iterator[Callable[[], bytes]]:
    """Yields what sends the rest of a handshake, and returns what comes back until the controller hangs up."""
    context = yard.certificates.client(name, ssl.TLSVersion.TLSv1_2)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing)
    with socket.create_connection(("127.0.0.1", yard.openflow_port), 10, (source, 0)) as raw:
        with pytest.raises(ssl.SSLWantReadError):
            client.do_handshake()
        raw.sendall(outgoing.read())
        while not outgoing.pending:  # until the controller has shown its certificate, by the context from before
            incoming.write(raw.recv(65536))
            with contextlib.suppress(ssl.SSLWantReadError):
                client.do_handshake()

        def finish() -> bytes:
            raw.sendall(outgoing.read())
            return b"".join(iter(lambda: raw.recv(65536), b""))

        yield finish


def test_a_handshake_that_a_renewal_overtakes_is_judged_by_the_new_files(yard: TlsYard) -> None:
    yard.certificates.make("switch", "overtaken")
    with half_a_handshake(yard, "overtaken", "127.0.12.1") as finish:
        yard.certificates.folder.revoke(["overtaken"], utc_now())
        yard.renew()
        finish()
    assert "127.0.12.1 may not connect as a switch: its certificate is revoked" in yard.log()


def test_a_handshake_that_a_reload_overtakes_is_judged_by_the_new_addresses(yard: TlsYard) -> None:
    with half_a_handshake(yard, "good", "127.0.12.2") as finish:
        yard.settings["openflow"]["switches"] = ["127.0.0.1"]
        yard.write()
        yard.renew()
        try:
            began = time.monotonic()
            finish()
            assert time.monotonic() - began < 5, "it is not kept as long as a peer may take to become a switch"
        finally:
            del yard.settings["openflow"]["switches"]
            yard.write()
            yard.renew()
    said = "the OpenFlow connection from 127.0.12.2 is ended: openflow.switches does not name its address any more"
    assert said in yard.log()


def test_files_that_cannot_be_read_are_said_and_change_nothing(yard: TlsYard, peer: Connect) -> None:
    certificate = yard.certificates.for_switches.certificate
    kept = certificate.with_name("kept")
    shutil.copy(certificate, kept)
    certificate.write_text("half a certif")
    yard.renew()
    problems = yard.call("GET", "/v1/status").json()["problems"]
    assert any(each.startswith("the changed settings are refused") for each in problems)
    peer(10)
    wait_until(lambda: is_connected(yard, 10))
    kept.replace(certificate)
    yard.renew()
    problems = yard.call("GET", "/v1/status").json()["problems"]
    assert not any("are refused" in each for each in problems)
    assert any(each.startswith("the controller's certificate expires soon: ") for each in problems)


def test_the_listener_survived_all_of_this(yard: TlsYard) -> None:
    assert "Traceback" not in yard.log()
    assert "Error:" not in yard.log()
