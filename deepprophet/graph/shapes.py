"""What a call's shape costs beyond its operations and bytes: the columns of its family's roofline. Pure.

[ours] A kernel works in tiles, and packs or unfolds its inputs before it multiplies. So beside an operation and a byte
a roofline has what every product of matrices pays for dimensions that are short (operations over the dimension) or laid
out the other way (bytes), a convolution for its filters, for the windows that it unfolds, for channels that do not fill
its blocks, for steps, for windows with gaps and for those of one dimension, a norm for each of its rows. The factors
are the device's, fitted to what was measured of it; none is below 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from deepprophet.graph import families
from deepprophet.graph.spec import Call, TensorSpec

BLOCK = 16
"""A processor's convolutions work on blocks of so many channels."""

Terms = tuple[float, ...]


def terms(call: Call, flops: float) -> Terms:
    """Of a call with so many operations; all calls of one family have equally many."""
    kind = families.family(call)
    if kind.startswith("conv"):
        return _convolution(call, flops)
    return _OF_FAMILY.get(kind, _any)(call, flops)


def _matmul(call: Call, flops: float) -> Terms:
    matrices = [tensor for tensor in call.tensors() if tensor.shape][-2:]
    if len(matrices) < 2:
        return (0.0,) * 6
    left, right = matrices
    rows = left.shape[-2] if len(left.shape) > 1 else 1
    inner, columns = left.shape[-1], right.shape[-1] if len(right.shape) > 1 else 1
    batch = math.prod(left.shape[:-2])
    return (
        _over(flops, rows), _over(flops, inner), _over(flops, columns), float(batch),
        _turned(left), _turned(right),
    )  # fmt: skip


def _convolution(call: Call, flops: float) -> Terms:
    tensors = list(call.tensors())
    if "backward" in call.name:
        result, given, weight = tensors[:3]
        # The sizes of the bias stand before it.
        stride, dilation = _sizes(call, 4), _sizes(call, 6)
    else:
        given, weight = tensors[:2]
        result, stride, dilation = None, _sizes(call, 3), _sizes(call, 5)
    places = given.shape[0] * (
        math.prod(result.shape[2:]) if result is not None else math.prod(given.shape[2:]) // max(math.prod(stride), 1)
    )
    window = math.prod(weight.shape[1:])
    return (
        _over(flops, places), _over(flops, window), _over(flops, weight.shape[0]), float(weight.bytes),
        4.0 * places * window, flops * _unfilled(weight.shape[1]), flops * _unfilled(weight.shape[0]),
        flops if math.prod(stride) > 1 else 0.0, flops if math.prod(dilation) > 1 else 0.0,
        flops if len(weight.shape) == 3 else 0.0,
    )  # fmt: skip


def _sizes(call: Call, place: int) -> list[int]:
    """Of whole numbers an argument; [1] where another library's operator has something else there."""
    value = call.arguments[place] if place < len(call.arguments) else None
    return value if isinstance(value, list) and value and all(type(part) is int for part in value) else [1]


def _grouped(call: Call, flops: float) -> Terms:
    """Of rows in groups: what each group costs, and what short dimensions do."""
    matrices = list(call.tensors())[:2]
    if len(matrices) < 2 or any(len(tensor.shape) < 2 for tensor in matrices):
        return (0.0,) * 6
    left, right = matrices
    groups = next((float(t.shape[0]) for t in (*matrices, *call.tensors()) if len(t.shape) in (1, 3)), 1.0)
    return (
        _over(flops, left.shape[-2]), _over(flops, left.shape[-1]), _over(flops, right.shape[-1]), groups,
        _turned(left), _turned(right),
    )  # fmt: skip


def _recurrent(call: Call, flops: float) -> Terms:
    tensors = list(call.tensors())
    if len(tensors) < 2 or len(tensors[0].shape) < 3:
        return (0.0, 0.0, 0.0)
    length, batch, _ = tensors[0].shape[-3:]
    return _over(flops, batch), _over(flops, tensors[1].shape[-1]), float(length)


def _attention(call: Call, flops: float) -> Terms:
    query = next(call.tensors())
    *outer, length, width = query.shape if len(query.shape) > 1 else (1, 1)
    return _over(flops, length), _over(flops, width), float(math.prod(outer))


def _rows(call: Call, flops: float) -> Terms:
    """Of what goes over rows: how many there are, and what is laid out the other way."""
    del flops
    first = next(call.tensors(), None)
    if first is None or not first.shape:
        return 0.0, 0.0
    return first.elements / max(first.shape[-1], 1), sum(map(_turned, call.tensors()))


def _any(call: Call, flops: float) -> Terms:
    del flops
    return (sum(map(_turned, call.tensors())),)


_OF_FAMILY: Mapping[str, Callable[[Call, float], Terms]] = {
    "matmul": _matmul, "grouped-matmul": _grouped, "recurrent": _recurrent, "attention": _attention, "reduce": _rows,
    "normalise": _rows, "normalise-grad": _rows, "softmax": _rows, "lookup": _rows, "lookup-grad": _rows,
}  # fmt: skip


def _unfilled(size: int) -> float:
    """What blocks of channels have more than there are, as a share of these."""
    return -(-size // BLOCK) * BLOCK / max(size, 1) - 1.0


def _over(flops: float, size: int) -> float:
    return flops / max(size, 1)


def _turned(tensor: TensorSpec) -> float:
    return 0.0 if tensor.strides is None else float(tensor.bytes)
