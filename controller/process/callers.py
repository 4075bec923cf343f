"""From the settings of the API to those who may call it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from controller.access.caller import Caller, Role
from controller.access.callers import Callers
from controller.access.tokens.file import TokensFile, TokensRead
from controller.config.sections import Api


def callers_of(api: Api, hosts: Collection[str], tell: Callable[[TokensRead], None]) -> Callers:
    """Returns who may call. ``hosts`` are the names of the hosts.

    ``tell`` is called when the tokens file was read again. Raises ConfigError where it is wrong now.
    """
    file = TokensFile(api.tokens_file, frozenset(hosts), tell=tell) if api.tokens_file is not None else None
    oidc = None
    if api.oidc is not None:
        # Only who uses a provider pays for the import.
        from controller.access.oidc.checks import Rules  # noqa: PLC0415
        from controller.access.oidc.provider import OidcTokens  # noqa: PLC0415

        rules = Rules(
            issuer=api.oidc.issuer,
            audience=api.oidc.audience,
            role_claim=api.oidc.role_claim,
            roles=api.oidc.roles,
            user_claim=api.oidc.user_claim,
        )
        oidc = OidcTokens(api.oidc.keys, rules)
    return Callers(hosts, is_open=not api.is_guarded, tokens=_tokens(api), file=file, oidc=oidc)


def _tokens(api: Api) -> Iterator[tuple[str, Caller]]:
    """Yields the tokens in the settings themselves, each with its owner."""
    if api.token is not None:
        yield api.token.get_secret_value(), Caller("operator", Role.OPERATOR)
    for host, token in api.host_tokens.items():
        yield token.get_secret_value(), Caller(host, Role.HOST, host=host)
