"""A model whose layers compute as soon as what they need has come: hooks on gradients and before forward passes.

The gradient hook hands a layer's gradients over and returns at once. The hook before a module's forward pass waits
until that module's layers are as fresh as the clocks ask for, and puts in what has come: parameters change there and
nowhere else, once an iteration, so a backward pass sees what its forward pass saw.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import nn
from torch._dynamo import OptimizedModule

from sasp.core.clocks import Clocks
from sasp.core.errors import SaspError
from sasp.core.scheme import Sending
from sasp.training.layers import Layer, in_forward_order
from sasp.training.partial import PartialStaleness
from sasp.training.transports.transport import GradientTransport
from sasp.training.updates import Updates


class Decoupled:
    """The hooks of one model, and this worker's clocks."""

    def __init__(
        self,
        model: nn.Module,
        layers: Sequence[Layer],
        transport: GradientTransport,
        updates: Updates,
        *,
        lead: int,
        sending: Sending,
        learning_rate: Callable[[], float],
        exact: bool = False,
        partial: bool = False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """``exact``: layers are as late as their leads let them be, even where newer gradients have come.

        ``partial``: only layers whose transfer does not fit beside the computing are late, at most by ``lead``, as
        measured by ``clock`` (s).
        """
        self._model = model
        self._transport = transport
        self._updates = updates
        self._exact = exact
        self._sending = sending
        self._learning_rate = learning_rate
        self._clock = clock
        self._layers = tuple(layers)
        self.clocks = Clocks(len(self._layers), 0 if partial else lead)
        self._lead = lead
        self._chooses = partial
        self._partial: PartialStaleness | None = None
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
        for module in _called_as_they_are(model):
            # Before other people's hooks: weight normalisation makes its weight of our parameters in one.
            self._handles.append(module.register_forward_pre_hook(self._before_forward, prepend=True))
        trained = {id(parameter) for layer in self._layers for parameter in layer.parameters}
        for module in model.modules():
            self._handles.append(module.register_state_dict_pre_hook(lambda *_: self.flush()))
            if trained.intersection(map(id, module.parameters())):
                self._handles.append(_register_before_load(module, self._before_load))
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
        for layer in range(len(self._layers)):
            if self._touched[layer] <= self.clocks.computed:
                # Its module was not called this time, so nothing has waited for it.
                self._receive_due(layer)
        self._updates.note(self.clocks.computed + 1, tuple(zip(self._layers, self.clocks.leads, strict=True)))
        # Backward frees the last layer first.
        for layer in reversed(range(len(self._layers))):
            if not self._sent[layer]:
                self._send(layer)
        self.clocks.end_iteration()
        self._begin_iteration()
        if self._sending != "sasp":
            self.flush()
        if (
            self._partial is not None
            and (leads := self._partial.after(self.clocks.computed, self._clock())) is not None
        ):
            self.set_leads(leads)
        self._updates.forget(self.clocks.communicated)

    def set_leads(self, leads: Sequence[int]) -> None:
        """Let layers be late by ``leads``, front first, from the next iteration on. Raises SaspError."""
        if max(leads, default=0) > self._lead:
            raise SaspError(f"leads of {list(leads)}; the staleness lets layers be late by {self._lead} at most")
        self.clocks.set_leads(leads)
        self._transport.set_leads(leads, self.clocks.computed + 1)

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
        if self._partial is not None:
            self._partial.stopwatch.ready(layer, self._clock())
        flat = self._layers[layer].flat_gradients(self._transport.divisor)
        self._updates.own(self._layers[layer], self.clocks.computed + 1, flat)
        self._transport.send(layer, flat, self._learning_rate())

    @torch.compiler.disable
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
        training = training or self._training
        for layer in self._needs.get(id(module), ()):
            if self._touched[layer] > self.clocks.computed:
                continue
            if training:
                self._prepare(layer)
            else:
                self._freshen(layer, self.clocks.computed)
            self._touched[layer] = self.clocks.computed + 1
            # Autocast keeps casts of parameters until its context ends, and these may have changed.
            torch.clear_autocast_cache()

    def _before_load(self, *_: Any) -> None:
        self._updates.before_load()
        # What is in flight is a step from the parameters before. A forward pass that has begun is given up.
        self._touched = [min(iteration, self.clocks.computed) for iteration in self._touched]
        self.flush()

    @torch.compiler.disable
    def _after_forward(self, *_: Any) -> None:
        self._training = False

    def _prepare(self, layer: int) -> None:
        """Let the layer be as fresh as its clocks ask for, before it computes."""
        now = self._clock()
        self._receive_due(layer)
        if self._partial is not None:
            self._partial.stopwatch.needed(layer, now, self._clock())
        pending = range(self.clocks.synchronised(layer) + 1, self.clocks.computed + 1)
        self._updates.look_ahead(self._layers[layer], pending)

    def _receive_due(self, layer: int) -> None:
        due = self.clocks.due(layer)
        # A flush may have brought in more than is due.
        self._freshen(layer, due, max(due, self.clocks.synchronised(layer)) if self._exact else None)

    def _freshen(self, layer: int, at_least: int, until: int | None = None) -> None:
        """Let at least iteration ``at_least``, and none after ``until``, be in the layer's parameters; None: any."""
        if self._touched[layer] > self.clocks.computed or self.clocks.synchronised(layer) == self.clocks.computed:
            return
        reached, pieces = self._transport.receive(layer, at_least, self.clocks.computed if until is None else until)
        if pieces:
            self._updates.absorb(self._layers[layer], pieces)
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
        if self._chooses:
            self._partial = PartialStaleness(self._lead, [layer.elements for layer in self._layers], self._transport)

    def _set_order(self, order: Iterable[int]) -> None:
        self._layers = tuple(self._layers[number] for number in order)
        self._place = {id(p): number for number, layer in enumerate(self._layers) for p in layer.parameters}
        self._begin_iteration()

    def _begin_iteration(self) -> None:
        self._missing = [{id(parameter) for parameter in layer.parameters} for layer in self._layers]
        self._sent = [False] * len(self._layers)


def _register_before_load(module: nn.Module, hook: Callable[..., None]) -> Any:
    """Let ``hook`` be called before ``load_state_dict``; PyTorch before 2.5 has it under another name alone."""
    public = getattr(module, "register_load_state_dict_pre_hook", None)
    return module._register_load_state_dict_pre_hook(hook) if public is None else public(hook)


def _called_as_they_are(model: nn.Module) -> Iterator[nn.Module]:
    """Modules that are called in Python. Those below a compiled one are not: their hooks would be compiled with it."""
    seen, left = set[int](), [model]
    while left:
        module = left.pop()
        if id(module) not in seen:
            seen.add(id(module))
            yield module
            left += [] if isinstance(module, OptimizedModule) else module.children()


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
