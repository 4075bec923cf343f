"""Chunks that one collective carries: small ones would cost as many messages as large ones.

[known] Tensor fusion: A. Sergeev and M. Del Balso, Horovod: fast and easy distributed deep learning in TensorFlow,
arXiv 1802.05799, 2018. Theirs are whole gradients; ours are what a round has agreed on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

import torch

from sasp.core.chunks import Chunk

GradientChunk = tuple[int, Chunk]
"""An iteration, and a chunk of its gradients."""


@dataclass(frozen=True, slots=True)
class Fused:
    """``tensor``: the numbers of all chunks, (elements,); ``copied``: the parts it is a copy of, none for a view."""

    chunks: tuple[GradientChunk, ...]
    tensor: torch.Tensor
    copied: tuple[torch.Tensor, ...]

    def unpack(self) -> None:
        """Put the numbers back where they come from."""
        at = 0
        for part in self.copied:
            part.copy_(self.tensor[at : at + len(part)])
            at += len(part)


def fuse(chunks: Sequence[GradientChunk], flat_of: Callable[[int, int], torch.Tensor]) -> list[Fused]:
    """Return what carries the chunks, in their order: one for each run of the same type.

    ``flat_of``: the gradients of a layer and an iteration, (elements,).
    """
    runs = groupby(chunks, lambda chunk: flat_of(chunk[1].layer, chunk[0]).dtype)
    return [_fused(tuple(run), flat_of) for _dtype, run in runs]


def _fused(chunks: tuple[GradientChunk, ...], flat_of: Callable[[int, int], torch.Tensor]) -> Fused:
    parts = [flat_of(layer, iteration)[start:stop] for layer, iteration, start, stop in _spans(chunks)]
    if len(parts) == 1:
        return Fused(chunks, parts[0], ())
    return Fused(chunks, torch.cat(parts), tuple(parts))


def _spans(chunks: Sequence[GradientChunk]) -> list[tuple[int, int, int, int]]:
    """Layers, iterations, starts and stops: chunks of a layer that follow each other are one, which needs no copy."""
    spans: list[tuple[int, int, int, int]] = []
    for iteration, chunk in chunks:
        start = chunk.start
        if spans and spans[-1][:2] == (chunk.layer, iteration) and spans[-1][3] == start:
            start = spans.pop()[2]
        spans.append((chunk.layer, iteration, start, chunk.stop))
    return spans
