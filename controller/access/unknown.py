"""The error for a caller whom nobody knows."""

from __future__ import annotations

from controller.access.caller import Proof


class UnknownCallerError(Exception):
    """Nobody is known by what was shown.

    ``proof`` is the kind of it, none where nothing was shown. The message says why, without any part of it.
    """

    def __init__(self, message: str, proof: Proof) -> None:
        super().__init__(message)
        self.proof = proof
