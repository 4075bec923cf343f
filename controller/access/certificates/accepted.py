"""Whether a certificate that was accepted earlier would be accepted with the files as they are now."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from controller.access.certificates.pem import read_certificates, read_lists


class Judge:
    """Judges certificates by the authorities and the lists of revoked certificates that it is given."""

    def __init__(
        self, authorities: tuple[x509.Certificate, ...], lists: tuple[x509.CertificateRevocationList, ...]
    ) -> None:
        self._authorities = authorities
        self._lists = lists

    @classmethod
    def read(cls, authority: Path, revoked: Path | None) -> Self:
        """Returns the judge by a file of authorities and one of revoked certificates. Raises CertificateError."""
        return cls(read_certificates(authority), read_lists(revoked) if revoked is not None else ())

    def objection(self, certificate: bytes, before: Judge, now: datetime | None = None) -> str | None:
        """Returns why a certificate (DER) that ``before`` accepted is refused now; None: it is still accepted.

        A certificate that no authority has signed itself, but one below it, is refused where any authority is gone: it
        may have been that one. Its owner connects again, and TLS then judges the whole chain.
        """
        try:
            peer = x509.load_der_x509_certificate(certificate)
            return self._objection(peer, before, now or datetime.now(UTC))
        except ValueError:  # OpenSSL has read it, and this library cannot
            return "its certificate cannot be judged again"

    def _objection(self, peer: x509.Certificate, before: Judge, now: datetime) -> str | None:
        if now > peer.not_valid_after_utc:
            return "its certificate has expired"
        if self._is_revoked(peer):
            return "its certificate is revoked"
        if self._has_signed(peer):
            return None
        if before._has_signed(peer):
            return "its certificate is of an authority that is not trusted any more"
        if not set(before._authorities) <= set(self._authorities):
            return "its certificate may be of an authority that is not trusted any more"
        return None

    def _is_revoked(self, peer: x509.Certificate) -> bool:
        own = (each for each in self._lists if each.issuer == peer.issuer)
        return any(each.get_revoked_certificate_by_serial_number(peer.serial_number) is not None for each in own)

    def _has_signed(self, peer: x509.Certificate) -> bool:
        return any(_is_by(peer, authority) for authority in self._authorities)


def _is_by(peer: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        peer.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True
