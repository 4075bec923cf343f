"""Parameters ahead of the server's by the steps of this worker's own gradients in flight.

[known] Local prediction: SAPipe, Y. Chen et al., NeurIPS 2022, where each worker has the optimiser's state. [ours] Here
the server has it, and only it sees all gradients. So the worker keeps an optimiser of the same kind that takes the step
of each of its own gradients, once; of that only the change is used, until the server's answer is there.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch.optim import Optimizer

from sasp.core.staleness import PLAIN
from sasp.exchange import rules
from sasp.training.layer_steps import LayerSteps
from sasp.training.layers import Layer
from sasp.training.server_contents import LateLayer, ServerContents
from sasp.training.transports.transport import Piece


@dataclass(slots=True)
class _Own:
    """Of one layer, by iteration: gradients whose step was not taken yet, and the changes by those that were; flat."""

    gradients: dict[int, torch.Tensor] = field(default_factory=dict)
    changes: dict[int, torch.Tensor] = field(default_factory=dict)


class OwnStepsContents(ServerContents):
    """As ``ServerContents``; a layer computes ahead by this worker's own steps."""

    def __init__(self, optimizer: Optimizer, learning_rate: Callable[[], float], most: int) -> None:
        """``optimizer``: the worker's, whose state stays as it is; ``most``: no layer is later."""
        super().__init__(learning_rate, predicts=True)
        self._optimizer = optimizer
        self._twin = copy.copy(optimizer)
        # The server's optimiser begins anew, whatever steps this one has taken. Some kinds have a state before that.
        make = rules.optimizer_factory(*rules.describe(optimizer))
        self._twin.state = defaultdict(dict)
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                self._twin.state.update(make(parameter).state)
        self._steps = LayerSteps(self._twin, PLAIN, 1, most)
        self._own: dict[int, _Own] = {}
        self._noted = 0

    def note(self, iteration: int, leads: Sequence[tuple[Layer, int]] = ()) -> None:
        """Keep the options of ``iteration``."""
        super().note(iteration, leads)
        # Loading a state gives an optimiser other groups.
        self._twin.param_groups = self._optimizer.param_groups
        self._steps.note(iteration, leads)
        self._noted = iteration
        for layer, lead in leads:
            if not lead:
                # It computes with what the server has. Older steps would be none of now, once it is late again.
                self._own.pop(id(layer.parameters[0]), None)

    def forget(self, before: int) -> None:
        """Iterations before this one are in all layers."""
        super().forget(before)
        self._steps.forget(before)
        for own in self._own.values():
            for iteration in [known for known in own.changes if known < before]:
                del own.changes[iteration]

    def own(self, layer: Layer, iteration: int, flat: torch.Tensor) -> None:
        """Keep the gradients until the layer's backward pass is over, in which its parameters must not change."""
        self._of_own(layer).gradients[iteration] = flat.clone()

    def absorb(self, layer: Layer, pieces: Sequence[Piece]) -> None:
        """Copy what has come in."""
        self._take_steps(layer)
        super().absorb(layer, pieces)

    def _change(self, layer: Layer, late: LateLayer, at: slice, lacks: range) -> torch.Tensor | None:
        del late  # its last change is of no use here
        self._take_steps(layer)
        changes = self._of_own(layer).changes
        known = [changes[iteration][at] for iteration in lacks if iteration in changes]
        return torch.stack(known).sum(0) if known else None

    def _take_steps(self, layer: Layer) -> None:
        """Take the steps of new gradients, in their order; the parameters are afterwards as before."""
        own = self._of_own(layer)
        # A layer whose module was not called receives before its iteration is noted.
        for iteration in sorted(known for known in own.gradients if known <= self._noted):
            before = layer.flat_parameters()
            self._steps.take_step(layer, own.gradients.pop(iteration), iteration)
            own.changes[iteration] = layer.flat_parameters() - before
            layer.set_parameters(0, before)

    def _of_own(self, layer: Layer) -> _Own:
        return self._own.setdefault(id(layer.parameters[0]), _Own())
