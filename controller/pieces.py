"""Work that is done in steps, so that nothing else waits long for it. Pure: who runs it decides when others go on."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")
Steps = Generator[None, None, T]
"""What yields wherever others may go on, and returns its result."""


def whole(steps: Steps[T]) -> T:
    """Do all steps in one go."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
