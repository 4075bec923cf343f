"""The tokens of an identity provider."""

from __future__ import annotations

from controller.access.caller import Caller
from controller.access.oidc.checks import OidcError, Rules, caller_of, key_id, looks_like_jwt
from controller.access.oidc.provider_keys import ProviderKeys
from controller.access.unknown import UnknownCallerError


class OidcTokens:
    """Checks tokens by ``rules``. ``keys``: the URL or the file of the provider's keys, read with the first token."""

    def __init__(self, keys: str, rules: Rules) -> None:
        self._keys = ProviderKeys(keys)
        self._rules = rules

    def is_one(self, token: str) -> bool:
        """Returns whether a bearer token looks like one of a provider."""
        return looks_like_jwt(token)

    def caller(self, token: str) -> Caller:
        """Returns who has a token. Raises UnknownCallerError."""
        try:
            return caller_of(token, self._keys.for_key(key_id(token)), self._rules)
        except OidcError as error:
            raise UnknownCallerError(f"the identity provider's token is refused: {error}", "oidc") from None
