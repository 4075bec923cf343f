"""Reads the certificates, and the lists of revoked certificates, in PEM files."""

from __future__ import annotations

from pathlib import Path

from cryptography import x509

from controller.access.certificates.contexts import CertificateError
from controller.documents.regular_file import read_regular

_END_OF_LIST = b"-----END X509 CRL-----"


def read_certificates(path: Path) -> tuple[x509.Certificate, ...]:
    """Returns all certificates in a file, in order. Raises CertificateError."""
    try:
        return tuple(x509.load_pem_x509_certificates(read_regular(path)))
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def read_lists(path: Path) -> tuple[x509.CertificateRevocationList, ...]:
    """Returns all lists of revoked certificates in a file. Raises CertificateError."""
    try:
        # The library itself reads only the first list of a file.
        parts = read_regular(path).split(_END_OF_LIST)[:-1]
        return tuple(x509.load_pem_x509_crl(part + _END_OF_LIST) for part in parts)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError | ValueError) -> CertificateError:
    return CertificateError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}")
