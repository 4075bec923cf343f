"""Pauses Python's collector of cycles, which looks at all objects again and again while many new ones stay."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

MANY_MODULES = 100
"""Who loads at least so many modules loads a library, whose objects stay to the end of the process."""


@contextmanager
def paused() -> Iterator[None]:
    """Meanwhile cycles are not collected: where libraries are loaded, or a model is traced, almost all objects stay.

    Where a library was loaded, later collections do not look at what is there by then.
    """
    was_enabled, loaded = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if len(sys.modules) - loaded >= MANY_MODULES:
            gc.freeze()
        if was_enabled:
            gc.enable()
