"""How ranks exchange gradients by all-reduce, as a script says it."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any, NamedTuple

from sasp.core.chunks import CHUNK_BYTES, MIN_CHUNK_BYTES
from sasp.core.errors import SaspError
from sasp.core.staleness import PLAIN, StalenessOptions


class AllReduceOptions(NamedTuple):
    """Among the ranks of ``group`` (None: all), in chunks. ``patience``: seconds with a rank that says nothing.

    ``late``: what is done about late gradients; ``partial``: only layers whose transfer does not fit are late;
    ``halves``: two steps are the half batches of one.
    """

    group: Any = None
    chunk_bytes: int = CHUNK_BYTES
    patience: float | None = None
    late: StalenessOptions = PLAIN
    partial: bool = False
    halves: bool = False

    def check(self) -> None:
        """Raises SaspError for an option that is out of range."""
        if self.chunk_bytes < MIN_CHUNK_BYTES:
            raise SaspError(f"chunks of {self.chunk_bytes} bytes; they must have at least {MIN_CHUNK_BYTES}")
        if self.patience is not None and not (self.patience > 0 and math.isfinite(self.patience)):
            raise SaspError(f"a patience of {self.patience!r} s; it must be more than 0")
        self.late.check_all_reduce()
        if self.halves and (self.partial or self.late != PLAIN):
            raise SaspError("halves=True goes with no other way, because with half batches no gradient is late")

    @property
    def timeout(self) -> timedelta | None:
        """The limit for ``torch.distributed``; None: its own."""
        return None if self.patience is None else timedelta(seconds=self.patience)
