"""Memory that is there before it is used.

The first touch of a page is a fault. In a User-Mode Linux box one takes longer than a packet, so a job that begins on
fresh memory begins seconds late, and that would be measured as the network's doing.
"""

from __future__ import annotations

from functools import cache

_PAGE_BYTES = 4096
BLOCK_BYTES = 1024 * 1024
"""What one system call moves at most: few calls a second keep thirteen trainers within half a slow core."""


def touched(size: int) -> memoryview:
    """So many bytes, every page of which has been written to."""
    made = bytearray(size)
    made[::_PAGE_BYTES] = bytes(len(range(0, size, _PAGE_BYTES)))
    return memoryview(made)


@cache
def nowhere() -> memoryview:
    """Where all tasks of a process put payload that nobody reads."""
    return touched(BLOCK_BYTES)
