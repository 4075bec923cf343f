"""How ranks exchange gradients by all-reduce, as a script says it."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any, NamedTuple

from sasp.core.chunks import CHUNK_BYTES, MIN_CHUNK_BYTES
from sasp.core.errors import SaspError


class AllReduceOptions(NamedTuple):
    """Among the ranks of ``group`` (None: all), in chunks. ``patience``: seconds with a rank that says nothing."""

    group: Any = None
    chunk_bytes: int = CHUNK_BYTES
    patience: float | None = None

    def check(self) -> None:
        """Raises SaspError for an option that is out of range."""
        if self.chunk_bytes < MIN_CHUNK_BYTES:
            raise SaspError(f"chunks of {self.chunk_bytes} bytes; they must have at least {MIN_CHUNK_BYTES}")
        if self.patience is not None and not (self.patience > 0 and math.isfinite(self.patience)):
            raise SaspError(f"a patience of {self.patience!r} s; it must be more than 0")

    @property
    def timeout(self) -> timedelta | None:
        """The limit for ``torch.distributed``; None: its own."""
        return None if self.patience is None else timedelta(seconds=self.patience)
