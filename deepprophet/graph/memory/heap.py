"""How much memory of an iteration the system has to give anew, page by page. Pure.

PyTorch takes a tensor's memory from glibc's malloc, and an iteration gives back what it took. Most of it is kept and
comes again; but what was mapped by itself is unmapped, and the end of the heap is cut off where much of it is free.
What is taken there afterwards are new pages, which the system clears and maps one by one at the first touch: of a model
with large gradients and little to compute that is a large part of an iteration.

[known] The rules are those of glibc's malloc (malloc/malloc.c of 2.36; mallopt(3)): free neighbours are joined, the
smallest free chunk that is large enough is taken, else the heap grows, or from ``mmap_threshold`` on the request is
mapped; the threshold grows with what is unmapped; small chunks are put aside for the next request of their size. [ours]
Tensors are played, each with the two small objects that describe it; what else a process has in its heap is not
known, and may keep its end from being cut off, and what a library takes for itself is not seen. So the calibration
counts the new pages of its own iterations, which says what one costs; and of those that are played a share counts that
was learned from models in real processes (``costs.whole.HAPPENS``).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

PAGE_BYTES = 4096
HEADER_BYTES = 16 + 64
"""A chunk takes this much for its header and its alignment to 64 bytes."""

FIRST_THRESHOLD_BYTES = 0.9 * 2**20
"""Where mapping begins once PyTorch is imported: glibc begins with 128 KiB, and the import unmaps blocks of so many
bytes (measured)."""

MAX_THRESHOLD_BYTES = 32 * 2**20
PAD_BYTES = 128 * 1024
"""The heap grows by this much more than requested, and keeps this much of a free end."""

LOOK_BYTES = 64 * 1024
"""The end of the heap is checked when a chunk of at least this size becomes free."""

OBJECT_BYTES = (208, 112)
"""The C++ objects of a tensor and of its storage have these sizes."""

MAX_CACHED_CHUNKS = 7
"""So many free small chunks of one size are kept for the next request of that size, and not joined."""

ROUNDS, WARM_ROUNDS = 6, 2
"""Iterations that are played, and of them those that do not count."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """Memory of one tensor: ``size`` bytes, taken by the operator at ``born``, given back before the one at ``died``.

    ``died`` of None: with the next iteration's beginning, as gradients are.
    """

    size: int
    born: int
    died: int | None


def fresh_bytes(allocations: Sequence[Allocation], count: int) -> list[float]:
    """For each of ``count`` operators the bytes of new pages that it is the first to touch, a mean over iterations.

    Without tensors over 32 MiB: these are mapped whenever the operator is called, alone too.
    """
    taken: list[list[int]] = [[] for _ in range(count)]
    given: list[list[int]] = [[] for _ in range(count + 1)]
    left = []
    for number, allocation in enumerate(allocations):
        taken[allocation.born].append(number)
        if allocation.died is None:
            left.append(number)
        else:
            given[allocation.died].append(number)
    heap = Heap()
    tensors: dict[int, list[Chunk]] = {}
    fresh = [0.0] * count
    for turn in range(ROUNDS):
        counts = turn >= WARM_ROUNDS
        for number in left:
            heap.free_tensor(tensors.pop(number, []))
        for place, numbers in enumerate(taken):
            for number in given[place]:
                heap.free_tensor(tensors.pop(number))
            for number in numbers:
                tensors[number], new = heap.allocate_tensor(allocations[number].size)
                if new and counts:
                    fresh[place] += new / (ROUNDS - WARM_ROUNDS)
        for number in given[count]:
            heap.free_tensor(tensors.pop(number))
    return fresh


class Chunk(NamedTuple):
    """A piece of the heap; without a start it was mapped by itself. ``requested``: bytes without the header."""

    start: int | None
    size: int
    requested: int


@dataclass
class Heap:
    """A heap as malloc keeps it: where it ends, what of it is free, and how far it was touched."""

    _by_size: list[tuple[int, int]] = field(default_factory=list)
    _starts: dict[int, int] = field(default_factory=dict)
    _ends: dict[int, int] = field(default_factory=dict)
    _cached: dict[int, list[Chunk]] = field(default_factory=lambda: {size: [] for size in OBJECT_BYTES})
    _top: int = 0
    _end: int = 0
    _touched: int = 0
    _map_from: float = FIRST_THRESHOLD_BYTES
    _trim_from: float = 2 * FIRST_THRESHOLD_BYTES

    def allocate_tensor(self, size: int) -> tuple[list[Chunk], int]:
        """Its memory and its description; the bytes of its memory that are new."""
        memory, new = self._allocate(size)
        chunks = [memory]
        for size_of_object in OBJECT_BYTES:
            aside = self._cached[size_of_object]
            chunks.append(aside.pop() if aside else self._allocate(size_of_object)[0])
        return chunks, new if size <= MAX_THRESHOLD_BYTES else 0

    def free_tensor(self, chunks: Sequence[Chunk]) -> None:
        """Give back what ``allocate_tensor`` gave."""
        if not chunks:
            return
        memory, *objects = chunks
        self._free(memory)
        for chunk in objects:
            aside = self._cached[chunk.requested]
            if len(aside) < MAX_CACHED_CHUNKS:
                aside.append(chunk)
            else:
                self._free(chunk)

    def _allocate(self, size: int) -> tuple[Chunk, int]:
        need = _up(size + HEADER_BYTES, 16)
        at = bisect_left(self._by_size, (need, -1))
        if at < len(self._by_size):
            length, start = self._by_size.pop(at)
            del self._starts[start]
            if length > need:
                self._add(start + need, length - need)
            else:
                del self._ends[start + length]
            return Chunk(start, need, size), 0
        if self._end - self._top < need:
            if need >= self._map_from:
                # More than asked: the same once more is below the threshold when this has been given back.
                whole = _up(need + 1, PAGE_BYTES)
                return Chunk(None, whole, size), whole
            self._end += _up(need + PAD_BYTES - (self._end - self._top), PAGE_BYTES)
        start, self._top = self._top, self._top + need
        new = max(0, self._top - max(start, self._touched))
        self._touched = max(self._touched, self._top)
        return Chunk(start, need, size), new

    def _free(self, chunk: Chunk) -> None:
        if chunk.start is None:
            if self._map_from < chunk.size <= MAX_THRESHOLD_BYTES:
                self._map_from, self._trim_from = chunk.size, 2 * chunk.size
            return
        start, size = chunk.start, chunk.size
        if (before := self._ends.get(start)) is not None:
            self._remove(before, start - before)
            start, size = before, size + start - before
        if (after := self._starts.get(start + size)) is not None:
            self._remove(start + size, after)
            size += after
        if start + size == self._top:
            size += self._end - self._top
            self._top = start
        else:
            self._add(start, size)
        if size >= LOOK_BYTES and self._end - self._top >= self._trim_from:
            self._end = min(self._end, _up(self._top + PAD_BYTES, PAGE_BYTES))
            self._touched = min(self._touched, self._end)

    def _add(self, start: int, size: int) -> None:
        insort(self._by_size, (size, start))
        self._starts[start] = size
        self._ends[start + size] = start

    def _remove(self, start: int, size: int) -> None:
        del self._by_size[bisect_left(self._by_size, (size, start))]
        del self._starts[start]
        del self._ends[start + size]


def _up(size: int, step: int) -> int:
    return -(-size // step) * step
