"""Numba, typed: the hot loops are compiled once and kept on disk beside their source.

What is kept holds all that a function calls, so it is kept by what all of the sources say: an ``entry`` whose own file
is the same would otherwise go on with the old code of another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])

# Nothing is allocated in the loops: the state is held by whoever calls. Else each call of an inner function counts a
# reference more and one less, in atomic instructions, to the arrays of the state; that took as long as all else.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
_INNER: dict[str, Any] = {**_OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

_HERE = Path(__file__).parent
_settings: Any = numba.config


def digest(sources: Iterable[Path]) -> str:
    """What stands for the contents of these files, whatever their order."""
    whole = hashlib.sha256()
    for source in sorted(sources):
        whole.update(hashlib.sha256(source.read_bytes()).digest())
    return whole.hexdigest()[:16]


def kept() -> Path:
    """Where compiled functions are; what other versions of the sources left beside it is used no more."""
    sources = (Path(__file__), *_HERE.glob("kernel*.py"), *_HERE.glob("rates*.py"))
    return Path(_settings.CACHE_DIR or _HERE / "__pycache__") / f"kernel-{digest(sources)}"


_KEPT = kept()


def entry(function: F) -> F:
    """Compile ``function`` at its first call from Python, with all that it calls; the result is kept on disk.

    No fast-math, so that sums are the same everywhere.
    """
    before = _settings.CACHE_DIR
    _settings.CACHE_DIR = str(_KEPT)
    try:
        return cast(F, numba.njit(cache=True, **_OPTIONS)(function))
    finally:
        _settings.CACHE_DIR = before


def inner(function: F) -> F:
    """Compile ``function`` as a part of what calls it. Python cannot call it: a wrapper would take as long to make."""
    return cast(F, numba.njit(**_INNER)(function))
