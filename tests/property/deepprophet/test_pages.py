"""What holds of the played heap whatever tensors come and go."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from deepprophet.graph.memory.heap import HEADER_BYTES, PAGE_BYTES, Allocation, Heap, fresh_bytes

SIZES = st.one_of(st.integers(0, 2**16), st.integers(2**16, 2**21), st.integers(2**21, 2**26))


@given(st.lists(st.tuples(SIZES, st.integers(0, 6)), min_size=1, max_size=120))
def test_no_two_pieces_of_the_heap_overlap(turns: list[tuple[int, int]]) -> None:
    heap, alive = Heap(), []
    for size, gone in turns:
        pieces, new = heap.allocate_tensor(size)
        assert 0 <= new <= size + HEADER_BYTES + PAGE_BYTES
        alive.append(pieces)
        if gone and gone < len(alive):
            heap.free_tensor(alive.pop(gone))
        spans = sorted((p.start, p.start + p.size) for held in alive for p in held if p.start is not None)
        assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))


@st.composite
def _iterations(draw: st.DrawFn) -> tuple[list[Allocation], int]:
    count = draw(st.integers(1, 12))
    held = []
    for _ in range(draw(st.integers(0, 25))):
        born = draw(st.integers(0, count - 1))
        held.append(Allocation(draw(SIZES), born, draw(st.one_of(st.none(), st.integers(born + 1, count)))))
    return held, count


@given(_iterations())
def test_an_operator_gets_no_more_new_pages_than_it_takes_memory(iteration: tuple[list[Allocation], int]) -> None:
    held, count = iteration
    fresh = fresh_bytes(held, count)
    assert len(fresh) == count
    for place, new in enumerate(fresh):
        took = [one.size + HEADER_BYTES + PAGE_BYTES for one in held if one.born == place]
        assert 0 <= new <= sum(took)


@given(_iterations())
def test_the_same_iteration_has_the_same_new_pages(iteration: tuple[list[Allocation], int]) -> None:
    assert fresh_bytes(*iteration) == fresh_bytes(*iteration)
