"""Random tensors that an operator takes: of its shapes and strides, and whole numbers within what they point into."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from deepprophet.graph.families import short
from deepprophet.graph.spec import Call, TensorSpec, Word

DRAWN = 2**18
"""At most so many random numbers are drawn for a tensor; a larger one repeats them."""


class UnsupportedArgumentError(Exception):
    """Arguments that cannot be made up."""


def make(call: Call, device: torch.device) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments and options of a call, with new tensors. Raises UnsupportedArgumentError."""
    most = _indices(call)
    arguments = [_value(value, device, most(place)) for place, value in enumerate(call.arguments)]
    if short(call.name).removesuffix("_") in _POSITIVE:
        _made_positive(arguments)
    options = {name: _value(value, device, 1) for name, value in call.options.items()}
    special = _SPECIAL.get(short(call.name))
    if special is not None:
        special(arguments)
    if short(call.name) in _GROUPED:
        _even_groups(arguments, options)
    return tuple(arguments), options


_POSITIVE = frozenset({"sqrt", "rsqrt", "log", "log1p", "log2", "log10", "pow"})
"""What is not a number takes processors many times as long as what is: an optimiser's roots are of squares."""


def _made_positive(arguments: list[Any]) -> None:
    for value in arguments:
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            value.abs_().add_(0.01)


def _value(value: Any, device: torch.device, most: int) -> Any:
    if isinstance(value, TensorSpec):
        return tensor(value, device, most)
    if isinstance(value, list):
        return [_value(part, device, most) for part in value]
    if isinstance(value, Word):
        if value.kind == "device":
            return device
        if value.kind in {"dtype", "layout", "memory_format"}:
            return getattr(torch, value.name)
        raise UnsupportedArgumentError(f"an argument of the kind {value.name} cannot be made up")
    return value


def tensor(spec: TensorSpec, device: torch.device, most: int = 1) -> torch.Tensor:
    """Random numbers; whole ones from 0 to below ``most``."""
    kind = getattr(torch, spec.dtype)
    elements = spec.elements
    if spec.strides is not None:
        elements = 1 + sum((size - 1) * step for size, step in zip(spec.shape, spec.strides, strict=True) if size > 0)
    if kind.is_floating_point or kind.is_complex:
        flat = _normal(elements, kind, device)
    elif kind is torch.bool:
        flat = torch.rand(elements, device=device) > 0.5
    else:
        flat = torch.randint(0, max(most, 1), (elements,), dtype=kind, device=device)
    return flat.view(spec.shape) if spec.strides is None else flat.as_strided(spec.shape, spec.strides)


def _normal(elements: int, kind: torch.dtype, device: torch.device) -> torch.Tensor:
    """Of many numbers the first ones again and again: to draw each would take longer than most operators on them."""
    drawn = torch.randn(min(elements, DRAWN), dtype=kind, device=device)
    return drawn if elements <= DRAWN else drawn.repeat(-(-elements // DRAWN))[:elements]


def _indices(call: Call) -> Callable[[int], int]:
    """By an argument's position: what its whole numbers stay below."""
    word, given = short(call.name), call.arguments
    shapes = [value.shape if isinstance(value, TensorSpec) else () for value in given]

    def numbers(place: int) -> int:
        value = given[place]
        return value if type(value) is int else 1

    limits: dict[str, Callable[[int], int]] = {
        "embedding": lambda _: shapes[0][0],
        "embedding_dense_backward": lambda _: numbers(2),
        "_embedding_bag": lambda place: shapes[0][0] if place == 1 else 1,
        "_embedding_bag_forward_only": lambda place: shapes[0][0] if place == 1 else 1,
        "_embedding_bag_dense_backward": lambda place: numbers(5) if place == 1 else max(shapes[3][0], 1),
        "nll_loss_forward": lambda _: shapes[0][-1],
        "nll_loss_backward": lambda _: shapes[1][-1],
        "nll_loss2d_forward": lambda _: shapes[0][1],
        "nll_loss2d_backward": lambda _: shapes[1][1],
        "max_pool2d_with_indices_backward": lambda _: _product(shapes[1][-2:]),
        "index": lambda _: min(shapes[0], default=1),
        "index_put": lambda _: min(shapes[0], default=1),
        "index_put_": lambda _: min(shapes[0], default=1),
        "_index_put_impl_": lambda _: min(shapes[0], default=1),
        "index_select": lambda _: shapes[0][numbers(1)],
        "gather": lambda _: shapes[0][numbers(1)],
        "scatter": lambda _: shapes[0][numbers(1)],
        "scatter_add": lambda _: shapes[0][numbers(1)],
        "index_add": lambda _: shapes[0][numbers(1)],
    }
    return limits.get(word, lambda _: 1)


def _product(sizes: Sequence[int]) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product


def _bags(arguments: list[Any]) -> None:
    """Offsets of bags rise from 0, and the bags are of one size."""
    count, offsets = arguments[1].numel(), arguments[2]
    arguments[2] = (
        (torch.arange(offsets.numel(), device=offsets.device) * max(count // max(offsets.numel(), 1), 1))
        .to(offsets.dtype)
        .clamp(max=max(count, 1))
    )


def _bags_backward(arguments: list[Any]) -> None:
    """Which bag an index is of rises from 0 to the last bag."""
    bags, sizes = arguments[2], arguments[3]
    each = max(bags.numel() // max(sizes.numel(), 1), 1)
    arguments[2] = (
        (torch.arange(bags.numel(), device=bags.device) // each).clamp(max=max(sizes.numel() - 1, 0)).to(bags.dtype)
    )
    sizes.fill_(each)


_GROUPED = frozenset({"_grouped_mm", "transformers::grouped_mm_fallback", "transformers::grouped_mm_fallback_backward"})


def _even_groups(arguments: list[Any], options: dict[str, Any]) -> None:
    """Where each group of rows ends: all groups are as large, as where tokens go to experts evenly."""
    left, right = arguments[:2]
    rows = left.shape[-1] if left.dim() == 2 and right.dim() == 2 else left.shape[0]
    for value in (*arguments[2:], *options.values()):
        if isinstance(value, torch.Tensor) and value.dim() == 1 and not value.is_floating_point():
            groups = value.numel()
            value.copy_(torch.arange(1, groups + 1, device=value.device) * rows // groups)


def _recurrent_backward(arguments: list[Any]) -> None:
    """The library's own workspace comes from a forward call: its contents are not to be made up."""
    source, w1, w2, w3, w4, hx, cx = arguments[0:7]
    reverse, mode, hidden, layers, has_biases, train, bidirectional, sizes, batch_first = arguments[13:22]
    del train
    with torch.enable_grad():
        output, hy, cy, workspace = torch.ops.aten.mkldnn_rnn_layer(
            source, w1, w2, w3, w4, hx, cx, reverse, list(sizes), mode, hidden, layers, has_biases, bidirectional,
            batch_first, True,
        )  # fmt: skip
    arguments[7:10] = [output, hy, cy]
    arguments[22] = workspace


_SPECIAL: dict[str, Callable[[list[Any]], None]] = {
    "_embedding_bag": _bags,
    "_embedding_bag_forward_only": _bags,
    "_embedding_bag_dense_backward": _bags_backward,
    "mkldnn_rnn_layer_backward": _recurrent_backward,
}
