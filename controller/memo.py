"""Remembering what is costly to work out about a value, by the value's identity.

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
        """The result for ``key``; None if it is not remembered."""
        held = self._held.get(id(key))
        return held[1] if held is not None and held[0] is key else None

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The result for ``key``, made if it is not remembered."""
        # The key is held, so its id cannot have become another object's.
        held = self._held.get(id(key))
        if held is not None and held[0] is key:
            return held[1]
        made = make()
        if len(self._held) >= self._limit:
            for old in list(islice(self._held, self._limit // 4)):
                self._held.pop(old, None)
        self._held[id(key)] = (key, made)
        return made


class Latest(Generic[V]):
    """What was latest kept by name; forgets the oldest names beyond ``limit``.

    For what only ever grows, as a job's history does: of what was made from less of it only the latest is worth its
    memory. Whether it still holds is for its owner to say.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: dict[str, V] = {}

    def get(self, name: str) -> V | None:
        """What was kept for ``name``; None where nothing was, or it is forgotten."""
        return self._held.get(name)

    def keep(self, name: str, made: V) -> None:
        """Remember this in place of the one before."""
        if name not in self._held and len(self._held) >= self._limit:
            for old in list(islice(self._held, max(self._limit // 4, 1))):
                self._held.pop(old, None)
        self._held[name] = made
