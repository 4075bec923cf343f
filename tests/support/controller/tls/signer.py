"""An identity provider with real keys: it signs tokens, and has a set of its public keys."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

ISSUER, AUDIENCE = "https://id.example.org/realms/lab", "trainyard"


def rsa_key(bits: int = 2048) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=bits)


def jwk(key: Any, kid: str | None, **more: Any) -> dict[str, Any]:
    """Returns the public half of a key as a set has it."""
    public = key.public_key()
    algorithm = {
        rsa.RSAPrivateKey: jwt.algorithms.RSAAlgorithm,
        ec.EllipticCurvePrivateKey: jwt.algorithms.ECAlgorithm,
        ed25519.Ed25519PrivateKey: jwt.algorithms.OKPAlgorithm,
    }
    (made,) = [found.to_jwk(public, as_dict=True) for kind, found in algorithm.items() if isinstance(key, kind)]
    return {name: value for name, value in made.items() if name != "key_ops"} | ({"kid": kid} if kid else {}) | more


def public_pem(key: Any) -> bytes:
    pem: bytes = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return pem


def claims(**changes: Any) -> dict[str, Any]:
    """Returns the claims of a good token; a change to None leaves one out."""
    now = int(time.time())
    good = {"iss": ISSUER, "aud": AUDIENCE, "exp": now + 3600, "iat": now, "sub": "ann", "roles": ["trainyard-admin"]}
    return {name: value for name, value in (good | changes).items() if value is not None}


def signed(key: Any, algorithm: str = "RS256", kid: str | None = "k1", **changes: Any) -> str:
    """Returns a token with ``claims(**changes)``."""
    return jwt.encode(claims(**changes), key, algorithm, headers={"kid": kid} if kid else None)


def by_hand(header: dict[str, Any], body: dict[str, Any], signature: bytes) -> str:
    """Returns a token of these parts, also of such as no library signs."""
    parts = (json.dumps(header).encode(), json.dumps(body).encode(), signature)
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def key_set(*keys: dict[str, Any]) -> bytes:
    return json.dumps({"keys": keys}).encode()
