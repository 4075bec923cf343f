"""Lets models of transformers run the operators on tensors without values that they run in a training. Needs PyTorch.

Their attention looks for several sequences in one example by the values of positions, which tensors without values do
not have: then the library takes it that there may be some, and makes a mask that a training does not need. Here there
are none, as in batches that are not packed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

MODULE, FINDER = "transformers.masking_utils", "find_packed_sequence_indices"


@contextmanager
def no_packed_sequences() -> Iterator[None]:
    """Meanwhile no sequences are found; what the library computes to look for them is computed all the same."""
    masks = sys.modules.get(MODULE)
    find = getattr(masks, FINDER, None)
    if masks is None or find is None:
        yield
        return

    def none(position_ids: Any) -> None:
        found = find(position_ids)
        if found is not None:
            (found[:, -1] == 0).all()

    setattr(masks, FINDER, none)
    try:
        yield
    finally:
        setattr(masks, FINDER, find)
