"""What was measured of one operator. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Measurement:
    """Seconds of one call: ``near`` with its inputs in the caches, ``far`` with none; ``low`` to ``high``, of near."""

    near: float
    far: float
    low: float
    high: float
