"""At most one event for a name in a while: the newest value wins, and the last one is never lost. Pure."""

from __future__ import annotations

from typing import Generic, TypeVar

SECONDS = 1.0
V = TypeVar("V")


class Pace(Generic[V]):
    """Values by name that are to be told, and when each name was told of last. ``seconds`` are between two of a name.

    It remembers a name for ``seconds`` after it was told of, and as long as a value waits.
    """

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._waiting: dict[str, V] = {}
        self._told: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def waiting(self, name: str) -> V | None:
        """Returns the value that waits; None: there is none."""
        return self._waiting.get(name)

    def mark(self, name: str, value: V) -> None:
        """Note a value that is to be told; it takes the place of one that waits."""
        self._waiting[name] = value

    def due(self, now: float) -> list[tuple[str, V]]:
        """Returns the values whose time has come, and counts them as told. ``now`` never goes back."""
        due = [(name, value) for name, value in self._waiting.items() if self._is_due(name, now)]
        for name, _ in due:
            del self._waiting[name]
            self._told.pop(name, None)  # so that the names stay in the order of their times
            self._told[name] = now
        while self._told and now - next(iter(self._told.values())) >= self._seconds:
            del self._told[next(iter(self._told))]
        return due

    def rest(self) -> list[tuple[str, V]]:
        """Returns all values that wait, whether their time has come or not, for those that tell nothing after it."""
        rest, self._waiting = list(self._waiting.items()), {}
        return rest

    def _is_due(self, name: str, now: float) -> bool:
        told = self._told.get(name)
        return told is None or now - told >= self._seconds
