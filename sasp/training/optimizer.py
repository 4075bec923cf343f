"""The user's optimiser, applied layer by layer when gradients arrive, behind the interface that training code knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from sasp.core.errors import SaspError
from sasp.training.hooks import Decoupled
from sasp.training.layers import Layer
from sasp.training.transport import Piece


class LayerSteps:
    """Steps of an optimiser on one layer alone, with the options of the iteration that the gradients are of."""

    def __init__(self, optimizer: Optimizer) -> None:
        if isinstance(optimizer, torch.optim.LBFGS):
            raise SaspError("LBFGS needs all gradients at once; use an optimiser that treats parameters one by one")
        self._optimizer = optimizer
        self._step = _without_hooks(optimizer)
        self._options: dict[int, list[dict[str, Any]]] = {}

    def note(self, iteration: int) -> None:
        """The options as they are now, after a scheduler or anybody else changed them, are those of ``iteration``."""
        self._options[iteration] = [
            {name: _copy(value) for name, value in group.items() if name != "params"}
            for group in self._optimizer.param_groups
        ]

    def apply(self, layer: Layer, pieces: Sequence[Piece]) -> None:
        """A step for each iteration's gradients."""
        for iteration, flat in pieces:
            layer.set_gradients(flat)
            with self._only(layer, iteration):
                self._step()
            for parameter in layer.parameters:
                parameter.grad = None

    def forget(self, before: int) -> None:
        """Iterations before this one are in all layers."""
        for iteration in [known for known in self._options if known < before]:
            del self._options[iteration]

    @contextmanager
    def _only(self, layer: Layer, iteration: int) -> Iterator[None]:
        own = {id(parameter) for parameter in layer.parameters}
        groups = self._optimizer.param_groups
        kept = [dict(group) for group in groups]
        for group, options in zip(groups, self._options[iteration], strict=True):
            group.update(options)
            group["params"] = [parameter for parameter in group["params"] if id(parameter) in own]
        try:
            yield
        finally:
            for group, before in zip(groups, kept, strict=True):
                group.update(before)


class DecoupledOptimizer(Optimizer):
    """Take it in the place of the optimiser that was wrapped: ``step`` ends the iteration and returns at once.

    Hooks are called once a ``step``, wherever they were registered: here, with the inner one, or with all optimisers.
    ``flush`` when the parameters are to be those of all iterations, ``close`` at the end of the training.
    """

    def __init__(self, inner: Optimizer, decoupled: Decoupled, steps: LayerSteps | None) -> None:
        self._inner = inner
        self._decoupled = decoupled
        self._steps = steps
        # Groups and state stay the inner one's, so the base class is made as a copy is: it adds what else it needs. The
        # registries of hooks are the inner one's too: who has registered something with either is called.
        hooks = {name: value for name, value in vars(inner).items() if name.endswith("_hooks")}
        super().__setstate__({"defaults": dict(inner.defaults), **hooks})

    @property
    def param_groups(self) -> Any:
        """The inner optimiser's, for schedulers."""
        return self._inner.param_groups

    @property
    def state(self) -> Any:
        """The inner optimiser's."""
        return self._inner.state

    @property
    def iterations(self) -> tuple[int, int]:
        """The two clocks: iterations computed, and iterations whose gradients are in all parameters here."""
        return self._decoupled.clocks.computed, self._decoupled.clocks.communicated

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """End the iteration. Raises SaspError where the exchange has failed."""
        # Schedulers that were made for the inner one look for this mark of theirs before they warn of a wrong order.
        vars(self._inner)["_opt_called"] = True
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if self._steps is not None:
            self._steps.note(self._decoupled.clocks.computed + 1)
        self._decoupled.end_iteration()
        if self._steps is not None:
            self._steps.forget(self._decoupled.clocks.communicated)
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """As ever; gradients that are on their way are not touched."""
        self._inner.zero_grad(set_to_none)

    def no_sync(self) -> AbstractContextManager[None]:
        """For gradient accumulation: around all backward passes of an iteration but the last."""
        return self._decoupled.no_sync()

    def flush(self) -> None:
        """Wait until every gradient so far is in the parameters; then they are the same on all workers."""
        self._decoupled.flush()

    def close(self) -> None:
        """Flush, and take the hooks away: the model is a plain one again."""
        self._decoupled.close()

    def __enter__(self) -> DecoupledOptimizer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_rest: object) -> None:
        if kind is None:
            self.close()

    def state_dict(self) -> dict[str, Any]:
        """The inner optimiser's, flushed."""
        self.flush()
        return dict(self._inner.state_dict())

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Into the inner one, after a flush."""
        self.flush()
        self._inner.load_state_dict(state_dict)

    def add_param_group(self, param_group: dict[str, Any]) -> None:  # noqa: ARG002 (the interface's)
        """Not possible: layers are cut when the model is wrapped."""
        raise SaspError("parameters cannot be added to a wrapped optimiser; close it, add them, and wrap again")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inner!r})"


def _without_hooks(optimizer: Optimizer) -> Callable[[], Any]:
    """Its ``step`` without the hooks that torch puts around it: they are of iterations, this is for a layer's part."""
    step: Any = type(optimizer).step
    return partial(step.__wrapped__ if getattr(step, "hooked", False) else step, optimizer)


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, torch.Tensor) else value


def learning_rate(optimizer: Optimizer) -> float:
    """That of the first group."""
    return float(optimizer.param_groups[0].get("lr", 0.0))


def trained_by(optimizer: Optimizer) -> list[nn.Parameter]:
    """All parameters of an optimiser."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]
