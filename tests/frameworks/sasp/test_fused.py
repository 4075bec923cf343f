"""Chunks of several layers in one tensor, and back."""

from __future__ import annotations

import torch

from sasp.core.chunks import Layout
from sasp.training.transports.fused import GradientChunk, fuse

LAYOUT = Layout([5, 3, 4], 2)


def chunks(*numbers: int) -> list[GradientChunk]:
    return [(1, LAYOUT.chunks[number]) for number in numbers]


def flats(*types: torch.dtype) -> dict[int, torch.Tensor]:
    return {layer: torch.arange(LAYOUT.sizes[layer], dtype=types[layer]) + 10 * layer for layer in range(3)}


def test_chunks_of_several_layers_are_one_copy_that_goes_back_to_where_it_comes_from() -> None:
    flat = flats(*[torch.float32] * 3)
    [fused] = fuse(chunks(1, 2, 3), lambda layer, _iteration: flat[layer])
    assert fused.tensor.tolist() == [2, 3, 4, 10, 11]
    fused.tensor.mul_(2)
    assert flat[0].tolist() == [0, 1, 2, 3, 4]
    fused.unpack()
    assert flat[0].tolist() == [0, 1, 4, 6, 8]
    assert flat[1].tolist() == [20, 22, 12]


def test_chunks_of_a_layer_that_follow_each_other_are_not_copied() -> None:
    flat = flats(*[torch.float32] * 3)
    [fused] = fuse(chunks(0, 1, 2), lambda layer, _iteration: flat[layer])
    fused.tensor.mul_(2)
    assert flat[0].tolist() == [0, 2, 4, 6, 8]
    fused.unpack()
    assert flat[0].tolist() == [0, 2, 4, 6, 8]


def test_types_do_not_mix_and_the_order_stays() -> None:
    flat = flats(torch.float32, torch.bfloat16, torch.float32)
    all_fused = fuse(chunks(2, 3, 5), lambda layer, _iteration: flat[layer])
    assert [fused.tensor.dtype for fused in all_fused] == [torch.float32, torch.bfloat16, torch.float32]
    assert [fused.tensor.tolist() for fused in all_fused] == [[4], [10, 11], [20, 21]]
    assert [chunk.layer for fused in all_fused for _iteration, chunk in fused.chunks] == [0, 1, 2]
