"""The token that the agent makes for itself. The controller gets its hash, and takes the token once it has approved.

So no token crosses the network before it counts, and nobody else who has the enrolment token can use it.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from pathlib import Path

from controller.documents.likely_secrets import TOKEN_PREFIX

RANDOM_BYTES = 24
_PRIVATE = 0o600
_MOST_BYTES = 256


class OwnTokenError(ValueError):
    """The token cannot be kept. The message says why, and what would be right."""


class OwnToken:
    """The token of host ``host`` in the folder ``folder``, which the agent's user alone may read."""

    def __init__(self, folder: Path, host: str) -> None:
        self.path = folder / f"{host}.token"

    def is_there(self) -> bool:
        """Returns whether a token was made before."""
        return self.path.is_symlink() or self.path.exists()

    def sha256(self) -> str:
        """Returns the SHA-256 of the token, in hexadecimal; makes a token where there is none. Raises OwnTokenError."""
        try:
            if not self.is_there():
                self._make()
            return hashlib.sha256(self._read()).hexdigest()
        except OSError as error:
            raise OwnTokenError(f"{self.path}: the host's token cannot be kept there: {error.strerror}") from error

    def _make(self) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        # Whole or not at all: an agent that ends in between must not leave an empty file.
        beside = self.path.with_suffix(f".{secrets.token_hex(4)}")
        with os.fdopen(os.open(beside, flags, _PRIVATE), "w") as file:
            file.write(f"{TOKEN_PREFIX}{secrets.token_urlsafe(RANDOM_BYTES)}\n")
            file.flush()
            os.fsync(file.fileno())
        beside.rename(self.path)

    def _read(self) -> bytes:
        descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
                raise OwnTokenError(
                    f"{self.path} must be a file of the agent's user that nobody else can read (mode 0600); remove it, "
                    "and the agent makes another, with which the host enrols anew"
                )
            token = file.read(_MOST_BYTES).strip()
        if not token.startswith(TOKEN_PREFIX.encode()):
            raise OwnTokenError(f"{self.path} holds no token; remove it, and the agent makes another")
        return token
