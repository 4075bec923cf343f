"""Authorities that sign certificates, the certificates that they sign, and their lists of revoked ones. No files.

Each role has an authority of its own, because Open vSwitch asks only who has signed a certificate: with one authority
for all, whoever has the key of one server could give orders to every switch.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Literal

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

Role = Literal["controller", "switch", "host"]
ROLES: tuple[Role, ...] = ("controller", "switch", "host")

AUTHORITY_DAYS = 3650
"""An authority, and its list of revoked certificates, are valid this long."""
SKEW = timedelta(hours=1)
"""Let a certificate begin this long ago: clocks of switches may be behind."""

_CLIENT, _SERVER = ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH
_USES: Mapping[Role, tuple[x509.ObjectIdentifier, ...]] = MappingProxyType(
    # The controller serves switches and agents, and is a client of databases. With a switch it is the other way round.
    {"controller": (_SERVER, _CLIENT), "switch": (_CLIENT, _SERVER), "host": (_CLIENT,)}
)


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def make_authority(role: Role, now: datetime) -> Pair:
    """Returns a new authority for certificates of ``role``."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Trainyard {role} authority {now:%Y-%m-%d %H:%M}")])
    public = key.public_key()
    builder = _begin(name, public, now, now + timedelta(days=AUTHORITY_DAYS)).issuer_name(name)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_key_usage(signs=True), critical=True)
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    return Pair(builder.sign(key, SHA256()), key)


def make_certificate(
    authority: Pair, role: Role, name: str, *, addresses: Sequence[str] = (), days: int, now: datetime
) -> Pair:
    """Returns a certificate of ``role`` for ``name``, which is its common name, with a new key.

    It is valid for ``days``, but not longer than the authority. ``addresses`` are the IP addresses and DNS names at
    which peers reach its owner; without any, ``name`` is the DNS name.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    until = min(now + timedelta(days=days), authority.certificate.not_valid_after_utc)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = _begin(subject, key.public_key(), now, until).issuer_name(authority.certificate.subject)
    alternative = x509.SubjectAlternativeName([_alternative(each) for each in addresses or (name,)])
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_key_usage(signs=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage(_USES[role]), critical=False)
    builder = builder.add_extension(alternative, critical=False)
    builder = builder.add_extension(_issuer(authority), critical=False)
    return Pair(builder.sign(authority.key, SHA256()), key)


def make_list(authority: Pair, serials: Iterable[int], now: datetime) -> x509.CertificateRevocationList:
    """Returns the authority's list of the revoked certificates with these serial numbers.

    It is valid as long as the authority: OpenSSL accepts no certificate at all when the list has expired.
    """
    builder = x509.CertificateRevocationListBuilder().issuer_name(authority.certificate.subject)
    builder = builder.last_update(now - SKEW).next_update(authority.certificate.not_valid_after_utc)
    builder = builder.add_extension(_issuer(authority), critical=False)
    for serial in serials:
        entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now)
        builder = builder.add_revoked_certificate(entry.build())
    return builder.sign(authority.key, SHA256())


def _begin(
    subject: x509.Name, public: ec.EllipticCurvePublicKey, now: datetime, until: datetime
) -> x509.CertificateBuilder:
    begun = x509.CertificateBuilder().subject_name(subject).public_key(public)
    return begun.serial_number(x509.random_serial_number()).not_valid_before(now - SKEW).not_valid_after(until)


def _issuer(authority: Pair) -> x509.AuthorityKeyIdentifier:
    return x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())


def _alternative(address: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(address))
    except ValueError:
        return x509.DNSName(address)


def _key_usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def utc_now() -> datetime:
    """Returns the time in whole seconds, as certificates have it."""
    return datetime.now(UTC).replace(microsecond=0)
