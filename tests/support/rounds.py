"""Measurements that other work of the machine can spoil, so that one of several counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
ROUNDS = 3


def first_that(holds: Callable[[T], object], measure: Callable[[], T]) -> T:
    """Return the first of a few measurements that ``holds``, else the last one, for the test to say what is wrong.

    A processor that others use holds up what is measured for a moment, and not in each round. What is wrong with the
    product is wrong in all.
    """
    for _ in range(ROUNDS - 1):
        if holds(found := measure()):
            return found
    return measure()
