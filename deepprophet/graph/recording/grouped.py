"""Products in groups of rows on tensors without values, which PyTorch itself has for accelerators alone. Needs PyTorch.

``aten._grouped_mm`` says what shape its result has for bfloat16 only, while processors multiply any type.
"""

from __future__ import annotations

from typing import Any

import torch

NAME = "aten._grouped_mm."
"""What such an operator's name begins with."""


def result(left: torch.Tensor, right: torch.Tensor, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Any:
    """Return a result of the right shape.

    ``left`` (rows, inner) and ``right`` (groups, inner, columns): each group has some of the rows, up to its end in
    ``offs``. Where both are matrices, it is the inner dimension that is in groups, and each has a result. Raises
    RuntimeError for shapes that do not fit.
    """
    del bias
    if left.shape[-1] != right.shape[-2]:
        raise RuntimeError(f"the inner dimensions differ: {left.shape[-1]} and {right.shape[-2]}")
    outer: list[int] = []
    if left.dim() == right.dim():
        outer = [int(offs.shape[0] if left.dim() == 2 else left.shape[0])]
    size = [*outer, int(left.shape[-2]), int(right.shape[-1])]
    return torch.empty(size, dtype=out_dtype or left.dtype, device=left.device)
