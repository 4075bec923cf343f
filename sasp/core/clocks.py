"""The two clocks of a worker: how far it has computed, and how far each layer has been synchronised. Pure.

Computing may lead a layer's last finished synchronisation by at most the layer's lead. The rule is kept layer by layer:
a layer may compute in iteration i (from 1) when its own synchronisation of iteration i - 1 - lead is finished. So with
a lead of 0 results are synchronous, and yet the first layers compute while the last ones are still on the network.
"""

from __future__ import annotations

from collections.abc import Sequence

from sasp.core.errors import SaspError
from sasp.core.leads import Leads

FIRST = 0
"""Every clock begins at this value: no iteration is done."""


class Clocks:
    """The clocks of one worker with ``layers`` layers, all of which have the same ``lead`` until leads are set."""

    def __init__(self, layers: int, lead: int) -> None:
        if layers < 1:
            raise SaspError("there is nothing to synchronise: the model has no layer with trainable parameters")
        self._leads = Leads(layers, lead)
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
    def leads(self) -> tuple[int, ...]:
        """The iterations that computing may lead each layer's synchronisation, by layer."""
        return self._leads.now

    def set_leads(self, leads: Sequence[int]) -> None:
        """Let ``leads`` hold, by layer, from the next iteration on. Raises SaspError."""
        self._leads.change(leads, self._computed + 1)

    def due(self, layer: int) -> int:
        """The iteration that ``layer`` must have been synchronised for before it computes next."""
        return max(FIRST, self._computed - self._leads.now[layer])

    def may_compute(self, layer: int) -> bool:
        """Whether ``layer`` may take part in the next iteration's forward pass now."""
        return self._synchronised[layer] >= self.due(layer)

    def end_iteration(self) -> int:
        """Note that one more backward pass is done; return its iteration. Raises SaspError past the bound."""
        if late := [layer for layer in range(len(self._synchronised)) if not self.may_compute(layer)]:
            lead = self._leads.now[late[0]]
            raise SaspError(f"layer {late[0]} computed although its synchronisation is more than {lead} behind")
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
