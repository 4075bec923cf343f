"""Tokens of an identity provider, signed by real keys: the good ones, and the known attacks."""

from __future__ import annotations

import hashlib
import hmac
import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from controller.access.caller import Role
from controller.access.oidc.checks import MAX_CHARACTERS, OidcError, Rules, caller_of, key_id, looks_like_jwt
from controller.access.oidc.key_set import KeySet, KeySetError
from tests.support.controller.tls.signer import (
    AUDIENCE,
    ISSUER,
    by_hand,
    claims,
    jwk,
    key_set,
    public_pem,
    rsa_key,
    signed,
)

RULES = Rules(
    issuer=ISSUER,
    audience=AUDIENCE,
    role_claim="roles",
    roles={"trainyard-admin": "operator", "trainyard-read": "viewer", "student": "tenant"},
    user_claim="sub",
)
KEY, STRANGERS = rsa_key(), rsa_key()
CURVE, EDWARDS = ec.generate_private_key(ec.SECP256R1()), ed25519.Ed25519PrivateKey.generate()
KEYS = KeySet.of(key_set(jwk(KEY, "k1"), jwk(CURVE, "k2"), jwk(EDWARDS, "k3")))


def refused(token: str, keys: KeySet = KEYS, rules: Rules = RULES) -> str:
    with pytest.raises(OidcError) as caught:
        caller_of(token, keys, rules)
    assert token not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("key", "algorithm", "kid"),
    [
        (KEY, "RS256", "k1"),
        (KEY, "RS512", "k1"),
        (KEY, "PS256", "k1"),
        (CURVE, "ES256", "k2"),
        (EDWARDS, "EdDSA", "k3"),
    ],
)
def test_a_good_token(key: Any, algorithm: str, kid: str) -> None:
    token = signed(key, algorithm, kid)
    assert looks_like_jwt(token)
    assert key_id(token) == kid
    caller = caller_of(token, KEYS, RULES)
    assert (caller.name, caller.role, caller.proof) == ("ann", Role.OPERATOR, "oidc")
    assert caller_of(signed(key, algorithm, None), KEYS, RULES).name == "ann", "one key of its kind needs no id"


def test_a_tenant_has_the_jobs_of_its_own_user() -> None:
    caller = caller_of(signed(KEY, roles="student"), KEYS, RULES)
    assert caller.role is Role.TENANT
    assert caller.tenancy is not None and caller.tenancy.users == ("ann",)


def test_of_several_roles_the_first_in_the_settings_counts() -> None:
    assert caller_of(signed(KEY, roles=["student", "trainyard-read"]), KEYS, RULES).role is Role.VIEWER


@pytest.mark.parametrize(
    ("claim", "changes"),
    [
        ("realm_access.roles", {"realm_access": {"roles": ["trainyard-read"]}}),
        ("https://example.org/role", {"https://example.org/role": "trainyard-read"}),
    ],
)
def test_the_role_may_be_in_a_nested_claim(claim: str, changes: dict[str, Any]) -> None:
    rules = Rules(ISSUER, AUDIENCE, claim, RULES.roles, "sub")
    assert caller_of(signed(KEY, **changes), KEYS, rules).role is Role.VIEWER
    assert "no value that api.oidc.roles names" in refused(signed(KEY), rules=rules)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"exp": int(time.time()) - 60}, "it has expired"),
        ({"exp": None}, "not valid"),
        ({"nbf": int(time.time()) + 3600}, "not valid"),
        ({"iss": "https://evil.example.org"}, "its issuer (iss) is not api.oidc.issuer"),
        ({"iss": ISSUER + "/"}, "its issuer"),
        ({"iss": None}, "not valid"),
        ({"aud": "another-service"}, "it is for another audience"),
        ({"aud": None}, "not valid"),
        ({"sub": None}, "not valid"),
        ({"sub": "a\nb"}, "its claim sub is no name"),
        ({"roles": None}, "its claim roles has no value"),
        ({"roles": ["nobody"]}, "its claim roles has no value"),
        ({"roles": {"trainyard-admin": True}}, "its claim roles has no value"),
        ({"roles": [["trainyard-admin"], {"a": 1}]}, "its claim roles has no value"),
    ],
)
def test_what_a_token_must_say(changes: dict[str, Any], said: str) -> None:
    assert said in refused(signed(KEY, **changes))


def test_a_token_without_a_signature_is_refused() -> None:
    for algorithm in ("none", "None", "NONE"):
        token = by_hand({"alg": algorithm, "typ": "JWT", "kid": "k1"}, claims(), b"")
        assert "its algorithm (alg) is none of" in refused(token)


def test_the_public_key_is_no_secret_that_signs() -> None:
    pem = public_pem(KEY)
    header = {"alg": "HS256", "typ": "JWT", "kid": "k1"}
    signing_input = by_hand(header, claims(), b"").rpartition(".")[0]
    signature = hmac.new(pem, signing_input.encode(), hashlib.sha256).digest()
    assert "its algorithm (alg) is none of" in refused(by_hand(header, claims(), signature))


def test_another_keys_signature_is_refused() -> None:
    assert "InvalidSignatureError" in refused(signed(STRANGERS))
    assert "no key of the provider" in refused(signed(STRANGERS, kid="k9"))
    assert "no key of the provider" in refused(signed(KEY, kid="k2")), "of another kind than that key"


def test_changed_claims_are_refused() -> None:
    head, _, signature = signed(KEY, roles="student").split(".")
    body = by_hand({}, claims(), b"").split(".")[1]
    assert "InvalidSignatureError" in refused(f"{head}.{body}.{signature}")


def test_a_key_that_the_token_brings_along_is_not_used() -> None:
    token = jwt.encode(claims(), STRANGERS, "RS256", headers={"kid": "k1", "jwk": jwk(STRANGERS, "k1")})
    assert "InvalidSignatureError" in refused(token)


@pytest.mark.parametrize(
    "token", ["x", "a.b.c", "eyJ.eyJ.x", "eyJhbGciOiJSUzI1NiJ9..", "eyJ" + "a" * MAX_CHARACTERS + ".b.c"]
)
def test_what_is_no_token_is_refused(token: str) -> None:
    refused(token)


def test_a_key_id_must_be_text() -> None:
    with pytest.raises(OidcError):
        key_id(by_hand({"alg": "RS256", "kid": 7}, claims(), b"x"))


def test_keys_that_may_not_sign_are_left_out() -> None:
    secret = {"kty": "oct", "k": "c2VjcmV0", "kid": "k1"}
    for_others = [jwk(KEY, "k1", key_ops=operations) for operations in (None, 5, "verify", ["sign"], {"verify": 1})]
    small = jwk(rsa_key(1024), "k1")
    for unusable in (secret, jwk(KEY, "k1", use="enc"), small, {"kty": "RSA", "kid": "k1"}, {}, *for_others):
        with pytest.raises(KeySetError, match="no key for signatures"):
            KeySet.of(key_set(unusable))
        keys = KeySet.of(key_set(unusable, jwk(CURVE, "k2")))
        assert not keys.has("k1") and keys.has("k2")
    for text in (b"", b"[]", b"{}", b'{"keys": 3}', b"\xff", b"[" * 100_000):
        with pytest.raises(KeySetError, match=r"no JSON Web Key Set|no key"):
            KeySet.of(text)


def test_a_key_is_for_its_own_algorithm_only() -> None:
    keys = KeySet.of(key_set(jwk(KEY, "k1", alg="RS512")))
    assert "no key of the provider" in refused(signed(KEY, "RS256"), keys)
    assert caller_of(signed(KEY, "RS512"), keys, RULES).name == "ann"
