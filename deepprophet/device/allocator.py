"""Asks the C library to keep memory that was given back, so that an operator that is measured alone does not pay for
new pages: what these cost an iteration is told apart (``heap``).
"""

from __future__ import annotations

import ctypes
from functools import cache

from deepprophet.graph.memory.heap import MAX_THRESHOLD_BYTES

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
NEVER = -1


@cache
def keep_memory() -> bool:
    """For the rest of the process. False where the C library is not glibc, which keeps or not as it likes.

    What is larger than 32 MiB is mapped by itself all the same: glibc allows no more (mallopt(3)).
    """
    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version"):
        return False
    kept = library.mallopt(M_MMAP_THRESHOLD, int(MAX_THRESHOLD_BYTES))
    return bool(kept and library.mallopt(M_TRIM_THRESHOLD, NEVER))
