"""The certificates of one endpoint: what it shows, whom it believes. They are read at the start and at each
reload.

Nothing here knows what is spoken over TLS, so every listener and every client of the controller can use it.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from controller.documents.regular_file import check_regular

Side = Literal["server", "client"]


class CertificateError(ValueError):
    """A file cannot be used; the message names the file, and says what is wrong with it and what would be right."""


@dataclass(frozen=True, slots=True)
class Certificates:
    """The PEM files of an endpoint that shows a certificate and demands one of its peers.

    ``authority`` has the certificates of the authorities that may have signed a peer's certificate. ``revoked`` has
    their lists of revoked certificates (CRL), one of each authority. Without it no certificate is revoked.
    """

    certificate: Path
    key: Path
    authority: Path
    revoked: Path | None = None

    @property
    def public(self) -> PublicFiles:
        """The files without the key."""
        return PublicFiles(self.certificate, self.authority, self.revoked)


class PublicFiles(NamedTuple):
    """The PEM files of an endpoint that hold no secret. None: there is no such file."""

    certificate: Path
    authority: Path | None = None
    revoked: Path | None = None


class TlsContext:
    """Holds the ``ssl.SSLContext`` for new connections. Raises CertificateError.

    TLS 1.2 is the oldest version. A peer must show a certificate. The name in it is not compared with the peer's
    address: the authority alone decides.
    """

    def __init__(self, certificates: Certificates, side: Side) -> None:
        self.certificates = certificates
        self._side: Side = side
        self.current = make_context(certificates, side)

    def prepare(self, certificates: Certificates) -> Callable[[], None]:
        """Returns what makes new connections use these files, as they are now; open ones keep what they have.

        Raises CertificateError, and then nothing changes.
        """
        context = make_context(certificates, self._side)

        def use() -> None:
            self.certificates, self.current = certificates, context

        return use


def make_context(certificates: Certificates, side: Side) -> ssl.SSLContext:
    """Returns a context with the files as they are now. Raises CertificateError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if side == "server" else ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    restrict(context, side)
    load_own(context, certificates.certificate, certificates.key)
    _load_authority(context, certificates.authority)
    if certificates.revoked is not None:
        load_revoked(context, certificates.revoked)
    return context


def restrict(context: ssl.SSLContext, side: Side) -> None:
    """Let a context speak TLS 1.2 or newer, and have each connection make a whole handshake."""
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # A session that is resumed would pass by the peer's certificate, which may be revoked by then.
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
    if side == "server":
        context.num_tickets = 0


def check_own(certificate: Path, key: Path) -> None:
    """Raises CertificateError where a certificate and a key cannot be used together."""
    load_own(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), certificate, key)


def check_authority(authority: Path) -> None:
    """Raises CertificateError where a file has no certificate of an authority."""
    _load_authority(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), authority)


def check_revoked(revoked: Path) -> None:
    """Raises CertificateError where a file has no list of revoked certificates."""
    load_revoked(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), revoked)


def load_own(context: ssl.SSLContext, certificate: Path, key: Path) -> None:
    """Have a context show a certificate. Raises CertificateError."""
    _require_readable(certificate)
    _require_readable(key)
    try:
        # An empty password: where the key has one, nobody must be asked at a terminal.
        context.load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as error:
        if getattr(error, "reason", None) == "KEY_VALUES_MISMATCH":
            raise CertificateError(f"the key {key} is not that of the certificate {certificate}") from error
        raise CertificateError(
            f"the certificate {certificate} and the key {key} cannot be used together: {error}; "
            "both are PEM files, the key without a password"
        ) from error


def _load_authority(context: ssl.SSLContext, authority: Path) -> None:
    load_trusted(context, authority)
    if context.cert_store_stats()["x509_ca"] == 0:
        raise CertificateError(f"{authority} has no certificate of an authority (CA: true), only others")


def load_trusted(context: ssl.SSLContext, authority: Path) -> None:
    """Have a context believe what the authorities in a file have signed. Raises CertificateError."""
    _load(context, authority, "certificate of an authority")


def load_revoked(context: ssl.SSLContext, revoked: Path) -> None:
    """Have a context refuse the certificates that the lists in a file revoke. Raises CertificateError."""
    before = context.cert_store_stats()
    after = _load(context, revoked, "list of revoked certificates (CRL)")
    # OpenSSL would believe a certificate in this file as one of an authority.
    if after["x509"] != before["x509"] or after["crl"] == before["crl"]:
        raise CertificateError(f"{revoked} must hold lists of revoked certificates (X509 CRL), and nothing else")
    context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _load(context: ssl.SSLContext, path: Path, what: str) -> dict[str, int]:
    _require_readable(path)
    try:
        context.load_verify_locations(cafile=path)
    except (OSError, ValueError) as error:
        raise CertificateError(f"{path} has no {what} in PEM form: {error}") from error
    return context.cert_store_stats()


def _require_readable(path: Path) -> None:
    try:
        check_regular(path)
    except OSError as error:
        raise CertificateError(f"{path} cannot be read: {error.strerror}") from error
