"""Work that is done in steps, so that nothing else waits long for it. Pure: who runs it decides when others go on."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")
Steps = Generator[None, None, T]
"""A generator that yields wherever other work may go on, and returns its result."""


def whole(steps: Steps[T]) -> T:
    """Does all steps at once, and returns the result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
