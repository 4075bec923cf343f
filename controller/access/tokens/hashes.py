"""Makes tokens, and their hashes for files. Pure, apart from the random numbers.

A hash is SHA-256 over a salt of 16 bytes and the token. A slow hash, as for passwords, would only make every request
slow: passwords need one because people choose them, so that guesses hit, and a token of 192 random bits cannot be
guessed at any speed. So only tokens that are as long as random ones are hashed. The salt keeps equal tokens from
looking equal.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

from controller.documents.likely_secrets import TOKEN_PREFIX

PREFIX = TOKEN_PREFIX
"""Begins each token that is made here, so that scanners for secrets can find one where it should not be."""
RANDOM_BYTES = 24
MIN_CHARACTERS = 22
"""A token that is hashed has at least so many characters: 128 random bits take 22 characters of base64."""
SALT_BYTES = 16
MARK_CHARACTERS = 12
_HASH = re.compile(rf"sha256:([0-9a-f]{{{2 * SALT_BYTES}}}):([0-9a-f]{{64}})")


class WeakTokenError(ValueError):
    """A token that cannot be hashed safely; the message says why, and does not show the token."""


def new_token() -> str:
    """Returns a new random token."""
    return PREFIX + secrets.token_urlsafe(RANDOM_BYTES)


def hashed(token: str, salt: bytes | None = None) -> str:
    """Returns the hash of a token, as files have it; ``salt`` of None takes a random one.

    Raises WeakTokenError for a token that is no printable ASCII without spaces, or is too short to be random.
    """
    if not token.isascii() or not token.isprintable() or " " in token:
        raise WeakTokenError("a token has printable ASCII characters only, and no spaces")
    if len(token) < MIN_CHARACTERS or len(set(token)) < MIN_CHARACTERS // 3:
        raise WeakTokenError(
            f"a token that is hashed is random and has at least {MIN_CHARACTERS} characters; "
            "trainyard token makes one, and so does: openssl rand -hex 16"
        )
    salt = secrets.token_bytes(SALT_BYTES) if salt is None else salt
    return f"sha256:{salt.hex()}:{_digest(salt, token.encode()).hex()}"


def is_made_here(text: str) -> bool:
    """Returns whether a text begins as the tokens that are made here, and is as long."""
    return text.startswith(PREFIX) and len(text) >= len(PREFIX) + MIN_CHARACTERS


class TokenHash:
    """The hash of a token, as a file has it. Raises ValueError for a text that is none, without showing the text."""

    def __init__(self, text: str) -> None:
        match = _HASH.fullmatch(text)
        if match is None:
            raise ValueError("it is no hash of a token; trainyard token makes one, and trainyard token --hash too")
        self._salt, self._hash = map(bytes.fromhex, match.groups())

    def is_of(self, token: bytes) -> bool:
        """Returns whether it is the hash of a token. The time does not depend on how much of the hash is equal."""
        return hmac.compare_digest(self._hash, _digest(self._salt, token))


def mark_of(text: str) -> str:
    """Returns by what a hash, as a file has it, can be told from others: the begin of a hash of it."""
    return hashlib.sha256(text.encode()).hexdigest()[:MARK_CHARACTERS]


def _digest(salt: bytes, token: bytes) -> bytes:
    return hashlib.sha256(salt + token).digest()
