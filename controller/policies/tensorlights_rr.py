"""TensorLights-RR: priorities for the parameter servers of a host, rotated every 20 s so that all fare alike.

What it is, its source and what is ours: see ``controller.policies._tensorlights``.
"""

from __future__ import annotations

from dataclasses import replace

from controller.model import Ordering, Snapshot
from controller.policies._base import Policy
from controller.policies._options import number
from controller.policies._tensorlights import fan_out_order

_SHORTEST = 1e-3


class TensorLightsRr(Policy):
    """As TensorLights-One, and every ``rotate_seconds`` each job moves on by a band among those of its model's size."""

    name = "tensorlights-rr"
    reads_pairs = True

    def __init__(self, host: str | None = None, rotate_seconds: float = 20.0) -> None:
        if host is not None and not (isinstance(host, str) and host):
            raise ValueError(f"host: {host!r}; it must be the name of a host")
        self.host = host
        self.rotate_seconds = number("rotate_seconds", rotate_seconds, _SHORTEST)

    def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
        """Smaller models first, equals in turn."""
        turn = int(snapshot.now // self.rotate_seconds)
        ordering = fan_out_order(self.name, snapshot, self.host, turn)
        return replace(ordering, until=(turn + 1) * self.rotate_seconds)
