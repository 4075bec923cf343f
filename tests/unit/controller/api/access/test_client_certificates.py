"""Client certificates in the place of tokens: at a running controller, by its real clients."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import struct
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import requests

from controller.cli.main import main
from evaluation.bench.support.free_port import free_port
from evaluation.bench.support.waiting import wait_until
from host_reporter.uplink.connection import Address, AddressError, Connection, UnreachableError
from tests.support.controller.api.cases import assert_problem, spec
from tests.support.controller.api.roles_yard import RolesYard
from tests.support.controller.tls.authority import Authority
from tests.support.loopback import has_been_read

Files = tuple[Path, Path]
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: closing tells the peer by a reset."""


class Secured(RolesYard):
    """A controller that accepts certificates of ``authority``."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder)
        self.folder = folder
        own = self.authority.sign("controller", address="127.0.0.1")
        api = {
            "tls_certificate": str(own[0]),
            "tls_key": str(own[1]),
            "client_authority": str(self.authority.file),
            "metrics_port": free_port(),
        }
        super().__init__(folder, scheme="https", api=api)
        self.session.verify = str(self.authority.file)

    def write_tokens(self, *names: str) -> None:
        super().write_tokens(*names)
        with self.tokens_file.open("a") as stream:
            stream.write("ops: {role: operator, certificate: ops.example.org}\n")

    def shown(self, files: Files | None, method: str, path: str, body: Any = None) -> requests.Response:
        """Make a call without a token, over a connection of its own, and show a certificate."""
        with requests.Session() as session:
            session.trust_env = False
            session.cert = (str(files[0]), str(files[1])) if files is not None else None
            return session.request(method, self.url + path, json=body, verify=str(self.authority.file), timeout=15)


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    controller = Secured(tmp_path_factory.mktemp("secured"))
    controller.start(verify=str(controller.authority.file))
    yield controller
    controller.stop()


def test_a_host_is_known_by_the_name_in_its_certificate(yard: Secured) -> None:
    files = yard.authority.sign("any name", ("h2",))
    assert yard.shown(files, "GET", "/v1/hosts/h2/plan").status_code == 200
    assert_problem(yard.shown(files, "GET", "/v1/hosts/h1/plan"), 404, "there is no host h1")
    assert_problem(yard.shown(files, "GET", "/v1/jobs"), 403, "the token of host h2 is for its reports")


def test_an_operator_is_known_by_an_entry_of_the_tokens_file(yard: Secured) -> None:
    files = yard.authority.sign("ops.example.org")
    assert yard.shown(files, "PUT", "/v1/jobs/a", spec(5000)).status_code == 201
    assert yard.shown(files, "DELETE", "/v1/jobs/a").status_code == 204
    *_, removed = yard.by("night", "GET", "/v1/audit").json()["records"]
    assert (removed["who"], removed["role"], removed["proof"]) == ("ops", "operator", "certificate")


def test_a_certificate_of_nobody_is_refused(yard: Secured) -> None:
    files = yard.authority.sign("stranger", ("h9",))
    assert_problem(yard.shown(files, "GET", "/v1/jobs"), 401, "nobody is known by the names in the client certificate")
    assert_problem(yard.shown(None, "GET", "/v1/jobs"), 401, "a bearer token is required")


def test_another_authoritys_certificate_and_an_expired_one_do_not_connect(yard: Secured, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other")
    for files in (other.sign("ops.example.org", ("h1",)), yard.authority.sign("x", ("h1",), valid=timedelta(hours=-1))):
        with pytest.raises(requests.exceptions.ConnectionError):
            yard.shown(files, "GET", "/v1/hosts/h1/plan")


def test_a_token_still_works_and_goes_before_a_certificate(yard: Secured) -> None:
    assert yard.by("board", "GET", "/v1/jobs").status_code == 200
    files = yard.authority.sign("ops.example.org")
    yard.session.cert = (str(files[0]), str(files[1]))
    try:
        assert yard.by("board", "DELETE", "/v1/jobs/a").status_code == 403, "by the token it is a viewer"
        assert yard.call("GET", "/v1/jobs", token="wrong").status_code == 401, "a wrong one is not made good"
    finally:
        yard.session.cert = None


def test_the_agent_shows_its_certificate(yard: Secured) -> None:
    certificate, key = yard.authority.sign("any", ("h1",))
    address = Address(yard.url, ca_file=yard.authority.file, certificate_file=certificate, key_file=key)
    connection = Connection(address)
    assert connection.request("GET", "/v1/hosts/h1/peers").status == 200
    connection.close()
    renewed = yard.authority.sign("any", ("h2",))
    certificate.write_bytes(renewed[0].read_bytes())
    key.write_bytes(renewed[1].read_bytes())
    assert connection.request("GET", "/v1/hosts/h2/peers").status == 200, "the renewed one is read"
    connection.close()


@pytest.mark.parametrize("pause_seconds", [0.0, 0.1])
def test_the_agent_says_why_its_certificate_is_refused(
    yard: Secured, tmp_path: Path, pause_seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the pause the controller has hung up before it is asked: its reason is read all the same."""
    connect = http.client.HTTPSConnection.connect

    def slow(connection: http.client.HTTPSConnection) -> None:
        connect(connection)
        time.sleep(pause_seconds)

    monkeypatch.setattr(http.client.HTTPSConnection, "connect", slow)
    address = Address(yard.url, None, yard.authority.file, *Authority(tmp_path, "other").sign("any", ("h1",)))
    with pytest.raises(UnreachableError, match="unknown ca"):
        Connection(address).request("GET", "/v1/hosts/h1/peers")


def test_what_the_agent_cannot_use_is_said(yard: Secured) -> None:
    certificate, key = yard.authority.sign("any", ("h1",))
    for url, files, said in (
        (yard.url, (certificate, None), "a certificate needs its key"),
        ("http://127.0.0.1:1", (certificate, key), "over https only"),
        (yard.url, (certificate, certificate), "cannot be used together"),
    ):
        with pytest.raises(AddressError, match=said):
            Address(url, None, yard.authority.file, *files)


@pytest.mark.parametrize("command", ["jobs", "audit", "pause", "resume"])
def test_the_command_shows_its_certificate(
    yard: Secured, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.delenv("TRAINYARD_TOKEN", raising=False)
    # What requests trusts by itself does not take the place of --ca.
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(Authority(tmp_path, "other").file))
    certificate, key = map(str, yard.authority.sign("ops.example.org"))
    remote = [command, "--url", yard.url, "--ca", str(yard.authority.file)]
    assert main([*remote, "--certificate", certificate, "--key", key]) == 0
    assert yard.call("GET", "/v1/settings").json()["pause"] is (command == "pause")
    assert main([*remote, "--certificate", certificate]) == 2
    assert "a client certificate needs its key: --certificate and --key" in capsys.readouterr().err
    assert main(remote) == 1
    monkeypatch.setenv("TRAINYARD_CA", str(yard.authority.file))
    assert main([*remote[:3], "--certificate", certificate, "--key", key]) == 0


def test_the_description_names_both_ways(yard: Secured) -> None:
    described = yard.call("GET", "/openapi.json").json()
    assert described["components"]["securitySchemes"]["certificate"] == {"type": "mutualTLS"}
    assert described["paths"]["/v1/jobs"]["get"]["security"] == [{"bearer": []}, {"certificate": []}]


def test_a_reload_renews_the_certificate_and_keeps_open_connections(yard: Secured) -> None:
    with socket.create_connection(("127.0.0.1", yard.port), 10) as raw:
        context = ssl.create_default_context(cafile=yard.authority.file)
        with context.wrap_socket(raw, server_hostname="127.0.0.1") as opened:
            before = opened.getpeercert(binary_form=True)
            own = yard.authority.sign("controller", address="127.0.0.1")
            for new, used in zip(
                own, (yard.settings["api"]["tls_certificate"], yard.settings["api"]["tls_key"]), strict=True
            ):
                Path(used).write_bytes(new.read_bytes())
            assert yard.by("night", "POST", "/v1/reload").ok
            opened.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert opened.recv(100).startswith(b"HTTP/1.1 200")
    with (
        socket.create_connection(("127.0.0.1", yard.port), 10) as raw,
        context.wrap_socket(raw, server_hostname="127.0.0.1") as opened,
    ):
        shown = opened.getpeercert(binary_form=True)
    assert shown == ssl.PEM_cert_to_DER_cert(own[0].read_text()) != before


def test_a_revoked_certificate_ends_with_the_reload_also_on_an_open_connection(yard: Secured, tmp_path: Path) -> None:
    stays, goes = yard.authority.sign("any", ("h1",)), yard.authority.sign("any", ("h2",))
    revoked = tmp_path / "revoked.pem"
    with requests.Session() as kept, requests.Session() as lost:
        for session, files in ((kept, stays), (lost, goes)):
            session.trust_env = False
            session.cert, session.verify = (str(files[0]), str(files[1])), str(yard.authority.file)

        def plan(session: requests.Session, host: str) -> int:
            return session.get(f"{yard.url}/v1/hosts/{host}/plan", timeout=15).status_code

        assert (plan(kept, "h1"), plan(lost, "h2")) == (200, 200)
        revoked.write_bytes(yard.authority.revoke(goes[0]))
        yard.settings["api"]["client_revoked"] = str(revoked)
        yard.write()
        assert yard.by("night", "POST", "/v1/reload").ok
        try:
            wait_until(lambda: "is ended: its certificate is revoked" in yard.log(), what="the end of the connection")
            with pytest.raises(requests.exceptions.ConnectionError):
                plan(lost, "h2")
            assert plan(kept, "h1") == 200
            assert yard.log().count("is ended: its certificate is revoked") == 1
            assert "Traceback" not in yard.log()
        finally:
            del yard.settings["api"]["client_revoked"]
            yard.write()
            assert yard.by("night", "POST", "/v1/reload").ok
    assert yard.shown(goes, "GET", "/v1/hosts/h2/plan").status_code == 200


def test_who_leaves_while_waiting_saves_no_other_whose_authority_is_gone(yard: Secured, tmp_path: Path) -> None:
    context = ssl.create_default_context(cafile=yard.authority.file)
    context.load_cert_chain(*yard.authority.sign("any", ("h1",)))
    tag = yard.by("night", "GET", "/v1/hosts/h1/plan").headers["ETag"]
    waiting = []
    for _ in range(8):
        raw = socket.create_connection(("127.0.0.1", yard.port), 10)
        waiting.append(context.wrap_socket(raw, server_hostname="127.0.0.1"))
        head = f"GET /v1/hosts/h1/plan?wait=30 HTTP/1.1\r\nHost: x\r\nIf-None-Match: {tag}\r\n\r\n"
        waiting[-1].sendall(head.encode())
    *leaving, stays = waiting
    wait_until(lambda: all(map(has_been_read, waiting)), what="that each of them waits")
    for each in leaving:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        each.close()
    yard.settings["api"]["client_authority"] = str(Authority(tmp_path, "other").file)
    yard.write()
    try:
        assert yard.by("night", "POST", "/v1/reload").ok
        with contextlib.suppress(ConnectionResetError, ssl.SSLEOFError):
            assert stays.recv(1) == b"", "it is ended at once, and not answered after 30 s"
        assert yard.by("night", "POST", "/v1/reload").ok, "also where some of those that were ended are still there"
    finally:
        stays.close()
        yard.settings["api"]["client_authority"] = str(yard.authority.file)
        yard.write()
        assert yard.by("night", "POST", "/v1/reload").ok
    assert "Traceback" not in yard.log()


def test_no_session_is_resumed_so_that_each_connection_shows_its_certificate(yard: Secured) -> None:
    context = ssl.create_default_context(cafile=yard.authority.file)
    context.load_cert_chain(*yard.authority.sign("any", ("h1",)))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    session = None
    for _ in range(2):
        raw = socket.create_connection(("127.0.0.1", yard.port), 10)
        with context.wrap_socket(raw, server_hostname="127.0.0.1", session=session) as opened:
            assert not opened.session_reused
            session = opened.session
