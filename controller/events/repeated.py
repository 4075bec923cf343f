"""When to tell again what seldom changes: where it has changed, and after a while for those who came later. Pure."""

from __future__ import annotations

from collections.abc import Hashable

SECONDS = 60.0


class Repeated:
    """What was told last by name, and when. ``seconds``: after so long it is told again."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._told: dict[str, tuple[Hashable, float]] = {}

    def __len__(self) -> int:
        return len(self._told)

    def is_due(self, name: str, value: Hashable, now: float) -> bool:
        """Returns whether to tell of a name now, and counts it as told. ``now`` never goes back."""
        told = self._told.get(name)
        if told is not None and told[0] == value and now - told[1] < self._seconds:
            return False
        self._told[name] = (value, now)
        return True

    def forget(self, name: str) -> None:
        """Forget a name that is gone."""
        self._told.pop(name, None)
