"""The user's optimiser, applied layer by layer when averaged gradients arrive: all-reduce's way to fresh parameters.

[known] Weight prediction: computing goes on with parameters ahead of those that are there. ``momentum`` repeats the
last update, which holds the optimiser's momentum and, for Adam, its second moment: SpecTrain, arXiv 1809.02839; XPipe,
arXiv 1911.04610; PipeOptim, arXiv 2312.00839. ``local`` takes the optimiser's steps with this worker's own gradients,
on a copy of its state: SAPipe, NeurIPS 2022; for plain SGD that is error feedback of what is in flight, S. Stich and
S. Karimireddy, arXiv 1909.05350. [ours] An update is scaled by the learning rate's change since.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import torch
from torch.optim import Optimizer

from sasp.core.staleness import PLAIN, StalenessOptions
from sasp.lateness.correction import Correction
from sasp.training.layers import Layer
from sasp.training.transports.transport import Piece


class _Version(NamedTuple):
    """A layer's parameters after a step, and that step at learning rate ``rate``; None: there was none yet."""

    parameters: torch.Tensor
    update: torch.Tensor | None = None
    rate: float = 0.0


@dataclass(slots=True)
class _Late:
    """What is kept of one layer. Tensors are flat; iterations count from 1.

    ``true``: its parameters while it computes ahead of them; ``last``: their last version; ``own``: this worker's
    gradients in flight, by iteration; ``versions``: those that gradients in flight were computed with.
    """

    correction: Correction
    true: torch.Tensor | None = None
    last: _Version | None = None
    own: dict[int, torch.Tensor] = field(default_factory=dict)
    versions: dict[int, _Version] = field(default_factory=dict)


class LayerSteps:
    """Steps of an optimiser on one layer alone, with the options of the iteration that the gradients are of."""

    def __init__(self, optimizer: Optimizer, late: StalenessOptions, divisor: int, most: int) -> None:
        """``divisor``: what own gradients were divided by before they are sent; ``most``: no layer is later."""
        self._optimizer = optimizer
        self._late = late
        self._divisor = divisor
        self._most = most
        self._step = _without_hooks(optimizer)
        self._options: dict[int, list[dict[str, Any]]] = {}
        self._leads: dict[int, dict[int, int]] = {}
        self._layers: dict[int, _Late] = {}

    def note(self, iteration: int, leads: Sequence[tuple[Layer, int]] = ()) -> None:
        """The options as they are now, after a scheduler or anybody else changed them, are those of ``iteration``."""
        self._leads[iteration] = {_key(layer): lead for layer, lead in leads}
        self._options[iteration] = [
            {name: _copy(value, copy.copy) for name, value in group.items() if name != "params"}
            for group in self._optimizer.param_groups
        ]

    def forget(self, before: int) -> None:
        """Iterations before this one are in all layers."""
        # Predictions need the rates of iterations that a late layer lacked.
        for iteration in [known for known in self._options if known < before - self._most]:
            del self._options[iteration], self._leads[iteration]

    def own(self, layer: Layer, iteration: int, flat: torch.Tensor) -> None:
        """Keep this worker's gradients where the layer's next pass may compute ahead with them."""
        if self._late.prediction == "local":
            self._of(layer).own[iteration] = flat * self._divisor

    def absorb(self, layer: Layer, pieces: Sequence[Piece]) -> None:
        """Take a step for each iteration's gradients."""
        state = self._of(layer)
        self._put_back(layer, state)
        for piece in pieces:
            state.own.pop(piece.iteration, None)
            self._absorb_one(layer, state, piece)

    def look_ahead(self, layer: Layer, pending: range) -> None:
        """Put in the parameters with which the layer computes although ``pending`` are in flight."""
        if not pending or self._late == PLAIN:
            return
        state = self._of(layer)
        self._put_back(layer, state)
        if self._late.prediction != "none":
            state.true = layer.flat_parameters()
        if self._late.prediction == "local":
            self._step_locally(layer, state, pending)
        elif self._late.prediction == "momentum" and state.last is not None:
            layer.set_parameters(0, self._ahead(state.last, pending))

    def before_load(self) -> None:
        """Other parameters may be loaded: steps are taken from those that are there."""

    def _of(self, layer: Layer) -> _Late:
        return self._layers.setdefault(_key(layer), _Late(Correction(self._late)))

    def _put_back(self, layer: Layer, state: _Late) -> None:
        if state.true is not None:
            layer.set_parameters(0, state.true)
            state.true = None

    def _absorb_one(self, layer: Layer, state: _Late, piece: Piece) -> None:
        if not self._watches(layer, piece.iteration):
            # An older update would be none of now, once the layer is late again.
            state.last = None
            self.take_step(layer, piece.values, piece.iteration)
            return
        before = layer.flat_parameters()
        delay, then = self._then(layer, state, piece.iteration, before)
        state.correction.compensate(piece.values[: layer.elements], before, then)
        self.take_step(layer, piece.values, piece.iteration, state.correction.rate_divisor(delay))
        after = layer.flat_parameters()
        if (scaled := state.correction.scaled(before, after, then)) is not None:
            layer.set_parameters(0, scaled)
            after = scaled
        state.last = _Version(after, after - before, self._rate(piece.iteration))
        if self._late.corrects:
            state.versions[piece.iteration] = state.last

    def _watches(self, layer: Layer, iteration: int) -> bool:
        """Whether a step must be compared with what was before it. A prediction is only for layers that are late."""
        if self._late.corrects:
            return True
        return self._late.prediction == "momentum" and self._lead(layer, iteration) > 0

    def _lead(self, layer: Layer, iteration: int) -> int:
        return self._leads[iteration].get(_key(layer), 0)

    def _then(self, layer: Layer, state: _Late, iteration: int, first: torch.Tensor) -> tuple[int, torch.Tensor | None]:
        """By how many iterations gradients are late, and with which parameters they were computed; None: those of now.

        What counts is how late the layer's lead lets them be, on all ranks the same, although a rank that was flushed
        has computed with newer parameters. ``first``: the parameters before any step, where none was taken yet.
        """
        if not self._late.corrects:
            return 0, None
        if not state.versions:
            state.versions[0] = _Version(first)
        version = max(0, iteration - 1 - self._lead(layer, iteration))
        for older in [known for known in state.versions if known < version]:
            del state.versions[older]
        lacks = range(version + 1, iteration)
        if not lacks or version not in state.versions:
            return 0, None
        then = state.versions[version]
        return len(lacks), self._ahead(then, lacks) if self._late.prediction == "momentum" else then.parameters

    def _ahead(self, version: _Version, lacks: range) -> torch.Tensor:
        """The parameters with the version's update repeated for each of the iterations ``lacks``."""
        if version.update is None:
            return version.parameters
        return version.parameters.add(version.update, alpha=self._times(version.rate, lacks))

    def take_step(self, layer: Layer, flat: torch.Tensor, iteration: int, rate_divisor: int = 1) -> None:
        """Take the step of the gradients ``flat``, with the options of their iteration."""
        layer.set_gradients(flat)
        with self._only(layer, iteration, rate_divisor):
            self._step()
        for parameter in layer.parameters:
            parameter.grad = None

    def _step_locally(self, layer: Layer, state: _Late, pending: range) -> None:
        """Take the steps of this worker's own gradients, and leave the optimiser's state as it was."""
        with self._kept_state(layer):
            for iteration in pending:
                if (flat := state.own.get(iteration)) is not None:
                    self.take_step(layer, flat, iteration)

    @contextmanager
    def _kept_state(self, layer: Layer) -> Iterator[None]:
        """What the optimiser knows of the layer is afterwards as it was before."""
        known = self._optimizer.state
        kept = {
            p: {name: _copy(value, copy.deepcopy) for name, value in known[p].items()}
            for p in layer.parameters
            if p in known
        }
        try:
            yield
        finally:
            for parameter in layer.parameters:
                known.pop(parameter, None)
            known.update(kept)

    def _times(self, rate: float, pending: range) -> float:
        """How many of an update at ``rate`` the updates of the iterations ``pending`` are."""
        if rate == 0:
            return len(pending)
        return sum(self._rate(iteration) for iteration in pending) / rate

    def _rate(self, iteration: int) -> float:
        return float(self._options[iteration][0].get("lr", 0.0))

    @contextmanager
    def _only(self, layer: Layer, iteration: int, rate_divisor: int) -> Iterator[None]:
        own = {id(parameter) for parameter in layer.parameters}
        groups = self._optimizer.param_groups
        kept = [dict(group) for group in groups]
        for group, options in zip(groups, self._options[iteration], strict=True):
            group.update(options)
            if rate_divisor > 1:
                group["lr"] = group["lr"] / rate_divisor
            group["params"] = [parameter for parameter in group["params"] if id(parameter) in own]
        try:
            yield
        finally:
            for group, before in zip(groups, kept, strict=True):
                group.update(before)


class HalfSteps(LayerSteps):
    """Two half batches make a step: odd iterations are the first halves, even ones the second.

    [known] ACCO, A. Nabli et al., arXiv 2406.02613: while one half's gradients are on their way the other half is
    computed. The first half gives an estimate of the step, with which the next first half is computed; both together
    give the step itself, so no gradient is late.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        super().__init__(optimizer, PLAIN, 1, 1)
        self._first: dict[int, torch.Tensor] = {}

    def _absorb_one(self, layer: Layer, state: _Late, piece: Piece) -> None:
        self._put_back(layer, state)
        key = _key(layer)
        if piece.iteration % 2 == 0:
            self.take_step(layer, piece.values.add_(self._first.pop(key)).div_(2), piece.iteration)
            return
        self._first[key] = piece.values.clone()
        state.true = layer.flat_parameters()
        with self._kept_state(layer):
            self.take_step(layer, piece.values, piece.iteration)


def _key(layer: Layer) -> int:
    # A layer's first parameter is its own alone.
    return id(layer.parameters[0])


def _without_hooks(optimizer: Optimizer) -> Callable[[], Any]:
    """Its ``step`` without the hooks that torch puts around it: they are of iterations, this is for a layer's part."""
    step: Any = type(optimizer).step
    return partial(step.__wrapped__ if getattr(step, "hooked", False) else step, optimizer)


def _copy(value: Any, other: Callable[[Any], Any]) -> Any:
    """A tensor's copy; ``other`` copies what is none."""
    return value.clone() if isinstance(value, torch.Tensor) else other(value)
