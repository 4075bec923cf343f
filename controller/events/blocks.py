"""Numbers by row and slot, in blocks of rows: more rows cost no copy of those that there are. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

ROWS = 64
"""The rows of a block. A block with an hour of jobs takes 1.3 MB."""

Numbers = NDArray[np.float32]
Slots = NDArray[np.int64]


class Blocks:
    """``fields`` numbers for each row and each of ``slots`` slots; ``most`` limits the rows.

    What was never written is undefined: the memory of a block is taken as it is, page by page as slots are written.
    """

    def __init__(self, slots: int, fields: int, most: int) -> None:
        self.slots = slots
        self.fields = fields
        self._most = most
        self._blocks: list[Numbers] = []

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(block.shape[1] for block in self._blocks)

    @property
    def nbytes(self) -> int:
        """The bytes of all blocks."""
        return sum(block.nbytes for block in self._blocks)

    def grow(self) -> range:
        """Add rows, as many as there may be more, at most a block; returns them."""
        begin = self.rows
        more = min(ROWS, self._most - begin)
        if more:
            self._blocks.append(np.empty((self.slots, more, self.fields), dtype=np.float32))
        return range(begin, begin + more)

    def clear(self, slots: Slots) -> None:
        """Make the numbers of all rows in these slots nan."""
        for block in self._blocks:
            block[slots] = np.nan

    def write(self, slot: int, rows: Sequence[int], values: Numbers) -> None:
        """Write the numbers of rows in a slot; ``values`` has the shape (rows, fields)."""
        block_of, place = np.divmod(np.array(rows, dtype=np.int64), ROWS)
        for number in np.unique(block_of).tolist():
            here = block_of == number
            self._blocks[number][slot, place[here]] = values[here]

    def read(self, row: int, slots: Slots) -> Numbers:
        """Returns the numbers of a row in some slots, shape (slots, fields)."""
        found: Numbers = self._blocks[row // ROWS][slots, row % ROWS]
        return found
