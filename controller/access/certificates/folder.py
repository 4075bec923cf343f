"""The folder of ``trainyard certs``: authorities, the certificates that they have signed, and which are revoked.

Only its owner can read the keys. A file that is there is not overwritten unless that is asked for. A folder in which
others can put files is refused: an authority that is there is used, and it could be theirs.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from controller.access.certificates.authority import ROLES, Pair, Role, make_authority, make_certificate, make_list
from controller.access.certificates.contexts import CertificateError
from controller.access.certificates.pem import read_certificates, read_lists

_PUBLIC, _PRIVATE = 0o644, 0o600
_AUTHORITIES = "authorities"

LISTED: tuple[Role, ...] = ("switch", "host")
"""The roles with a list of revoked certificates. Open vSwitch reads no lists, so one for controllers has no effect."""


class Wanted(NamedTuple):
    """A certificate that is to be made; ``addresses`` are where peers reach its owner."""

    role: Role
    name: str
    addresses: tuple[str, ...] = ()

    @property
    def stem(self) -> str:
        """Returns the name of its files without their endings."""
        return "controller" if self.role == "controller" else f"{self.role}-{self.name}"


@dataclass(frozen=True, slots=True)
class Folder:
    """Where the files are. The methods raise CertificateError."""

    path: Path

    def authority_of(self, role: Role) -> Path:
        """Returns the file of the authority's certificate, which peers of ``role``'s owners need."""
        return self.path / f"ca-{role}.pem"

    def revoked_of(self, role: Role) -> Path:
        """Returns the file of the authority's list of revoked certificates."""
        return self.path / f"revoked-{role}.pem"

    @property
    def secret(self) -> Path:
        """Returns the folder of the authorities' keys and of what they have signed."""
        return self.path / _AUTHORITIES

    def make(
        self, wanted: Sequence[Wanted], *, days: int, replace: bool, now: datetime
    ) -> tuple[list[Path], list[Path]]:
        """Make the authorities that are missing, and a certificate with its key for each of ``wanted``.

        Returns the files that were made, and those that were replaced. If ``replace`` is false and one of the files is
        there already, nothing is written.
        """
        there = [path for each in wanted for path in self._files(each.stem) if path.exists()]
        if there and not replace:
            raise CertificateError(f"{there[0]} exists already; --replace makes a new certificate and key in its place")
        with _file_errors():
            self.path.mkdir(mode=0o755, parents=True, exist_ok=True)
            if not self.secret.is_symlink():
                self.secret.mkdir(mode=0o700, exist_ok=True)
            self._require_own()
            made = [path for role in ROLES for path in self._make_authority(role, now)]
            for each in wanted:
                made += self._issue(each, days, now)
        return [path for path in made if path not in there], there

    def revoke(self, names: Sequence[str], now: datetime) -> list[Path]:
        """Revoke all certificates that were signed for these names, such as ``switch-s1`` or ``s1``.

        Returns the lists that were written.
        """
        serials: dict[Role, set[int]] = {}
        with _file_errors():
            if self.secret.exists():
                self._require_own()
            for name in names:
                role, found = self._issued_as(name)
                serials.setdefault(role, set()).update(found)
            for role, added in serials.items():
                before = {each.serial_number for lists in read_lists(self.revoked_of(role)) for each in lists}
                self._write_list(role, before | added, now)
        return [self.revoked_of(role) for role in serials]

    def _require_own(self) -> None:
        """Raises CertificateError where others could put files into the folder."""
        _require_own(self.path, stat.S_IWOTH)
        _require_own(self.secret, stat.S_IWGRP | stat.S_IWOTH)

    def _issued_as(self, name: str) -> tuple[Role, set[int]]:
        """Returns the role of a name and the serial numbers of its certificates."""
        found: dict[Role, set[int]] = {}
        for role in LISTED:
            for owner, serial in self._issued(role):
                if name in (owner, Wanted(role, owner).stem):
                    found.setdefault(role, set()).add(serial)
        if not found:
            raise CertificateError(f"no certificate of a switch or a host named {name} was made in {self.path}")
        if len(found) > 1:
            raise CertificateError(f"{name} is the name of more than one: {' or '.join(f'{r}-{name}' for r in found)}")
        return found.popitem()

    def _make_authority(self, role: Role, now: datetime) -> Iterator[Path]:
        there = [path for path in (self._key_of(role), self.authority_of(role)) if path.exists()]
        if len(there) == 1:
            raise CertificateError(f"{there[0]} is there without the other file of its authority; bring that file back")
        if there:
            return
        authority = make_authority(role, now)
        _write(self._key_of(role), _key_pem(authority.key), _PRIVATE)
        _write(self.authority_of(role), authority.certificate.public_bytes(Encoding.PEM), _PUBLIC)
        yield from (self._key_of(role), self.authority_of(role))
        if role in LISTED:
            self._write_list(role, (), now)
            yield self.revoked_of(role)

    def _issue(self, wanted: Wanted, days: int, now: datetime) -> tuple[Path, ...]:
        authority = self._authority(wanted.role)
        pair = make_certificate(authority, wanted.role, wanted.name, addresses=wanted.addresses, days=days, now=now)
        # Noted first: what was not noted could never be revoked.
        with self._notes_of(wanted.role).open("a") as notes:
            notes.write(f"{wanted.name} {pair.certificate.serial_number:x} {pair.certificate.not_valid_after_utc}\n")
        certificate, key = self._files(wanted.stem)
        _write(key, _key_pem(pair.key), _PRIVATE)
        _write(certificate, pair.certificate.public_bytes(Encoding.PEM), _PUBLIC)
        return certificate, key

    def _authority(self, role: Role) -> Pair:
        path = self._key_of(role)
        try:
            key = load_pem_private_key(path.read_bytes(), None)
        except (OSError, ValueError, TypeError) as error:
            raise CertificateError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise CertificateError(f"{path} is no key that this command has made")
        return Pair(read_certificates(self.authority_of(role))[0], key)

    def _write_list(self, role: Role, serials: Iterable[int], now: datetime) -> None:
        revoked = make_list(self._authority(role), sorted(serials), now)
        _write(self.revoked_of(role), revoked.public_bytes(Encoding.PEM), _PUBLIC)

    def _issued(self, role: Role) -> Iterator[tuple[str, int]]:
        """Yields the name and the serial number of each certificate that the authority has signed."""
        path = self._notes_of(role)
        for line in path.read_text().splitlines() if path.exists() else ():
            name, serial, _ = line.split(" ", 2)
            yield name, int(serial, 16)

    def _files(self, stem: str) -> tuple[Path, Path]:
        return self.path / f"{stem}.pem", self.path / f"{stem}.key"

    def _key_of(self, role: Role) -> Path:
        return self.secret / f"ca-{role}.key"

    def _notes_of(self, role: Role) -> Path:
        return self.secret / f"issued-{role}.txt"


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write(path: Path, data: bytes, mode: int) -> None:
    """Write a file that is whole at any moment, and that others than its ``mode`` names never could read."""
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data)
    new.replace(path)


def _require_own(folder: Path, closed_to: int) -> None:
    """Raises CertificateError for a folder in which another user could put an authority of its own.

    ``closed_to`` are the bits of a mode that it must not have.
    """
    status = folder.lstat() if folder.name == _AUTHORITIES else folder.stat()
    if not stat.S_ISDIR(status.st_mode):
        raise CertificateError(f"{folder} is no folder of its own, but a link or a file; move it away")
    if status.st_uid not in (os.geteuid(), 0):
        raise CertificateError(f"{folder} is another user's, who could exchange the keys in it; name a folder of yours")
    if status.st_mode & closed_to:
        raise CertificateError(f"others may write into {folder}, and could exchange the keys in it; chmod go-w it")


@contextlib.contextmanager
def _file_errors() -> Iterator[None]:
    """Turn an error of the file system into CertificateError."""
    try:
        yield
    except OSError as error:
        raise CertificateError(f"{error.filename} cannot be read or written: {error.strerror}") from error
