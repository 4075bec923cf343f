"""Finds out who calls, by everything that the settings accept as a proof."""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from controller.access.caller import Caller
from controller.access.client_certificates import ClientCertificate
from controller.access.tokens.entries import TokenTable
from controller.access.unknown import UnknownCallerError

if TYPE_CHECKING:
    from controller.access.oidc.provider import OidcTokens


class Callers:
    """Everybody who may call: owners of ``tokens``, entries of ``table``, who ``oidc`` vouches for, and certificates.

    ``tokens`` pairs each token with its owner. ``hosts`` are the names of the hosts, which certificates may have.
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
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.is_open = is_open
        self._hosts = frozenset(hosts)
        self._set = [(token.encode(), owner) for token, owner in tokens]
        self.table = table
        self.oidc = oidc
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
        if caller is None and self.oidc is not None and self.oidc.is_one(token):
            return self.oidc.caller(token)
        if caller is None:
            raise UnknownCallerError("the token is not known here", "token")
        return caller

    def by_certificate(self, certificate: ClientCertificate | None) -> Caller:
        """Returns who has a client certificate. Raises UnknownCallerError."""
        if certificate is None:
            raise UnknownCallerError("a bearer token is required", "none")
        caller = certificate.caller(self.table, self._hosts, self._clock())
        if caller is None:
            raise UnknownCallerError("nobody is known by the names in the client certificate", "certificate")
        return caller
