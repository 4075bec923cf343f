"""What stands in the place of the user's optimiser: the interface that training code knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from sasp.core.errors import SaspError
from sasp.training.hooks import Decoupled
from sasp.training.layers import Layer


class DecoupledOptimizer(Optimizer):
    """Take it in the place of the optimiser that was wrapped: ``step`` ends the iteration and returns at once.

    Hooks are called once a ``step``, wherever they were registered: here, with the inner one, or with all optimisers.
    ``flush`` when the parameters are to be those of all iterations, ``close`` at the end of the training.
    """

    def __init__(self, inner: Optimizer, decoupled: Decoupled) -> None:
        self._inner = inner
        self._decoupled = decoupled
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
    def _step_supports_amp_scaling(self) -> bool:
        """Refuses a GradScaler, whose ``step`` asks this first."""
        raise SaspError(
            "a GradScaler has to look at all gradients of an iteration before the first is applied, and these are on "
            "their way already; use autocast with bfloat16, which needs no scaler"
        )

    @property
    def iterations(self) -> tuple[int, int]:
        """The two clocks: iterations computed, and iterations whose gradients are in all parameters here."""
        return self._decoupled.clocks.computed, self._decoupled.clocks.communicated

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Front first, once the first iteration is done."""
        return self._decoupled.layers

    @property
    def leads(self) -> tuple[int, ...]:
        """By how many iterations each layer's gradients may be late, front first."""
        return self._decoupled.clocks.leads

    def set_leads(self, leads: Sequence[int]) -> None:
        """Let layers be late by ``leads``, front first, from the next iteration on; all ranks must set the same.

        None may be later than the staleness. ``partial=True`` does it by itself. Raises SaspError.
        """
        self._decoupled.set_leads(leads)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """End the iteration. Raises SaspError where the exchange has failed."""
        # Schedulers that were made for the inner one look for this mark of theirs before they warn of a wrong order.
        vars(self._inner)["_opt_called"] = True
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self._decoupled.end_iteration()
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


def learning_rate(optimizer: Optimizer) -> float:
    """That of the first group."""
    return float(optimizer.param_groups[0].get("lr", 0.0))


def trained_by(optimizer: Optimizer) -> list[nn.Parameter]:
    """All parameters of an optimiser."""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]
