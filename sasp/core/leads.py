"""How many iterations each layer may be late, which may change from one iteration to another. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from sasp.core.errors import SaspError


class Leads:
    """The iterations that computing may lead each layer's last finished synchronisation, by layer."""

    def __init__(self, layers: int, lead: int) -> None:
        if lead < 0:
            raise SaspError(f"staleness is {lead}; it must be a whole number of 0 or more")
        self._now = (lead,) * layers
        self._least = (0,) * layers
        self._since = 1

    @property
    def now(self) -> tuple[int, ...]:
        """The newest leads, by layer."""
        return self._now

    def change(self, leads: Sequence[int], since: int) -> None:
        """Let ``leads`` hold from iteration ``since`` on. Raises SaspError for other layers or a change of the past."""
        if len(leads) != len(self._now) or min(leads) < 0:
            raise SaspError(f"leads of {list(leads)}; there must be {len(self._now)} of 0 or more")
        if since < self._since:
            raise SaspError(f"leads change from iteration {since} on, after a change from iteration {self._since} on")
        if since > self._since:
            self._least = tuple(self.due(layer, since - 1) for layer in range(len(leads)))
        self._now, self._since = tuple(leads), since

    def due(self, layer: int, iteration: int) -> int:
        """The iteration whose end must see the gradients of ``iteration`` there; what is due first is sent first.

        Older gradients of a layer are never due later than newer ones, because they are sent in their order.
        ``iteration`` is not older than the last change.
        """
        return max(iteration + self._now[layer], self._least[layer])
