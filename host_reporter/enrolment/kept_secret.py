"""Keeps what a host announces itself with beside its token, so that it is found again after its cable was changed."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

_SECRET = re.compile(r"[0-9a-f]{32}")
_PRIVATE = 0o600
_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class KeptSecret:
    """The secret of host ``host`` in the folder ``folder``, which the agent's user alone may read."""

    def __init__(self, folder: Path, host: str) -> None:
        self.path = folder / f"{host}.announcement"

    def read(self) -> str | None:
        """Returns the secret; None where there is none that can be used."""
        try:
            with os.fdopen(os.open(self.path, os.O_RDONLY | _FLAGS), "rb") as file:
                text = file.read(64).decode(errors="replace").strip()
        except OSError:
            return None
        return text if _SECRET.fullmatch(text) else None

    def write(self, secret: str) -> None:
        """Keep a secret. Raises OSError."""
        if secret == self.read():
            return
        # Whole or not at all: an agent that ends in between must not leave half of it.
        beside = self.path.with_suffix(f".{secrets.token_hex(4)}")
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, _PRIVATE), "w") as file:
            file.write(f"{secret}\n")
        beside.rename(self.path)
