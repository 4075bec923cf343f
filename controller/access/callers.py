"""Finds out who calls, by everything that the settings accept as a proof."""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from controller.access.caller import Caller, Role
from controller.access.client_certificates import ClientCertificate
from controller.access.tokens.entries import TokenTable
from controller.access.tokens.file import TokensFile
from controller.access.unknown import UnknownCallerError
from controller.config.sections import Api

if TYPE_CHECKING:
    from controller.access.oidc.provider import OidcTokens


class Callers:
    """The tokens of the settings, the tokens file, the identity provider and the authority of client certificates.

    ``hosts`` are the names of the hosts in the settings; ``clock`` is in seconds since the Unix epoch. Raises
    ConfigError where the tokens file is wrong.
    """

    def __init__(self, api: Api, hosts: Collection[str], clock: Callable[[], float] = time.time) -> None:
        self.is_open = not api.is_guarded
        """Whether nothing is asked for, so that whoever reaches the API is an operator."""
        self._hosts = frozenset(hosts)
        self._clock = clock
        self._set: list[tuple[bytes, Caller]] = []
        if api.token is not None:
            self._set.append((api.token.get_secret_value().encode(), Caller("operator", Role.OPERATOR)))
        for host, token in api.host_tokens.items():
            self._set.append((token.get_secret_value().encode(), Caller(host, Role.HOST, host=host)))
        self._file = TokensFile(api.tokens_file, self._hosts) if api.tokens_file is not None else None
        self._oidc: OidcTokens | None = None
        if api.oidc is not None:
            from controller.access.oidc.provider import OidcTokens  # noqa: PLC0415 - only who uses it pays for its import

            self._oidc = OidcTokens(api.oidc)

    def reload(self) -> bool:
        """Read the tokens file again. Returns whether it was right; if not, the tokens of before stay in force."""
        return self._file is None or self._file.reload()

    def by_token(self, token: str) -> Caller:
        """Returns who has a bearer token. Raises UnknownCallerError."""
        given = token.encode("utf-8", "replace")
        caller = None
        for known, owner in self._set:  # all of them, so that the time reveals nothing
            if hmac.compare_digest(known, given):
                caller = owner
        if caller is None and (table := self._table()) is not None:
            caller = table.of_token(given, self._clock())
        if caller is None and self._oidc is not None and self._oidc.is_one(token):
            return self._oidc.caller(token)
        if caller is None:
            raise UnknownCallerError("the token is not known here", "token")
        return caller

    def by_certificate(self, certificate: ClientCertificate | None) -> Caller:
        """Returns who has a client certificate. Raises UnknownCallerError."""
        if certificate is None:
            raise UnknownCallerError("a bearer token is required", "none")
        caller = certificate.caller(self._table(), self._hosts, self._clock())
        if caller is None:
            raise UnknownCallerError("nobody is known by the names in the client certificate", "certificate")
        return caller

    def _table(self) -> TokenTable | None:
        return self._file.table() if self._file is not None else None
