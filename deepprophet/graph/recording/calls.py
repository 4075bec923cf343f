"""Calls of operators: what those of a kind have in common, and one in its place in an iteration. Needs PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch

from deepprophet.graph import families
from deepprophet.graph.graph import Phase
from deepprophet.graph.recording.dispatch_cache import Recipe
from deepprophet.graph.recording.values import tensor_spec
from deepprophet.graph.spec import Call


@dataclass(frozen=True, slots=True)
class CallFacts:
    """What calls of a kind have in common: the fields of an operator that follow from its name and its arguments.

    ``read``: the bytes of each input. ``recipe``: how its results are made again, where they can be; ``shares``: they
    are all in the first input's memory.
    """

    key: str
    family: str
    flops: float
    bytes: float
    read: tuple[int, ...]
    result_bytes: float
    recipe: Recipe | None = None
    shares: bool = False


class Recorded(NamedTuple):
    """A call of an operator, and where in the iteration it was."""

    facts: CallFacts
    phase: Phase
    module: str
    after: tuple[int, ...]
    recomputed: bool
    modules: int


def facts_of(call: Call, read: Sequence[tuple[int, int]], results: Sequence[torch.Tensor]) -> CallFacts:
    """Return what follows from a call, the storages that it reads with the bytes of each, and what it returns."""
    specs = [tensor_spec(tensor) for tensor in results]
    return CallFacts(
        call.key(), families.family(call), families.flops(call, specs), families.moved(call, specs),
        tuple(size for _, size in read), float(sum(spec.bytes for spec in specs)),
    )  # fmt: skip
