"""Finds out who calls, by everything that the settings accept as a proof."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Protocol

from controller.access.caller import Caller, Role
from controller.access.client_certificates import ClientCertificate
from controller.access.tokens.entries import TokenTable
from controller.access.unknown import UnknownCallerError

if TYPE_CHECKING:
    from controller.access.oidc.provider import OidcTokens


class Enrolled(Protocol):
    """The hosts that were approved, beside those of the settings."""

    def host_of_token(self, token_sha256: str) -> str | None:
        """Returns the host whose token has this SHA-256, in hexadecimal.

        A token that an agent has made is random, so a plain hash is safe, and finds one of many hosts at once.
        """

    def is_approved(self, name: str) -> bool:
        """Returns whether a host of this name was approved."""


class Callers:
    """Everybody who may call: owners of ``tokens``, entries of ``table``, who ``oidc`` vouches for, and certificates.

    ``tokens`` pairs each token with its owner. ``hosts`` are the names of the hosts in the settings, which certificates
    may have, and so may those of ``enrolled``, which have tokens of their own.
    ``is_open``: nothing is asked for, so that whoever reaches the API is an operator. ``clock`` is in seconds since the
    Unix epoch.
    """

    def __init__(
        self,
        hosts: Collection[str],
        *,
        is_open: bool,
        tokens: Iterable[tuple[str, Caller]] = (),
        table: TokenTable | None = None,
        oidc: OidcTokens | None = None,
        enrolled: Enrolled | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.is_open = is_open
        self._hosts = frozenset(hosts)
        self._set = [(token.encode(), owner) for token, owner in tokens]
        self.table = table
        self.oidc = oidc
        self.enrolled = enrolled
        self._clock = clock

    def by_token(self, token: str) -> Caller:
        """Returns who has a bearer token. Raises UnknownCallerError."""
        given = token.encode("utf-8", "replace")
        caller = None
        for known, owner in self._set:  # all of them, so that the time reveals nothing
            if hmac.compare_digest(known, given):
                caller = owner
        if caller is None and self.table is not None:
            caller = self.table.of_token(given, self._clock())
        if caller is None and self.enrolled is not None:
            host = self.enrolled.host_of_token(hashlib.sha256(given).hexdigest())
            caller = Caller(host, Role.HOST, host=host) if host is not None else None
        if caller is None and self.oidc is not None and self.oidc.is_one(token):
            return self.oidc.caller(token)
        if caller is None:
            raise UnknownCallerError("the token is not known here", "token")
        return caller

    def by_certificate(self, certificate: ClientCertificate | None) -> Caller:
        """Returns who has a client certificate. Raises UnknownCallerError."""
        if certificate is None:
            raise UnknownCallerError("a bearer token is required", "none")
        caller = certificate.caller(self.table, self._hosts_among(certificate.dns_names), self._clock())
        if caller is None:
            raise UnknownCallerError("nobody is known by the names in the client certificate", "certificate")
        return caller

    def _hosts_among(self, names: Iterable[str]) -> list[str]:
        """Returns the names that are those of hosts."""
        enrolled = self.enrolled
        return [name for name in names if name in self._hosts or (enrolled is not None and enrolled.is_approved(name))]
