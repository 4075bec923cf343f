"""A model whose layers compute as soon as what they need has come: hooks on gradients and before forward passes.

The gradient hook hands a layer's gradients over and returns at once. The hook before a module's forward pass waits
until that module's layers are as fresh as the clocks ask for, and puts in what has come: parameters change there and
nowhere else, once an iteration, so a backward pass sees what its forward pass saw.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import nn

from sasp.core.clocks import Clocks
from sasp.core.errors import SaspError
from sasp.core.scheme import Sending
from sasp.training.layers import Layer, in_forward_order
from sasp.training.transport import GradientTransport, Piece

Absorb = Callable[[Layer, Sequence[Piece]], None]
"""Puts what has come for a layer into its parameters."""


class Decoupled:
    """The hooks of one model, and this worker's clocks."""

    def __init__(
        self,
        model: nn.Module,
        layers: Sequence[Layer],
        transport: GradientTransport,
        absorb: Absorb,
        *,
        lead: int,
        sending: Sending,
        learning_rate: Callable[[], float],
    ) -> None:
        self._model = model
        self._transport = transport
        self._absorb = absorb
        self._sending = sending
        self._learning_rate = learning_rate
        self._layers = tuple(layers)
        self.clocks = Clocks(len(self._layers), lead)
        self._called: list[nn.Module] | None = []
        self._needs: dict[int, tuple[int, ...]] = {}
        self._silent = False
        self._training = False
        self._touched = [0] * len(self._layers)
        self._place: dict[int, int] = {}
        self._missing: list[set[int]] = []
        self._sent: list[bool] = []
        self._set_order(range(len(self._layers)))
        self._handles: list[Any] = [
            parameter.register_post_accumulate_grad_hook(self._on_gradient)
            for layer in self._layers
            for parameter in layer.parameters
        ]
        for module in model.modules():
            # Before other people's hooks: weight normalisation makes its weight of our parameters in one.
            self._handles.append(module.register_forward_pre_hook(self._before_forward, prepend=True))
            self._handles.append(module.register_state_dict_pre_hook(lambda *_: self.flush()))
        self._handles.append(model.register_forward_hook(self._after_forward, always_call=True))

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Front first."""
        return self._layers

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """In it gradients add up here: for all backward passes of an iteration but the last."""
        before, self._silent = self._silent, True
        try:
            yield
        finally:
            self._silent = before

    def end_iteration(self) -> None:
        """The backward pass is done: send what is left. Without decoupling, wait for the answer. Raises SaspError."""
        self._settle_order()
        # Backward frees the last layer first.
        for layer in reversed(range(len(self._layers))):
            if not self._sent[layer]:
                self._send(layer)
        self.clocks.end_iteration()
        self._begin_iteration()
        if self._sending != "sasp":
            self.flush()

    def flush(self) -> None:
        """Wait until all that was computed is in the parameters; all workers' then are the same. Raises SaspError."""
        for layer in range(len(self._layers)):
            self._freshen(layer, self.clocks.computed)

    def close(self) -> None:
        """Flush, and leave the model as a plain one."""
        try:
            self.flush()
        finally:
            self.detach()

    def detach(self) -> None:
        """Take the hooks away, and end what moves the gradients."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._transport.close()

    def _on_gradient(self, parameter: torch.Tensor) -> None:
        if self._silent:
            return
        self._settle_order()
        layer = self._place[id(parameter)]
        if id(parameter) not in self._missing[layer]:
            raise SaspError(
                f"layer {self._layers[layer].name} has a second backward pass in one iteration; "
                "put all but the last one in `with optimizer.no_sync():`"
            )
        self._missing[layer].remove(id(parameter))
        if not self._missing[layer] and self._sending != "after":
            self._send(layer)

    def _send(self, layer: int) -> None:
        self._sent[layer] = True
        flat = self._layers[layer].flat_gradients(self._transport.divisor)
        self._transport.send(layer, flat, self._learning_rate())

    def _before_forward(self, module: nn.Module, _arguments: Any) -> None:
        if self._called is not None:
            self._called.append(module)
            return
        training = torch.is_grad_enabled()
        if module is self._model:
            self._training = training
            if not training:
                # Evaluation sees all that was computed; and may use parameters without calling their module.
                self.flush()
        # A part that is called without gradients amid a training pass is a part of it: checkpointing calls it again for
        # the backward pass, with the same parameters. By itself it is evaluated.
        due = self.clocks.due if training or self._training else self.clocks.computed
        for layer in self._needs.get(id(module), ()):
            if self._touched[layer] <= self.clocks.computed:
                self._freshen(layer, due)
                self._touched[layer] = self.clocks.computed + 1

    def _after_forward(self, *_: Any) -> None:
        self._training = False

    def _freshen(self, layer: int, iteration: int) -> None:
        """Let at least ``iteration`` be in the layer's parameters."""
        if self._touched[layer] > self.clocks.computed or self.clocks.synchronised(layer) == self.clocks.computed:
            return
        reached, pieces = self._transport.receive(layer, iteration, self.clocks.computed)
        if pieces:
            self._absorb(self._layers[layer], pieces)
        self.clocks.synchronise(layer, reached)

    def _settle_order(self) -> None:
        """Once, when the first forward pass has shown who calls whom."""
        if self._called is None:
            return
        called, self._called = self._called, None
        order = self._transport.agree_on_order(in_forward_order(self._layers, called))
        if sorted(order) != list(range(len(self._layers))):
            raise SaspError("the workers' models have different layers")
        self._set_order(order)
        self._needs = _needs(self._model, self._layers, {id(module) for module in called})
        self._transport.begin(self._layers)

    def _set_order(self, order: Iterable[int]) -> None:
        self._layers = tuple(self._layers[number] for number in order)
        self._place = {id(p): number for number, layer in enumerate(self._layers) for p in layer.parameters}
        self._begin_iteration()

    def _begin_iteration(self) -> None:
        self._missing = [{id(parameter) for parameter in layer.parameters} for layer in self._layers]
        self._sent = [False] * len(self._layers)


def _needs(model: nn.Module, layers: Sequence[Layer], called: set[int]) -> dict[int, tuple[int, ...]]:
    """The layers that are to be fresh before each module's forward pass: those that have parameters of its own, or of
    the modules below it that it uses without calling them."""
    held: dict[int, list[int]] = {}
    for number, layer in enumerate(layers):
        for holder in layer.holders:
            held.setdefault(id(holder), []).append(number)
    needs: dict[int, set[int]] = {}

    def visit(module: nn.Module, nearest: nn.Module) -> None:
        nearest = module if id(module) in called else nearest
        needs.setdefault(id(nearest), set()).update(held.get(id(module), ()))
        for child in module.children():
            visit(child, nearest)

    visit(model, model)
    return {module: tuple(sorted(numbers)) for module, numbers in needs.items()}
