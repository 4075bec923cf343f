"""The line to the controller: kept, checked, ended from outside, and wrong addresses refused in words."""

from __future__ import annotations

import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluation.bench.support.hosts.reporter_server import ReporterServer, tag_of
from evaluation.bench.support.waiting import wait_until
from host_reporter.uplink.connection import Address, AddressError, Connection, UnreachableError

REPORT = '{"session": "s", "seq": 1, "sent_at": 1.0}'
PATH = "/v1/hosts/h1/reports"


@pytest.fixture
def server() -> Iterator[ReporterServer]:
    made = ReporterServer()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    made, key = folder / "certificate.pem", folder / "key.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", str(key)]
    subprocess.run([*command, "-out", str(made)], check=True, capture_output=True)
    return made, key


def test_the_connection_is_kept(server: ReporterServer) -> None:
    connection = Connection(Address(server.url))
    for _ in range(3):
        assert connection.request("POST", PATH, REPORT).status == 200
    connection.close()
    assert server.connections == 1


def test_a_kept_connection_that_was_closed_is_made_anew(server: ReporterServer) -> None:
    connection = Connection(Address(server.url))
    connection.request("POST", PATH, REPORT)
    server.cut()
    assert connection.request("POST", PATH, REPORT).status == 200
    assert server.connections == 2
    connection.close()


def test_who_is_away_is_told_of_in_words(server: ReporterServer) -> None:
    connection = Connection(Address(server.url))
    server.stop()
    with pytest.raises(UnreachableError, match="refused"):
        connection.request("POST", PATH, REPORT)


def test_an_answer_that_does_not_come_in_time(server: ReporterServer) -> None:
    server.delay = 0.5
    connection = Connection(Address(server.url))
    with pytest.raises(UnreachableError, match="in time"):
        connection.request("POST", PATH, REPORT, seconds=0.05)
    connection.close()


def test_a_waiting_call_can_be_ended_and_none_begins_after(server: ReporterServer) -> None:
    connection = Connection(Address(server.url))
    tag = tag_of(server.plan)
    failed: list[UnreachableError] = []

    def wait() -> None:
        try:
            connection.request("GET", "/v1/hosts/h1/plan?wait=30", known_tag=tag, seconds=60)
        except UnreachableError as error:
            failed.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    assert server.plan_waits.wait(10)
    connection.abort()
    # Far less than the call would wait.
    thread.join(10)
    assert failed
    with pytest.raises(UnreachableError):
        connection.request("POST", PATH, REPORT)
    connection.close()


def test_the_token_is_sent_and_read_anew_with_each_connection(server: ReporterServer, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first-token\n")
    token.chmod(0o600)
    address = Address(server.url, token)
    assert not address.is_open, "loopback is no network"
    assert not address.token_is_public()
    connection = Connection(address)
    connection.request("POST", PATH, REPORT)
    token.write_text("second-token\n")
    server.cut()
    connection.request("POST", PATH, REPORT)
    assert server.tokens == ["first-token", "second-token"]
    token.unlink()
    server.cut()
    with pytest.raises(UnreachableError, match="token"):
        connection.request("POST", PATH, REPORT)
    connection.close()


def test_a_certificate_is_checked(certificate: tuple[Path, Path]) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    server = ReporterServer(context)
    try:
        trusting = Connection(Address(server.url, ca_file=certificate[0]))
        assert trusting.request("POST", PATH, REPORT).status == 200
        trusting.close()
        with pytest.raises(UnreachableError, match=r"not trusted: .*; --ca-file names the authority$"):
            Connection(Address(server.url)).request("POST", PATH, REPORT)
        named_otherwise = server.url.replace("localhost", "127.0.0.1")
        with pytest.raises(UnreachableError, match=r"not trusted: .*not valid for '127\.0\.0\.1'$"):
            Connection(Address(named_otherwise, ca_file=certificate[0])).request("POST", PATH, REPORT)
        wait_until(lambda: len(server.reports) == 1)
    finally:
        server.stop()


@pytest.mark.parametrize("url", ["", "ftp://h", "h:8080", "http://", "http://h:99999", "http://u:p@h", "http://h?x=1"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(AddressError, match="http://127"):
        Address(url)


@pytest.mark.parametrize("content", [b"", b"a\nb", b"\xff\xfe"])
def test_what_is_no_token_is_refused(content: bytes, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_bytes(content)
    with pytest.raises(AddressError, match="token"):
        Address("http://h", token)


def test_a_token_over_the_open_network_is_known(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret-token")
    token.chmod(0o644)
    assert Address("http://10.0.0.1:8080", token).is_open
    assert Address("http://10.0.0.1:8080", token).token_is_public()
    assert not Address("https://10.0.0.1:8080", token).is_open
    assert not Address("http://10.0.0.1:8080").is_open
