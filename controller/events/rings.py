"""Numbers by name over time, in memory of a fixed size: one sample each ``SAMPLE_SECONDS``, for an hour. Pure.

A sample belongs to a slot: the seconds since the Unix epoch over ``SAMPLE_SECONDS``, rounded down. So the samples of
all names lie at the same moments, and a gap stays a gap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from controller.events.blocks import Blocks, Numbers

SAMPLE_SECONDS = 5.0
SLOTS = 720
SET_BACK_SLOTS = 2
"""A sample that comes so many slots before the newest one shows that the clock was set back."""


def slot_of(time: float) -> int:
    """Returns the slot of a time in seconds since the Unix epoch."""
    return int(time // SAMPLE_SECONDS)


class Rings:
    """``fields`` numbers for each name; nan where there is none. ``most`` limits the names.

    The memory grows with the names, up to ``most`` of them. A new name then takes the place of one that has had no
    sample for longest, if there is one without a sample in the present slot. Otherwise the new name is left out.
    """

    def __init__(self, fields: int, most: int, *, slots: int = SLOTS) -> None:
        self._slots = slots
        self._blocks = Blocks(slots, fields, most)
        self._rows: dict[str, int] = {}
        self._free: list[int] = []
        self._first: dict[str, int] = {}
        """The slot of the first sample of each name: before it, its row has what an earlier name has left."""
        self._latest: dict[str, int] = {}
        """The slot of the last sample of each name, the oldest first."""
        self.newest: int | None = None
        """The slot of the newest sample; None before any."""

    def __contains__(self, name: str) -> bool:
        return name in self._rows

    def names(self) -> tuple[str, ...]:
        """Returns the names that have a sample within the time that is kept."""
        return tuple(self._rows)

    @property
    def nbytes(self) -> int:
        """The bytes that the samples may take."""
        return self._blocks.nbytes

    def takes(self, slot: int) -> bool:
        """Returns whether samples can be written in a slot: it is newer than the newest, or the clock was set back."""
        return self.newest is None or slot > self.newest or self.newest - slot >= SET_BACK_SLOTS

    def write(self, slot: int, samples: Mapping[str, Sequence[float]]) -> int:
        """Write the sample of each name in a slot; returns how many names were left out.

        A slot that is not taken (see ``takes``) changes nothing. If the clock was set back, the samples from this slot
        on are forgotten first. A number that is not finite or above 3.4e38, the most of 4 bytes, counts as none.
        """
        if not self.takes(slot):
            return 0
        if self.newest is not None and slot < self.newest:
            self._go_back(slot)
        self._clear_until(slot)
        self._drop_old(slot)
        left_out = 0
        rows, values = [], []
        # Names that are known come first, so that a new one takes the place of none of them.
        for name, sample in sorted(samples.items(), key=lambda item: item[0] not in self._rows):
            row = self._row(name, slot)
            if row is None:
                left_out += 1
                continue
            rows.append(row)
            values.append(sample)
        if rows:
            with np.errstate(over="ignore"):
                written = np.asarray(values, dtype=np.float64).astype(np.float32)
            written[~np.isfinite(written)] = np.nan
            self._blocks.write(slot % self._slots, rows, written)
        return left_out

    def read(self, name: str, first: int, count: int) -> Numbers:
        """Returns the samples of a name from the slot ``first`` on, shape (count, fields).

        They are nan where there is none, and for an unknown name.
        """
        found: Numbers = np.full((count, self._blocks.fields), np.nan, dtype=np.float32)
        row = self._rows.get(name)
        if row is None or self.newest is None:
            return found
        low = max(first, self.newest - self._slots + 1, self._first[name])
        high = min(first + count - 1, self.newest)
        if low <= high:
            wanted = np.arange(low, high + 1)
            found[wanted - first] = self._blocks.read(row, wanted % self._slots)
        return found

    def latest(self, name: str) -> Numbers | None:
        """Returns the newest sample of a name, shape (fields,); None where it has none in the newest slot."""
        if self.newest is None or self._latest.get(name) != self.newest:
            return None
        found: Numbers = self.read(name, self.newest, 1)[0]
        return found

    def forget(self, name: str) -> None:
        """Forget the samples of a name."""
        row = self._rows.pop(name, None)
        if row is not None:
            del self._first[name], self._latest[name]
            self._free.append(row)

    def _go_back(self, slot: int) -> None:
        """Forget the samples from a slot on, and the names that have no other ones."""
        assert self.newest is not None
        oldest = self.newest - self._slots + 1
        self._blocks.clear(np.arange(max(slot, oldest), self.newest + 1) % self._slots)
        for name in [name for name in self._rows if not np.isfinite(self.read(name, oldest, self._slots)).any()]:
            self.forget(name)
        self._latest = {name: min(latest, slot - 1) for name, latest in self._latest.items()}
        self.newest = slot - 1

    def _clear_until(self, slot: int) -> None:
        """Empty the places of the slots after the newest one, up to ``slot``."""
        first = slot if self.newest is None else max(self.newest + 1, slot - self._slots + 1)
        self._blocks.clear(np.arange(first, slot + 1) % self._slots)
        self.newest = slot

    def _drop_old(self, slot: int) -> None:
        """Forget the names without any sample that is kept."""
        while self._latest:
            name = next(iter(self._latest))
            if slot - self._latest[name] < self._slots:
                return
            self.forget(name)

    def _row(self, name: str, slot: int) -> int | None:
        """Returns the row for a sample of a name; None where there is no room."""
        row = self._rows.get(name)
        if row is None:
            row = self._free_row(slot)
            if row is None:
                return None
            self._rows[name], self._first[name] = row, slot
        self._latest.pop(name, None)  # so that the names stay in the order of their last samples
        self._latest[name] = slot
        return row

    def _free_row(self, slot: int) -> int | None:
        if not self._free:
            self._free.extend(self._blocks.grow())
        if not self._free:
            oldest = next(iter(self._latest))
            if self._latest[oldest] == slot:
                return None
            self.forget(oldest)
        return self._free.pop()
