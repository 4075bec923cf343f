"""How much of an iteration's memory is new: glibc's malloc, played."""

from __future__ import annotations

from deepprophet.graph.memory.heap import MAX_THRESHOLD_BYTES, PAGE_BYTES, Allocation, fresh_bytes

MIB = 2**20


def test_small_memory_that_comes_again_is_not_new() -> None:
    held = [Allocation(64 * 1024, 0, 1), Allocation(32 * 1024, 1, 2)]
    assert fresh_bytes(held, 2) == [0.0, 0.0]


def test_memory_that_is_never_given_back_within_an_iteration_is_not_new_either() -> None:
    assert fresh_bytes([Allocation(100_000, 0, None)], 1) == [0.0]


def test_a_large_block_is_mapped_once_and_then_kept() -> None:
    # What unmaps a block raises the threshold above it: the next one comes from the heap, and the heap keeps it.
    assert fresh_bytes([Allocation(4 * MIB, 0, None)], 1) == [0.0]


def test_the_heaps_end_is_cut_off_and_grows_anew_in_every_iteration() -> None:
    # 8 MiB in pieces below the threshold for mapping: all is free at the end, far more than the heap keeps. Small
    # chunks that are put aside lie between the first pieces, and keep these.
    held = [Allocation(MIB // 2, place, None) for place in range(16)]
    fresh = fresh_bytes(held, 16)
    assert 4 * MIB <= sum(fresh) <= 8.1 * MIB


def test_what_is_held_at_the_heaps_end_keeps_it() -> None:
    large = [Allocation(MIB // 2, place, 17) for place in range(16)]
    behind = Allocation(MIB // 2, 16, 18)
    assert sum(fresh_bytes([*large, behind], 19)) < sum(fresh_bytes(large, 19)) + MIB


def test_what_is_over_the_largest_threshold_is_not_told() -> None:
    # It is mapped wherever the operator is called: its measurement alone has it.
    assert fresh_bytes([Allocation(int(MAX_THRESHOLD_BYTES) + PAGE_BYTES, 0, 1)], 1) == [0.0]


def test_a_tensor_without_bytes_takes_no_page() -> None:
    assert fresh_bytes([Allocation(0, 0, None)], 1) == [0.0]
