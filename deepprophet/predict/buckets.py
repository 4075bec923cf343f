"""Gradient buckets as PyTorch's DistributedDataParallel cuts them once it has seen in which order gradients come. Pure.

[known] (Li and others, VLDB 2020) A bucket is closed by the parameter that brings it to its limit: 1 MB for the
first, so that something is on the wire early, 25 MB for the others. Types of numbers have buckets of their own.
Buckets are sent in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deepprophet.graph.graph import Graph, Parameter

FIRST_BYTES = 2**20
LIMIT_BYTES = 25 * 2**20


@dataclass(frozen=True, slots=True)
class Bucket:
    """Gradients that are sent as one. ``ready``: the operator after which the last of them is whole."""

    parameters: tuple[str, ...]
    bytes: int
    ready: int


def buckets(graph: Graph, *, first: int = FIRST_BYTES, limit: int = LIMIT_BYTES) -> list[Bucket]:
    """The buckets of a graph's gradients, in the order in which they are sent."""
    coming = sorted(
        (parameter for parameter in graph.parameters if parameter.ready is not None), key=lambda item: item.ready or 0
    )
    open_now: dict[str, list[Parameter]] = {}
    limits: dict[str, int] = {}
    closed: list[list[Parameter]] = []
    for parameter in coming:
        group = open_now.setdefault(parameter.dtype, [])
        group.append(parameter)
        if _bytes(group) >= limits.setdefault(parameter.dtype, first):
            closed.append(open_now.pop(parameter.dtype))
            limits[parameter.dtype] = limit
    closed += list(open_now.values())
    return [
        Bucket(tuple(p.name for p in group), _bytes(group), max(p.ready for p in group if p.ready is not None))
        for group in closed
    ]


def _bytes(group: Sequence[Parameter]) -> int:
    return sum(parameter.bytes for parameter in group)
