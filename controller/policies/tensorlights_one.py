"""TensorLights-One: fixed priorities for the parameter servers of a host, by launch order.

``controller.policies.parts.tensorlights`` describes the rule, its source, and what is our own.
"""

from __future__ import annotations

from typing import Annotated

from controller.model import Ordering, Snapshot
from controller.policies.base import DependsOn, Policy
from controller.policies.parts.options import HostName
from controller.policies.parts.tensorlights import fan_out_order

_HOST = HostName()


class TensorLightsOne(Policy):
    """Jobs that fan out from a host share seven bands there, smaller models first, then by launch."""

    name = "tensorlights-one"
    reads_pairs = True
    order_depends_on = DependsOn.DECLARED

    def __init__(
        self,
        host: Annotated[
            str | None, _HOST, "The host whose jobs are ordered; null: every host that jobs fan out from."
        ] = None,
    ) -> None:
        self.host = None if host is None else _HOST.check("host", host)

    def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
        """Orders smaller models first, then by launch."""
        return fan_out_order(self.name, snapshot, self.host, None)
