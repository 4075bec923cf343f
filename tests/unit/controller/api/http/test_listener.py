"""The API's listener against peers that reset, say nothing or speak no TLS, and where file descriptors run out."""

from __future__ import annotations

import contextlib
import resource
import socket
import ssl
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import eventlet
import pytest
import requests

from controller.api import ApiServer
from controller.config.config import Api
from evaluation.bench.support.api_client import Controller
from evaluation.bench.support.waiting import wait_until

RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: closing throws away what is under way, and tells the peer by a reset."""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("certificate")
    key, made = str(folder / "key.pem"), str(folder / "certificate.pem")
    request = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=yard"
    files = ["-keyout", key, "-out", made, "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*request.split(), *files], check=True, capture_output=True)
    return made, key


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory, certificate: tuple[str, str]) -> Iterator[Controller]:
    api = {"tls_certificate": certificate[0], "tls_key": certificate[1]}
    yard = Controller(tmp_path_factory.mktemp("secure"), scheme="https", api=api)
    yard.session.verify = certificate[0]
    yield yard.start(verify=certificate[0])
    yard.stop()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    """A controller that may open few files."""
    yard = Controller(tmp_path_factory.mktemp("small"), token=False)
    yield yard.start(wrapper=("prlimit", "--nofile=64:96", "--"))
    yard.stop()


def connect(yard: Controller) -> socket.socket:
    return socket.create_connection(("127.0.0.1", yard.port), 20)


def answers(yard: Controller) -> bool:
    # A connection of its own: one that is kept would say nothing of the listener.
    return bool(requests.get(yard.url + "/healthz", timeout=20, verify=yard.session.verify or True).ok)


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    connection.close()


def test_a_connection_that_is_reset_before_it_is_taken_does_not_end_the_api(secure: Controller) -> None:
    for _ in range(30):
        reset(connect(secure))
    assert answers(secure)


def test_a_reset_amid_the_handshake_does_not_end_the_api(secure: Controller) -> None:
    for sent in (b"\x16", b"\x16\x03\x01\x02\x00\x01"):
        connection = connect(secure)
        connection.sendall(sent)
        time.sleep(0.05)
        reset(connection)
    assert answers(secure)


def test_what_is_no_tls_is_turned_away(secure: Controller) -> None:
    with contextlib.suppress(ConnectionResetError):
        assert b"HTTP/1.1 200" not in secure.raw(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    assert answers(secure)
    assert "Traceback" not in secure.log()


def test_a_handshake_that_never_comes_is_ended_and_holds_up_nobody(secure: Controller) -> None:
    silent = [connect(secure) for _ in range(20)]
    assert answers(secure)
    silent[0].setblocking(False)
    with pytest.raises(BlockingIOError):
        silent[0].recv(1)
    silent[0].settimeout(20)
    assert silent[0].recv(1) == b""
    for connection in silent:
        connection.close()


def test_requests_over_tls_are_known_as_such(secure: Controller, certificate: tuple[str, str]) -> None:
    context = ssl.create_default_context(cafile=certificate[0])
    with context.wrap_socket(connect(secure), server_hostname="127.0.0.1") as connection:
        for _ in range(2):  # one connection carries several
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert connection.recv(12) == b"HTTP/1.1 200"
            assert connection.recv(4096).endswith(b'{"status":"alive","problems":[]}')


def test_a_connection_that_asks_nothing_is_ended(small: Controller) -> None:
    began = time.monotonic()
    with connect(small) as new, connect(small) as used:
        used.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert used.recv(4096)
        assert new.recv(1) == b""
        assert time.monotonic() - began > 5
        used.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert used.recv(4096), "who has asked may keep the connection"


def limits_of(yard: Controller, *wanted: tuple[int, int]) -> tuple[int, int]:
    assert yard.process is not None
    return resource.prlimit(yard.process.pid, resource.RLIMIT_NOFILE, *wanted)


def files_of(yard: Controller) -> int:
    assert yard.process is not None
    return len(list(Path(f"/proc/{yard.process.pid}/fd").iterdir()))


def test_who_says_nothing_keeps_nobody_out_for_long(small: Controller) -> None:
    assert limits_of(small) == (96, 96), "as far as the hard limit lets"
    opened = [connect(small) for _ in range(60)]
    try:
        wait_until(lambda: files_of(small) > 48, what="the connections")
        assert files_of(small) < 90, "the connections' limit leaves files for the rest"
        assert answers(small), "when the silent ones have been ended"
        assert "Too many open files" not in small.log()
    finally:
        for connection in opened:
            connection.close()


@pytest.mark.parametrize(
    "sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /healthz HTTP/1.1\r\n"]
)
def test_who_holds_all_connections_and_opens_new_ones_keeps_nobody_out(small: Controller, sent: bytes) -> None:
    """Without a request, after one that needs no token, and amid one."""
    with contextlib.ExitStack() as stack:
        for _ in range(3):
            for _ in range(60):
                each = stack.enter_context(socket.socket())
                each.settimeout(20)
                each.bind(("127.0.5.5", 0))
                each.connect(("127.0.0.1", small.port))
                with contextlib.suppress(ConnectionError):
                    each.sendall(sent)
            began = time.monotonic()
            assert answers(small)
            assert time.monotonic() - began < 2
    assert "the API has 48 connections, which is the most: an idle one of 127.0." in small.log()
    assert "Traceback" not in small.log()


def test_both_listeners_survive_a_lack_of_file_descriptors(small: Controller) -> None:
    small.session.close()
    time.sleep(0.5)
    before = limits_of(small)
    limits_of(small, (files_of(small) + 3, before[1]))
    switches = small.settings["openflow"]["port"]
    opened = [connect(small) for _ in range(20)]
    opened += [socket.create_connection(("127.0.0.1", switches), 20) for _ in range(5)]
    try:
        wait_until(lambda: small.log().count("Too many open files") >= 2, what="a line of each listener")
    finally:
        for connection in opened:
            connection.close()
    assert answers(small)
    limits_of(small, before)
    with socket.create_connection(("127.0.0.1", switches), 20) as switch:
        assert switch.recv(8)[:2] == b"\x04\x00", "Ryu says hello"
    assert small.log().count("cannot take connections for now: Too many open files") == 2, "each is said once"
    assert "Traceback" not in small.log()


def test_a_fault_that_nobody_foresaw_does_not_end_the_api(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    spawn, faults = eventlet.GreenPool.spawn_n, [ZeroDivisionError("a fault of ours")]

    def faulty(self: Any, *args: Any) -> None:
        if faults:
            raise faults.pop()
        spawn(self, *args)

    def application(_environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [("Content-Length", "0")])
        return []

    monkeypatch.setattr(eventlet.GreenPool, "spawn_n", faulty)
    server = ApiServer(application, Api.model_validate({"port": 0}))
    thread = eventlet.spawn(server)
    try:
        with eventlet.Timeout(10):
            assert eventlet.connect(server.address).recv(1) == b"", "this one met the fault"
            connection = eventlet.connect(server.address)
            connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert connection.recv(12) == b"HTTP/1.1 200"
    finally:
        thread.kill()
    assert "the API could not serve a connection; it goes on" in caplog.text
