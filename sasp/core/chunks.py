"""Layers cut into chunks: the pieces that are sent, and between which a more urgent one may go first. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sasp.core.errors import SaspError

CHUNK_BYTES = 128 * 1024
"""Chunks have this size unless the caller says otherwise: an urgent chunk waits a tenth of a second at 10 Mbit/s."""

MIN_CHUNK_BYTES = 1024
"""Chunks must have at least this size: headers would cost too much with less."""


class Chunk(NamedTuple):
    """Part ``part`` of a layer: elements ``start`` to ``stop``. Layers and their parts count from 0, front first."""

    layer: int
    part: int
    start: int
    stop: int


def chunk_elements(sizes: Sequence[int], chunk_bytes: int, element_bytes: int, *, whole_layers: bool) -> int:
    """Return the size of the longest chunk in elements; ``whole_layers``: each layer is one chunk, as without SaSP."""
    return max(sizes) if whole_layers else max(1, chunk_bytes // element_bytes)


class Layout:
    """All chunks of a model by number: front layers first, in a layer from its beginning."""

    def __init__(self, sizes: Sequence[int], chunk_elements: int) -> None:
        """``sizes``: the elements of each layer, in the order in which the forward pass needs them."""
        if chunk_elements < 1:
            raise SaspError(f"a chunk of {chunk_elements} elements; it must have at least 1")
        if not sizes or min(sizes) < 1:
            raise SaspError(f"layers of {list(sizes)} elements; there must be a layer, and each must have elements")
        chunks: list[Chunk] = []
        self._first: list[int] = []
        for layer, size in enumerate(sizes):
            self._first.append(len(chunks))
            starts = range(0, size, chunk_elements)
            chunks += [Chunk(layer, i, at, min(at + chunk_elements, size)) for i, at in enumerate(starts)]
        self._first.append(len(chunks))
        self.chunks = tuple(chunks)
        self.sizes = tuple(sizes)

    def of(self, layer: int) -> range:
        """The numbers of a layer's chunks."""
        return range(self._first[layer], self._first[layer + 1])

    def __len__(self) -> int:
        return len(self.chunks)
