"""Which peers a context believes, what is wrong with files, and that a renewal is for new connections alone."""

from __future__ import annotations

import socket
import ssl
import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from controller.access.certificates.authority import utc_now
from controller.access.certificates.contexts import CertificateError, TlsContext, make_context
from controller.access.certificates.pem import read_certificates
from controller.access.certificates.reasons import reason
from tests.support.controller.tls.yard_certificates import YardCertificates


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> YardCertificates:
    return YardCertificates(tmp_path_factory.mktemp("certificates"))


def handshake(server: ssl.SSLContext, client: ssl.SSLContext | None) -> str | None:
    """Returns why the server refuses the client, which speaks no TLS where ``client`` is None; None: it accepts it."""
    here, there = socket.socketpair()
    with here, there:
        for end in (here, there):
            end.settimeout(10)
        peer = threading.Thread(target=_connect, args=(there, client))
        peer.start()
        try:
            with server.wrap_socket(here, server_side=True) as secured:
                assert secured.recv(1) == b"x"
            return None
        except OSError as error:
            return reason(error)
        finally:
            here.close()
            peer.join(10)


def _connect(end: socket.socket, client: ssl.SSLContext | None) -> None:
    try:
        if client is None:
            end.sendall(b"\x04\x00\x00\x08\x00\x00\x00\x01" * 3)
            end.recv(100)
        else:
            with client.wrap_socket(end) as secured:
                secured.sendall(b"x")
                secured.recv(1)
    except OSError:
        """The server says why."""


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("good", None),
        ("expired", "its certificate has expired"),
        ("foreign", "its certificate is of an authority that is not trusted here"),
        ("host", "its certificate is of an authority that is not trusted here"),
        ("revoked", "its certificate is revoked"),
        (None, "it shows no certificate"),
    ],
)
def test_only_a_good_certificate_is_believed(
    yard: YardCertificates, name: str | None, expected: str | None, newest: ssl.TLSVersion
) -> None:
    server = make_context(yard.for_switches, "server")
    assert handshake(server, yard.client(name, newest)) == expected


def test_what_is_no_tls_is_said(yard: YardCertificates) -> None:
    assert handshake(make_context(yard.for_switches, "server"), None) == "it does not speak TLS"


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated:DeprecationWarning")
def test_an_old_protocol_is_refused(yard: YardCertificates) -> None:
    old = yard.client("good", ssl.TLSVersion.TLSv1_1)
    old.minimum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    assert handshake(make_context(yard.for_switches, "server"), old) == "its TLS is older than 1.2"


def test_a_client_that_does_not_trust_the_controller_is_said(yard: YardCertificates) -> None:
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    said = handshake(make_context(yard.for_switches, "server"), client)
    assert said == "it does not trust the authority of the certificate shown to it"


def test_a_list_that_has_expired_refuses_all_and_is_said(yard: YardCertificates, tmp_path: Path) -> None:
    key = load_pem_private_key((yard.folder.secret / "ca-switch.key").read_bytes(), None)
    (authority,) = read_certificates(yard.folder.authority_of("switch"))
    now = utc_now()
    builder = x509.CertificateRevocationListBuilder(authority.subject, now - timedelta(2), now - timedelta(1))
    old = tmp_path / "old.pem"
    old.write_bytes(builder.sign(key, SHA256()).public_bytes(Encoding.PEM))
    server = make_context(replace(yard.for_switches, revoked=old), "server")
    said = "the list of revoked certificates (CRL) has expired: make a new one"
    assert handshake(server, yard.client("good")) == said
    old.write_bytes(yard.folder.revoked_of("host").read_bytes())
    server = make_context(replace(yard.for_switches, revoked=old), "server")
    said = "there is no list of revoked certificates (CRL) of the authority of its certificate"
    assert handshake(server, yard.client("good")) == said


def test_without_a_list_no_certificate_is_revoked(yard: YardCertificates) -> None:
    server = make_context(replace(yard.for_switches, revoked=None), "server")
    assert handshake(server, yard.client("revoked")) is None
    assert handshake(server, yard.client("expired")) is not None


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_session_is_not_resumed(yard: YardCertificates, newest: ssl.TLSVersion) -> None:
    # A resumed session would not look at the certificate again.
    server, client = make_context(yard.for_switches, "server"), yard.client("good", newest)
    session: ssl.SSLSession | None = None
    for _ in range(2):
        here, there = socket.socketpair()
        with here, there:
            peer = threading.Thread(target=_greet, args=(here, server))
            peer.start()
            with client.wrap_socket(there, session=session) as secured:
                assert secured.recv(1) == b"y"  # tickets, if there are any, come before
                session = secured.session
                assert not secured.session_reused
            peer.join(10)
    assert server.session_stats()["number"] == 0, "and none is kept"


def _greet(end: socket.socket, server: ssl.SSLContext) -> None:
    with server.wrap_socket(end, server_side=True) as secured:
        secured.sendall(b"y")
        secured.recv(1)


def test_renewal_is_for_new_connections_and_a_broken_file_changes_nothing(tmp_path: Path) -> None:
    yard = YardCertificates(tmp_path)
    context = TlsContext(yard.for_switches, "server")
    before = context.current
    yard.folder.path.joinpath("controller.pem").write_text("no certificate")
    with pytest.raises(CertificateError, match=r"controller\.pem .* cannot be used together"):
        context.prepare(yard.for_switches)
    assert context.current is before
    yard.make("controller", "controller", replace=True)
    yard.make("switch", "late")
    yard.folder.revoke(["late"], utc_now())
    assert handshake(context.current, yard.client("late")) is None
    context.prepare(yard.for_switches)()
    assert handshake(context.current, yard.client("late")) == "its certificate is revoked"


@pytest.mark.parametrize(
    ("field", "text", "expected"),
    [
        ("certificate", None, "none cannot be read: No such file"),
        ("certificate", "x", "both are PEM files, the key without a password"),
        ("key", "other", "is not that of the certificate"),
        ("authority", None, "none cannot be read: No such file"),
        ("authority", "x", "has no certificate of an authority in PEM form"),
        ("authority", "leaf", "has no certificate of an authority (CA: true), only others"),
        ("revoked", "x", "has no list of revoked certificates (CRL) in PEM form"),
        ("revoked", "leaf", "must hold lists of revoked certificates (X509 CRL), and nothing else"),
        ("revoked", "both", "must hold lists of revoked certificates (X509 CRL), and nothing else"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line_with_its_name(
    yard: YardCertificates, tmp_path: Path, field: str, text: str | None, expected: str
) -> None:
    good, key = yard.files("good")
    path = tmp_path / "none"
    texts = {
        "x": "x",
        "other": key.read_text(),
        "leaf": good.read_text(),
        "both": yard.folder.revoked_of("switch").read_text() + yard.folder.authority_of("host").read_text(),
    }
    if text is not None:
        path = tmp_path / "file"
        path.write_text(texts[text])
    with pytest.raises(CertificateError) as caught:
        make_context(replace(yard.for_switches, **{field: path}), "server")
    assert expected in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
