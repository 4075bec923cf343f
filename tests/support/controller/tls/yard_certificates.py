"""Certificates for tests, made as ``trainyard certs`` makes them: good ones, and one of each kind that is refused."""

from __future__ import annotations

import ssl
from datetime import datetime, timedelta
from pathlib import Path

from controller.access.certificates.authority import Role, utc_now
from controller.access.certificates.contexts import Certificates
from controller.access.certificates.folder import Folder, Wanted

CONTROLLER = Wanted("controller", "controller", ("127.0.0.1", "localhost"))
SWITCHES = ("good", "revoked")


class YardCertificates:
    """The folder of a yard, with the controller's certificate, and certificates of switches by name.

    ``good``; ``revoked``; ``expired``; ``foreign`` (of another yard's authority); ``host`` (a host's of this yard).
    """

    def __init__(self, path: Path) -> None:
        self.folder = Folder(path / "yard")
        self._other = Folder(path / "other")
        self.make("switch", *SWITCHES)
        self.folder.make([CONTROLLER], days=30, replace=False, now=utc_now())
        self.make("switch", "expired", now=utc_now() - timedelta(days=40))
        self.make("host", "host")
        self._other.make([Wanted("switch", "foreign")], days=30, replace=False, now=utc_now())
        self.folder.revoke(["switch-revoked"], utc_now())

    def make(self, role: Role, *names: str, replace: bool = False, now: datetime | None = None) -> None:
        """Make certificates that are valid for 30 days."""
        wanted = [Wanted(role, name) for name in names]
        self.folder.make(wanted, days=30, replace=replace, now=now or utc_now())

    def files(self, name: str) -> tuple[Path, Path]:
        """The certificate and the key of a switch or a host."""
        stem = "host-host" if name == "host" else f"switch-{name}"
        folder = self._other if name == "foreign" else self.folder
        return folder.path / f"{stem}.pem", folder.path / f"{stem}.key"

    @property
    def for_switches(self) -> Certificates:
        """What the controller needs to speak with switches."""
        own = self.folder.path / "controller"
        authority, revoked = self.folder.authority_of("switch"), self.folder.revoked_of("switch")
        return Certificates(own.with_suffix(".pem"), own.with_suffix(".key"), authority, revoked)

    @property
    def settings(self) -> dict[str, str]:
        """The same, as ``openflow.tls`` has it."""
        files = self.for_switches
        names = ("certificate", "key", "authority", "revoked")
        return {name: str(getattr(files, name)) for name in names}

    def client(self, name: str | None, newest: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLContext:
        """The context of a switch; None: it shows no certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.load_verify_locations(self.folder.authority_of("controller"))
        context.maximum_version = newest
        if name is not None:
            context.load_cert_chain(*self.files(name))
        return context
