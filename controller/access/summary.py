"""What a record says of certificates and of lists of revoked ones: enough to tell one from another."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.hashes import SHA256

from controller.access.certificates import Certificates
from controller.access.pem import read_certificates, read_lists


def summary(certificates: Certificates) -> Mapping[str, Any]:
    """Returns what is in each file of ``certificates``, by its path. The private key is left out.

    Raises CertificateError.
    """
    files = {str(path): _certificates(path) for path in (certificates.certificate, certificates.authority)}
    return files if certificates.revoked is None else files | {str(certificates.revoked): _lists(certificates.revoked)}


def _certificates(path: Path) -> list[str]:
    """Returns of each certificate its SHA-256 and its end."""
    return [
        f"sha256 {each.fingerprint(SHA256()).hex()}, until {each.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
        for each in read_certificates(path)
    ]


def _lists(path: Path) -> list[str]:
    """Returns of each list its SHA-256 and how many certificates it revokes."""
    return [f"sha256 {each.fingerprint(SHA256()).hex()}, revoked: {len(each)}" for each in read_lists(path)]
