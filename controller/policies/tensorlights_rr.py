"""TensorLights-RR: priorities for the parameter servers of a host, rotated every 20 s so that all are treated alike.

``controller.policies.parts.tensorlights`` describes the rule, its source, and what is our own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from controller.model import Ordering, Snapshot
from controller.policies.base import DependsOn, Policy
from controller.policies.parts.options import HostName, Number
from controller.policies.parts.tensorlights import fan_out_order

_HOST, _ROTATE_SECONDS = HostName(), Number(1e-3)


class TensorLightsRr(Policy):
    """As tensorlights-one, and jobs whose models are of one size take turns."""

    name = "tensorlights-rr"
    reads_pairs = True
    order_depends_on = DependsOn.DECLARED

    def __init__(
        self,
        host: Annotated[
            str | None, _HOST, "The host whose jobs are ordered; null: every host that jobs fan out from."
        ] = None,
        rotate_seconds: Annotated[float, _ROTATE_SECONDS, "The seconds of a turn."] = 20.0,
    ) -> None:
        self.host = None if host is None else _HOST.check("host", host)
        self.rotate_seconds = _ROTATE_SECONDS.check("rotate_seconds", rotate_seconds)

    def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
        """Orders smaller models first; models of equal size take turns."""
        turn = int(snapshot.now // self.rotate_seconds)
        ordering = fan_out_order(self.name, snapshot, self.host, turn)
        return replace(ordering, until=(turn + 1) * self.rotate_seconds)
