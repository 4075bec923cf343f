"""The tokens of the identity provider in the settings."""

from __future__ import annotations

from controller.access.caller import Caller
from controller.access.oidc.checks import OidcError, Rules, caller_of, key_id, looks_like_jwt
from controller.access.oidc.provider_keys import ProviderKeys
from controller.access.unknown import UnknownCallerError
from controller.config.sections import Oidc


class OidcTokens:
    """Checks tokens by the settings ``api.oidc``. The keys are read with the first token."""

    def __init__(self, settings: Oidc) -> None:
        self._keys = ProviderKeys(settings.keys)
        self._rules = Rules(
            issuer=settings.issuer,
            audience=settings.audience,
            role_claim=settings.role_claim,
            roles=settings.roles,
            user_claim=settings.user_claim,
        )

    def is_one(self, token: str) -> bool:
        """Returns whether a bearer token looks like one of a provider."""
        return looks_like_jwt(token)

    def caller(self, token: str) -> Caller:
        """Returns who has a token. Raises UnknownCallerError."""
        try:
            return caller_of(token, self._keys.for_key(key_id(token)), self._rules)
        except OidcError as error:
            raise UnknownCallerError(f"the identity provider's token is refused: {error}", "oidc") from None
