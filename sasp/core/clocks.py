"""The two clocks of a worker: how far it has computed, and how far each layer has been synchronised. Pure.

Computing may lead the last finished synchronisation by at most ``lead`` iterations. The rule is kept layer by layer: a
layer may compute in iteration i (from 1) when its own synchronisation of iteration i - 1 - lead is finished. So with a
lead of 0 results are synchronous, and yet the first layers compute while the last ones are still on the network.
"""

from __future__ import annotations

from sasp.core.errors import SaspError

FIRST = 0
"""Every clock begins at this value: no iteration is done."""


class Clocks:
    """The clocks of one worker with ``layers`` layers."""

    def __init__(self, layers: int, lead: int) -> None:
        if layers < 1:
            raise SaspError("there is nothing to synchronise: the model has no layer with trainable parameters")
        if lead < 0:
            raise SaspError(f"staleness is {lead}; it must be a whole number of 0 or more")
        self.lead = lead
        self._computed = FIRST
        self._synchronised = [FIRST] * layers

    @property
    def computed(self) -> int:
        """The compute clock: iterations whose backward pass is done."""
        return self._computed

    @property
    def communicated(self) -> int:
        """The communication clock: iterations whose synchronisation is finished for all layers."""
        return min(self._synchronised)

    def synchronised(self, layer: int) -> int:
        """The last iteration whose synchronisation of ``layer`` is finished."""
        return self._synchronised[layer]

    @property
    def due(self) -> int:
        """The iteration that a layer must have been synchronised for before it computes next."""
        return max(FIRST, self._computed - self.lead)

    def may_compute(self, layer: int) -> bool:
        """Whether ``layer`` may take part in the next iteration's forward pass now."""
        return self._synchronised[layer] >= self.due

    def end_iteration(self) -> int:
        """Note that one more backward pass is done; return its iteration. Raises SaspError past the bound."""
        if late := [layer for layer in range(len(self._synchronised)) if not self.may_compute(layer)]:
            raise SaspError(f"layer {late[0]} computed although its synchronisation is more than {self.lead} behind")
        self._computed += 1
        return self._computed

    def synchronise(self, layer: int, iteration: int) -> None:
        """Note that ``layer`` is synchronised up to ``iteration``. Raises SaspError for an impossible iteration."""
        if not self._synchronised[layer] <= iteration <= self._computed + 1:
            raise SaspError(
                f"layer {layer} is said to be synchronised for iteration {iteration}, "
                f"after {self._synchronised[layer]} and with {self._computed} computed"
            )
        self._synchronised[layer] = iteration
