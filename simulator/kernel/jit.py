"""Numba, typed: the hot loops are compiled once and kept on disk, function by function.

What is kept holds all that a function calls, so it is kept by what all of the sources say: a function whose own file
is the same would otherwise go on with the old code of another.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np

F = TypeVar("F", bound=Callable[..., object])

# Nothing is allocated in the loops: the state is held by whoever calls. Else each call of an inner function counts a
# reference more and one less, in atomic instructions, to the arrays of the state; that took as long as all else.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
_INNER: dict[str, Any] = {**_OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

_HERE = Path(__file__).parent
_settings: Any = numba.config

functions: list[Any] = []
"""All that is compiled, as Numba's dispatchers, once the modules that define them are loaded."""


def sources() -> list[Path]:
    """The files of all functions that are compiled, and this one: all of this folder."""
    return sorted(_HERE.glob("*.py"))


def digest(files: Iterable[Path]) -> str:
    """What stands for the contents of these files, whatever their order."""
    whole = hashlib.sha256()
    for source in sorted(files):
        whole.update(hashlib.sha256(source.read_bytes()).digest())
    return whole.hexdigest()[:16]


def kept(beside: Path = _HERE) -> Path | None:
    """Return the folder of the compiled functions of these sources; other versions have folders of their own.

    That is Numba's own folder where its user names one, else one in the folder ``beside``, else one in the user's
    cache; None where nothing can be written.
    """
    folders = [Path(_settings.CACHE_DIR)] if _settings.CACHE_DIR else [beside / "__pycache__", *_of_the_user()]
    places = (folder / f"kernel-{digest(sources())}" for folder in folders)
    return next((place for place in places if _is_writable(place)), None)


def _of_the_user() -> list[Path]:
    """The folder for what this user can always make again; none where the user has no home."""
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return []
    return [cache / "trainyard"] if cache.is_absolute() else []


def _is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


_KEPT = kept()


def entry(function: F) -> F:
    """Compile ``function`` at its first call from Python, with all that it calls; the result is kept on disk.

    No fast-math, so that sums are the same everywhere.
    """
    return _compiled(function, _OPTIONS)


def inner(function: F) -> F:
    """Compile ``function`` as a part of what calls it, and keep it on disk: who is interrupted goes on from there.

    Python cannot call it: a wrapper would take as long to make.
    """
    return _compiled(function, _INNER)


def _compiled(function: F, options: dict[str, Any]) -> F:
    with _keeping():
        compiled = numba.njit(cache=_KEPT is not None, **options)(function)
    functions.append(compiled)
    return cast(F, compiled)


@contextmanager
def _keeping() -> Iterator[None]:
    """Have Numba keep what is compiled in our folder, and others' functions wherever they are kept."""
    before = _settings.CACHE_DIR
    _settings.CACHE_DIR = str(_KEPT or "")
    try:
        yield
    finally:
        _settings.CACHE_DIR = before


@inner
def zero() -> int:
    """0, but no constant: Numba compiles what a constant is given to once more for that very constant."""
    return int(np.int64(0))
