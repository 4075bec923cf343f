"""A model's layers as SaSP sees them: modules with trainable parameters of their own, each one flat piece of data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from sasp.core.errors import SaspError


@dataclass(frozen=True, slots=True)
class Layer:
    """One module's own parameters. What is exchanged of them is flat: all elements, then a flag a parameter.

    ``holders``: all modules that have one of them, that one first: they may be called in any order.
    """

    name: str
    holders: tuple[nn.Module, ...]
    parameters: tuple[nn.Parameter, ...]

    @property
    def elements(self) -> int:
        """Of all parameters."""
        return sum(parameter.numel() for parameter in self.parameters)

    @property
    def dtype(self) -> torch.dtype:
        """The parameters' own."""
        return self.parameters[0].dtype

    def flat_gradients(self, divisor: int) -> torch.Tensor:
        """All gradients divided by ``divisor``, and behind them 1 for each parameter that has one; they are taken away.

        Zeros stand for what the iteration did not use.
        """
        flat = torch.zeros(self.elements + len(self.parameters), dtype=self.dtype)
        at = 0
        for number, parameter in enumerate(self.parameters):
            if (gradient := parameter.grad) is not None:
                if gradient.is_sparse:
                    raise SaspError(f"layer {self.name} has sparse gradients; make it with sparse=False")
                part = flat[at : at + parameter.numel()]
                part.copy_(gradient.reshape(-1))
                flat[self.elements + number] = 1
            at += parameter.numel()
            parameter.grad = None
        return flat.div_(divisor) if divisor > 1 else flat

    def set_gradients(self, flat: torch.Tensor) -> None:
        """The opposite. What no rank used keeps no gradient, so that the optimiser leaves it alone."""
        at = 0
        for number, parameter in enumerate(self.parameters):
            used = bool(flat[self.elements + number] != 0)
            parameter.grad = None
            if used:
                parameter.grad = flat[at : at + parameter.numel()].view_as(parameter).to(parameter.device)
            at += parameter.numel()

    def flat_parameters(self) -> torch.Tensor:
        """A copy of all elements."""
        return torch.cat([parameter.detach().reshape(-1).cpu() for parameter in self.parameters])

    def set_parameters(self, start: int, values: torch.Tensor) -> None:
        """Copy ``values`` in, from element ``start`` on."""
        at = 0
        with torch.no_grad():
            for parameter in self.parameters:
                low, high = max(start, at), min(start + values.numel(), at + parameter.numel())
                if low < high:
                    parameter.view(-1)[low - at : high - at].copy_(values[low - start : high - start])
                at += parameter.numel()


def find_layers(model: nn.Module, trained: Iterable[nn.Parameter]) -> tuple[Layer, ...]:
    """The layers that hold ``trained`` parameters, in the order of the model. Raises SaspError.

    A parameter that several modules share belongs to the first.
    """
    wanted = {id(parameter) for parameter in trained if parameter.requires_grad}
    holders: dict[int, list[nn.Module]] = {}
    for module in model.modules():
        for parameter in module.parameters(recurse=False):
            holders.setdefault(id(parameter), []).append(module)
    layers: list[Layer] = []
    for name, module in model.named_modules():
        own = tuple(item for item in module.parameters(recurse=False) if id(item) in wanted)
        wanted -= {id(item) for item in own}
        if not own:
            continue
        where = name or type(module).__name__
        if len({item.dtype for item in own}) > 1:
            raise SaspError(f"layer {where} has parameters of several types; give all of a layer one type")
        if not own[0].is_floating_point():
            raise SaspError(f"layer {where} has parameters of type {own[0].dtype}; only real numbers can be exchanged")
        if any(not item.is_contiguous() for item in own):
            raise SaspError(f"layer {where} has a parameter that is not contiguous; call .contiguous() on its data")
        layers.append(Layer(where, tuple(dict.fromkeys(item for p in own for item in holders[id(p)])), own))
    if wanted:
        raise SaspError("the optimiser trains parameters that are not the model's; wrap the model that it was made for")
    if not layers:
        raise SaspError("the optimiser trains no parameter of the model")
    return tuple(layers)


def in_forward_order(layers: Sequence[Layer], called: Sequence[nn.Module]) -> tuple[int, ...]:
    """The layers by number, as a forward pass met their modules; those that it did not meet by the model's order.

    A layer that is not called itself (its owner uses the parameters) counts where it stands in the model, right before
    the layer that follows it there.
    """
    met: dict[int, int] = {}
    for place, module in enumerate(called):
        met.setdefault(id(module), place)
    keys, following = [], len(called)
    for number in range(len(layers) - 1, -1, -1):
        following = min((met[id(holder)] for holder in layers[number].holders if id(holder) in met), default=following)
        keys.append((following, number))
    return tuple(number for _place, number in sorted(keys))
