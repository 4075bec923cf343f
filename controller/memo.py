"""Remembers what is costly to compute about a value, by the value's identity.

A snapshot is made anew for every plan, but most of what is in it is the very same objects: the demand of a job that
did not change, the history of a job that did not report. To compare or to hash them again and again would cost more
than the plan. All that is kept is a pure function's result, so nothing depends on whether it was remembered.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Memo(Generic[K, V]):
    """Results by the identity of an immutable key; holds the keys, and forgets the oldest beyond ``limit``."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: dict[int, tuple[K, V]] = {}

    def peek(self, key: K) -> V | None:
        """Returns the result for ``key``, or None if it is not remembered."""
        held = self._held.get(id(key))
        return held[1] if held is not None and held[0] is key else None

    def get(self, key: K, make: Callable[[], V]) -> V:
        """Returns the result for ``key``, computed by ``make`` if it is not remembered."""
        # The key is held, so its id cannot have become another object's.
        held = self._held.get(id(key))
        if held is not None and held[0] is key:
            return held[1]
        result = make()
        if len(self._held) >= self._limit:
            for old in list(islice(self._held, self._limit // 4)):
                self._held.pop(old, None)
        self._held[id(key)] = (key, result)
        return result


class Latest(Generic[V]):
    """Keeps the latest value for each name, and forgets the oldest names beyond ``limit``.

    It is for results about what only grows, as a job's history does: only the latest result is worth its memory. The
    owner decides whether a result is still valid.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: dict[str, V] = {}

    def get(self, name: str) -> V | None:
        """Returns the value of ``name``, or None if there is none or it was forgotten."""
        return self._held.get(name)

    def keep(self, name: str, value: V) -> None:
        """Replaces the value of ``name``."""
        if name not in self._held and len(self._held) >= self._limit:
            for old in list(islice(self._held, max(self._limit // 4, 1))):
                self._held.pop(old, None)
        self._held[name] = value
