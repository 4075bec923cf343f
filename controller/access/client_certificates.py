"""Who a client certificate is of. Pure: TLS has checked the signature before."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from ssl import cert_time_to_seconds
from typing import Any

from controller.access.caller import Caller, Role
from controller.access.tokens.entries import TokenTable


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """What counts of a certificate: its common names, its DNS names, and its end in seconds since the Unix epoch."""

    common_names: tuple[str, ...]
    dns_names: tuple[str, ...]
    ends_at: float

    @classmethod
    def of(cls, peer: Mapping[str, Any] | None) -> ClientCertificate | None:
        """Returns what ``ssl.SSLSocket.getpeercert`` says of a client; None where it showed no certificate."""
        if not peer:
            return None
        subject = [pair for name in peer.get("subject", ()) for pair in name]
        return cls(
            common_names=tuple(value for kind, value in subject if kind == "commonName"),
            dns_names=tuple(value for kind, value in peer.get("subjectAltName", ()) if kind == "DNS"),
            ends_at=float(cert_time_to_seconds(peer["notAfter"])),
        )

    def caller(self, table: TokenTable | None, hosts: Collection[str], now: float) -> Caller | None:
        """Returns who has this certificate, or None.

        An entry of the tokens file with its common name comes first. Else it is of the host whose name is among its DNS
        names, where that is exactly one. ``now`` is in seconds since the Unix epoch: a connection may outlive the
        certificate that it began with.
        """
        if now >= self.ends_at:
            return None
        if table is not None and len(self.common_names) == 1:
            caller = table.of_certificate(self.common_names[0], now)
            if caller is not None:
                return caller
        named = {name for name in self.dns_names if name in hosts}
        if len(named) != 1:
            return None
        (host,) = named
        return Caller(host, Role.HOST, host=host, proof="certificate")
