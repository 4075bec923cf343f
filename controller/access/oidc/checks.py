"""Checks bearer tokens of an OpenID Connect provider, as JWTs (RFC 7519, RFC 8725).

The checks are those of OpenID Connect Core 1.0, section 3.1.3.7, as far as a resource server has them: signature,
issuer, audience, time. Only asymmetric algorithms are accepted. So neither "none" nor an HMAC with the public key as
its secret passes, and a key is used only for the algorithms of its own kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jwt

from controller.access.caller import Caller, Role, Tenancy
from controller.access.oidc.key_set import KeySet

ALGORITHMS: Mapping[str, str] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384", "ES512"), "EC"),
    "EdDSA": "OKP",
}
"""Maps each accepted algorithm to the kind of key that it needs."""
LEEWAY_SECONDS = 10.0
"""Accept clocks that differ by this much."""
MAX_CHARACTERS = 16_384
MAX_NAME = 127


class OidcError(Exception):
    """A token that is not accepted; the message says why in words for the log, and shows nothing of the token."""


@dataclass(frozen=True)
class Rules:
    """What a token must say.

    ``roles`` maps values of the claim ``role_claim`` to roles; dots in its name lead into nested claims. Of several
    values the first in ``roles`` counts. ``user_claim`` is the claim that names the caller.
    """

    issuer: str
    audience: str
    role_claim: str
    roles: Mapping[str, str]
    user_claim: str


def looks_like_jwt(token: str) -> bool:
    """Returns whether a bearer token could be a signed JWT: three parts, of which the first is an object in base64."""
    return token.startswith("eyJ") and token.count(".") == 2


def caller_of(token: str, keys: KeySet, rules: Rules) -> Caller:
    """Returns who has a token. ``keys`` are the provider's. Raises OidcError."""
    if len(token) > MAX_CHARACTERS:
        raise OidcError(f"it is longer than {MAX_CHARACTERS} characters")
    algorithm, key = _chosen(token, keys)
    try:
        claims = jwt.decode(
            token,
            key,
            algorithms=[algorithm],
            audience=rules.audience,
            issuer=rules.issuer,
            leeway=LEEWAY_SECONDS,
            options={"require": ["exp", "iss", "aud", *([] if "." in rules.user_claim else [rules.user_claim])]},
        )
    except jwt.ExpiredSignatureError:
        raise OidcError("it has expired") from None
    except jwt.InvalidIssuerError:
        raise OidcError("its issuer (iss) is not api.oidc.issuer") from None
    except jwt.InvalidAudienceError:
        raise OidcError("it is for another audience (aud) than api.oidc.audience") from None
    except jwt.PyJWTError as error:
        raise OidcError(f"it is not valid ({type(error).__name__})") from None
    return _caller(claims, rules)


def key_id(token: str) -> str | None:
    """Returns the id of the key that a token names; None where it names none. Raises OidcError."""
    kid = _header(token).get("kid")
    if kid is not None and not isinstance(kid, str):
        raise OidcError("its key id (kid) is no text")
    return kid


def _chosen(token: str, keys: KeySet) -> tuple[str, Any]:
    """Returns the algorithm and the public key for a token. Raises OidcError."""
    algorithm = _header(token).get("alg")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise OidcError(f"its algorithm (alg) is none of: {', '.join(ALGORITHMS)}")
    found = keys.find(key_id(token), ALGORITHMS[algorithm], algorithm)
    if found is None:
        raise OidcError("no key of the provider fits its key id (kid) and algorithm (alg)")
    return algorithm, found


def _header(token: str) -> Mapping[str, Any]:
    try:
        return jwt.get_unverified_header(token)
    except jwt.PyJWTError:
        raise OidcError("it is no JWT") from None


def _caller(claims: Mapping[str, Any], rules: Rules) -> Caller:
    name = _claim(claims, rules.user_claim)
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or not name.isprintable():
        raise OidcError(f"its claim {rules.user_claim} is no name")
    given = _claim(claims, rules.role_claim)
    values = {given} if isinstance(given, str) else set(filter(_is_text, given)) if isinstance(given, list) else set()
    role = next((Role(role) for value, role in rules.roles.items() if value in values), None)
    if role is None:
        raise OidcError(f"its claim {rules.role_claim} has no value that api.oidc.roles names")
    tenancy = Tenancy((name,)) if role is Role.TENANT else None
    return Caller(name, role, tenancy=tenancy, proof="oidc")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    """Returns a claim; where none has this name, the nested one to which its dots lead; None where there is none."""
    if name in claims:
        return claims[name]
    value: Any = claims
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
