"""What a record says of certificates and of lists of revoked ones: enough to tell one from another."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.hashes import SHA256

from controller.access.certificates.contexts import PublicFiles
from controller.access.certificates.pem import read_certificates, read_lists


def summary(files: PublicFiles) -> Mapping[str, Any]:
    """Returns what is in each of the files, by its path. Raises CertificateError."""
    found = {str(path): _certificates(path) for path in (files.certificate, files.authority) if path is not None}
    return found if files.revoked is None else found | {str(files.revoked): _lists(files.revoked)}


def _certificates(path: Path) -> list[str]:
    """Returns of each certificate its SHA-256 and its end."""
    return [
        f"sha256 {each.fingerprint(SHA256()).hex()}, until {each.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
        for each in read_certificates(path)
    ]


def _lists(path: Path) -> list[str]:
    """Returns of each list its SHA-256 and how many certificates it revokes."""
    return [f"sha256 {each.fingerprint(SHA256()).hex()}, revoked: {len(each)}" for each in read_lists(path)]
