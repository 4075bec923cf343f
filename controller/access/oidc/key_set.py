"""The public keys of an identity provider (JSON Web Key Set, RFC 7517). Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jwt

KINDS = ("RSA", "EC", "OKP")
"""Kinds of keys that are used. A symmetric one (oct) is a secret, and has no place in a public set."""
MIN_RSA_BITS = 2048
MAX_KEYS = 64


class KeySetError(ValueError):
    """A text that is no key set, or has no key that can be used; the message says which."""


@dataclass(frozen=True)
class _Key:
    kid: str | None
    kind: str
    algorithm: str | None
    public: Any


class KeySet:
    """The usable keys of a set."""

    def __init__(self, keys: tuple[_Key, ...] = ()) -> None:
        self._keys = keys

    @classmethod
    def of(cls, text: bytes) -> KeySet:
        """Returns the keys for signatures in a JSON text. Raises KeySetError.

        Keys of unknown kinds, for encryption, or too small are left out, as RFC 7517 asks for unknown ones.
        """
        try:
            found = json.loads(text)["keys"]
            listed = [one for one in found[:MAX_KEYS] if isinstance(one, dict)]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise KeySetError("it is no JSON Web Key Set: an object with a list of keys") from None
        keys = tuple(key for key in map(_usable, listed) if key is not None)
        if not keys:
            raise KeySetError(f"it has no key for signatures of the kinds {', '.join(KINDS)}")
        return cls(keys)

    def find(self, kid: str | None, kind: str, algorithm: str) -> Any | None:
        """Returns the public key for a signature, or None.

        ``kid`` is its id; None fits if only one key has the right kind. A key that names its algorithm is for no other.
        """
        fitting = [
            key
            for key in self._keys
            if key.kind == kind and key.algorithm in (None, algorithm) and (kid is None or key.kid == kid)
        ]
        return fitting[0].public if len(fitting) == 1 else None

    def has(self, kid: str | None) -> bool:
        """Returns whether a key has this id, or, for None, whether there is any key."""
        return any(kid is None or key.kid == kid for key in self._keys)


def _usable(key: Mapping[str, Any]) -> _Key | None:
    """Returns a key that signatures can be checked with, or None."""
    kid, algorithm, operations = key.get("kid"), key.get("alg"), key.get("key_ops", ["verify"])
    if key.get("kty") not in KINDS or key.get("use", "sig") != "sig":
        return None
    if not isinstance(operations, list) or "verify" not in operations:
        return None
    public_parts = {name: value for name, value in key.items() if name not in ("d", "p", "q", "dp", "dq", "qi")}
    try:
        public = jwt.PyJWK.from_dict(public_parts).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None
    if key["kty"] == "RSA" and public.key_size < MIN_RSA_BITS:
        return None
    return _Key(
        kid if isinstance(kid, str) else None, key["kty"], algorithm if isinstance(algorithm, str) else None, public
    )
