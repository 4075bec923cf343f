"""A certificate authority with real keys, for tests of client certificates."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class Authority:
    """Signs certificates, and writes each with its key into ``folder``."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        made = (
            self._builder(self._name, self._key.public_key(), timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(made.public_bytes(serialization.Encoding.PEM))

    def sign(
        self, common_name: str, dns: tuple[str, ...] = (), *, address: str | None = None, valid: timedelta | None = None
    ) -> tuple[Path, Path]:
        """Returns the files of a new certificate and its key. ``valid`` is from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        builder = self._builder(subject, key.public_key(), valid if valid is not None else timedelta(days=1))
        names: list[x509.GeneralName] = [x509.DNSName(name) for name in dns]
        if address is not None:
            names.append(x509.IPAddress(ipaddress.ip_address(address)))
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        made = builder.sign(self._key, hashes.SHA256())
        stem = f"{common_name}-{made.serial_number:x}"
        files = self._folder / f"{stem}.pem", self._folder / f"{stem}.key"
        files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
        files[1].write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return files

    def revoke(self, certificate: Path) -> bytes:
        """Returns the list (PEM) of the revoked certificates: the one in a file."""
        serial = x509.load_pem_x509_certificate(certificate.read_bytes()).serial_number
        now = datetime.now(UTC)
        entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now)
        builder = x509.CertificateRevocationListBuilder().issuer_name(self._name).last_update(now - timedelta(days=1))
        builder = builder.next_update(now + timedelta(days=1)).add_revoked_certificate(entry.build())
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey, valid: timedelta) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + valid)
        )
