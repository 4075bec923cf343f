"""From the settings of the API to those who may call it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from controller.access.caller import Caller, Role
from controller.access.callers import Callers, Enrolled
from controller.access.tokens.file import read_tokens
from controller.config.sections import Api, Oidc

if TYPE_CHECKING:
    from controller.access.oidc.provider import OidcTokens


def callers_of(
    api: Api, hosts: Collection[str], oidc: OidcTokens | None = None, *, enrolled: Enrolled | None = None
) -> Callers:
    """Returns who may call. ``hosts`` are the names of the hosts in the settings, and ``enrolled`` the other ones.

    ``oidc`` are the tokens of the identity provider; None makes them as the settings say. Raises ConfigError where the
    tokens file is wrong.
    """
    table = read_tokens(api.tokens_file, hosts) if api.tokens_file is not None else None
    return Callers(
        hosts,
        is_open=not api.is_guarded,
        tokens=_tokens(api),
        table=table,
        oidc=oidc or _oidc_tokens(api.oidc),
        enrolled=enrolled,
    )


def _oidc_tokens(settings: Oidc | None) -> OidcTokens | None:
    if settings is None:
        return None
    from controller.access.oidc.checks import Rules  # noqa: PLC0415 - it loads PyJWT, which only a provider needs
    from controller.access.oidc.provider import OidcTokens  # noqa: PLC0415 - it loads PyJWT, too

    rules = Rules(
        issuer=settings.issuer,
        audience=settings.audience,
        role_claim=settings.role_claim,
        roles=settings.roles,
        user_claim=settings.user_claim,
    )
    return OidcTokens(settings.keys, rules)


def _tokens(api: Api) -> Iterator[tuple[str, Caller]]:
    """Yields the tokens in the settings themselves, each with its owner."""
    if api.token is not None:
        yield api.token.get_secret_value(), Caller("operator", Role.OPERATOR)
    for host, token in api.host_tokens.items():
        yield token.get_secret_value(), Caller(host, Role.HOST, host=host)
