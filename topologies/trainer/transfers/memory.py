"""Memory whose pages exist before it is used.

The first access to a page is a page fault, which takes longer than a packet in a User-Mode Linux box. With fresh memory
a job would begin seconds late, and the network would seem to be the cause.
"""

from __future__ import annotations

from functools import cache

_PAGE_BYTES = 4096
BLOCK_BYTES = 1024 * 1024
"""One system call moves at most this many bytes. With this size thirteen trainers use less than half a slow core."""


def touched(size: int) -> memoryview:
    """Return ``size`` bytes, every page of which has been written to."""
    buffer = bytearray(size)
    buffer[::_PAGE_BYTES] = bytes(len(range(0, size, _PAGE_BYTES)))
    return memoryview(buffer)


@cache
def nowhere() -> memoryview:
    """Return the buffer into which all tasks of a process put payload that nobody reads."""
    return touched(BLOCK_BYTES)
