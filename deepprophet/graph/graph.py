"""An iteration as a graph: operators in the order in which they run, and when each parameter's gradient is whole.
Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Phase = Literal["forward", "backward", "optimizer"]
PHASES: tuple[Phase, ...] = ("forward", "backward", "optimizer")


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator call. ``key`` names it with its shapes; ``after``: the positions of those whose results it uses.

    ``flops`` are multiplications and additions, ``bytes`` what it reads and writes; ``far_share`` of what it reads is
    no longer in the caches, by how much was touched since; ``fresh_bytes`` of what it writes are on pages that the
    system has to give anew. ``module`` is the part of the model that it belongs to. ``result_bytes`` are those of its
    results. ``recomputed``: it is of the forward pass, and runs again in the backward pass. Before it so many
    ``modules`` were called, and after it so many gradients are whole, which are put in their place (``gradients``).
    """

    key: str
    family: str
    phase: Phase
    flops: float
    bytes: float
    far_share: float = 0.0
    fresh_bytes: float = 0.0
    module: str = ""
    after: tuple[int, ...] = ()
    result_bytes: float = 0.0
    recomputed: bool = False
    modules: int = 0
    gradients: int = 0

    @property
    def called_in(self) -> Phase:
        """The phase in which calls cost as much as this one does: what runs again is called by the model's code."""
        return "forward" if self.recomputed else self.phase


@dataclass(frozen=True, slots=True)
class Reduction:
    """Bytes that ranks which compute a layer together add up after the operator at a place."""

    place: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Parameter:
    """A trained tensor. ``ready``: the position of the operator that completes its gradient; None: it gets none."""

    name: str
    bytes: int
    dtype: str
    ready: int | None


@dataclass(frozen=True, slots=True)
class Graph:
    """All of one iteration on one worker. ``buffer_bytes``: of what is not trained, a number for each type of
    number.

    An iteration of several ``micro_batches`` has the operators of the first one, and from the place ``later`` on those
    of each later one, which add to the gradients that are there. ``notes``: what a reader of a prediction must know.
    """

    operators: tuple[Operator, ...]
    parameters: tuple[Parameter, ...]
    buffer_bytes: tuple[int, ...]
    batch_size: int
    dtype: str
    later: int = 0
    micro_batches: int = 1
    reductions: tuple[Reduction, ...] = ()
    notes: tuple[str, ...] = ()

    def times(self) -> list[int]:
        """How often each operator runs in an iteration."""
        if self.micro_batches == 1:
            return [1] * len(self.operators)
        return [
            1 if place < self.later or operator.phase == "optimizer" else self.micro_batches - 1
            for place, operator in enumerate(self.operators)
        ]

    @property
    def gradient_bytes(self) -> int:
        """What the workers have to agree on, once an iteration."""
        return sum(parameter.bytes for parameter in self.parameters if parameter.ready is not None)

    def between(self, phase: Phase) -> tuple[int, int]:
        """The positions of a phase's operators: first, and one after the last."""
        places = [place for place, operator in enumerate(self.operators) if operator.phase == phase]
        return (places[0], places[-1] + 1) if places else (0, 0)
