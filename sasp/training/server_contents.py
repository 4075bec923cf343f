"""Parameters as they come from a parameter server, chunk by chunk, and the prediction of those that come next.

[known] The last change of the parameters is repeated for each iteration in flight: linear weight prediction from
parameters, A. Kosson et al., Pipelined backpropagation at scale, MLSys 2021, arXiv 2003.11666. It needs no state of the
optimiser, which the server has. [ours] A change is scaled by the learning rate's change since.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from sasp.core.errors import SaspError
from sasp.training.layers import Layer
from sasp.training.transports.transport import Piece


@dataclass(slots=True)
class LateLayer:
    """What is kept of one layer. ``true``: its parameters, flat; ``update``: their last change an iteration;
    ``versions``: by the first element of a chunk the iteration that it is of, and its length."""

    true: torch.Tensor
    update: torch.Tensor
    versions: dict[int, tuple[int, int]] = field(default_factory=dict)


class ServerContents:
    """Puts what comes from the server into the layers; ``predicts``: for computing they are ahead of it.

    What a layer is ahead by is its last change; a subclass may know better.
    """

    def __init__(self, learning_rate: Callable[[], float], *, predicts: bool) -> None:
        self._learning_rate = learning_rate
        self._predicts = predicts
        self._rates: dict[int, float] = {}
        self._layers: dict[int, LateLayer] = {}

    def note(self, iteration: int, leads: Sequence[tuple[Layer, int]] = ()) -> None:
        """Keep the learning rate of ``iteration``."""
        del leads  # the server knows what it has sent
        self._rates[iteration] = self._learning_rate()

    def forget(self, before: int) -> None:
        """Iterations before this one are in all layers."""
        for iteration in [known for known in self._rates if known < before]:
            del self._rates[iteration]

    def own(self, layer: Layer, iteration: int, flat: torch.Tensor) -> None:
        """The server has the optimiser, so own gradients are of no use to repeat a change."""

    def absorb(self, layer: Layer, pieces: Sequence[Piece]) -> None:
        """Copy what has come in."""
        if not self._predicts:
            for piece in pieces:
                layer.set_parameters(piece.start, piece.values)
            return
        late = self._of(layer)
        for piece in pieces:
            at = slice(piece.start, piece.start + piece.values.numel())
            before, _length = late.versions.get(piece.start, (0, 0))
            late.update[at] = (piece.values - late.true[at]) / (piece.iteration - before)
            late.true[at] = piece.values
            late.versions[piece.start] = piece.iteration, piece.values.numel()
        layer.set_parameters(0, late.true)

    def look_ahead(self, layer: Layer, pending: range) -> None:
        """Put the parameters ahead of what has come, each chunk by what it lacks."""
        if not pending or not self._predicts:
            return
        late, ahead = self._of(layer), None
        for start, (version, length) in late.versions.items():
            at = slice(start, start + length)
            if (change := self._change(layer, late, at, range(version + 1, pending.stop))) is not None:
                ahead = late.true.clone() if ahead is None else ahead
                ahead[at].add_(change)
        if ahead is not None:
            layer.set_parameters(0, ahead)

    def before_load(self) -> None:
        """Raises SaspError: the server's parameters would come in their place."""
        raise SaspError(
            "the parameters of a running job are the server's, so what is loaded into a worker's model would be lost; "
            "load it into worker 0's before sasp.join"
        )

    def _change(self, layer: Layer, late: LateLayer, at: slice, lacks: range) -> torch.Tensor | None:
        """What the elements ``at`` will change by in the iterations that they lack; None: nothing is known."""
        del layer
        return late.update[at] * self._times(lacks) if lacks else None

    def _of(self, layer: Layer) -> LateLayer:
        key = id(layer.parameters[0])
        if key not in self._layers:
            true = layer.flat_parameters()
            self._layers[key] = LateLayer(true, torch.zeros_like(true))
        return self._layers[key]

    def _times(self, lacks: range) -> float:
        """How many of the change of the iteration before ``lacks`` the changes of these are."""
        rate = self._rates.get(lacks.start - 1, 0.0)
        if rate == 0:
            return len(lacks)
        return sum(self._rates[iteration] for iteration in lacks) / rate
