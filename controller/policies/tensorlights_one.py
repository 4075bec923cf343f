"""TensorLights-One: fixed priorities for the parameter servers of a host, by launch order.

What it is, its source and what is ours: see ``controller.policies._tensorlights``.
"""

from __future__ import annotations

from controller.model import Ordering, Snapshot
from controller.policies._base import Policy
from controller.policies._tensorlights import fan_out_order


class TensorLightsOne(Policy):
    """Seven bands for the jobs that fan out from ``host`` (None: from one, at each host); one more for all else."""

    name = "tensorlights-one"
    reads_pairs = True

    def __init__(self, host: str | None = None) -> None:
        if host is not None and not (isinstance(host, str) and host):
            raise ValueError(f"host: {host!r}; it must be the name of a host")
        self.host = host

    def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
        """Smaller models first, then by launch."""
        return fan_out_order(self.name, snapshot, self.host, None)
