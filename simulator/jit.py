"""Numba, typed: the hot loops are compiled once and kept on disk beside their source."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def jit(function: F) -> F:
    """Compile ``function`` at its first call; no fast-math, so that sums are the same everywhere."""
    return cast(F, numba.njit(cache=True, error_model="numpy")(function))
