"""The families that are known: their last runs, bounded over all of them. It holds values, and talks to nobody."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Iterator

from controller.families.build import history_of
from controller.families.history import FamilyHistory
from controller.families.names import FamilyKey, Owner
from controller.families.run import EarlierRun, RunKey
from controller.model import Metric

MAX_RUNS = 20
"""Keep at most this many runs of a family."""
MAX_FLAGGED = 5
"""Of these, at most this many may be runs that do not count: a job that fails again and again must not push out the
runs that say something."""
MAX_FAMILIES = 2_000
MAX_ALL_RUNS = 5_000
"""Keep at most this many runs over all families. A run takes up to 5 kB of the journal's file, and 10 kB of memory."""


class Families:
    """Runs by family. All limits are arguments."""

    def __init__(
        self,
        *,
        max_runs: int = MAX_RUNS,
        max_flagged: int = MAX_FLAGGED,
        max_families: int = MAX_FAMILIES,
        max_all_runs: int = MAX_ALL_RUNS,
    ) -> None:
        self._max_runs = max_runs
        self._max_flagged = max_flagged
        self._max_families = max_families
        self._max_all_runs = max_all_runs
        self._runs: dict[FamilyKey, list[EarlierRun]] = {}
        self._by_owner: Counter[Owner] = Counter()
        self._count = 0
        self._histories: dict[FamilyKey, dict[Metric, FamilyHistory]] = {}

    def __iter__(self) -> Iterator[FamilyKey]:
        """All families, by name and then by owner."""
        return iter(sorted(self._runs, key=lambda key: (key.name, key.owner.user or "", key.owner.host or "")))

    def __contains__(self, key: FamilyKey) -> bool:
        return key in self._runs

    def runs(self, key: FamilyKey) -> tuple[EarlierRun, ...]:
        """Returns the runs of a family, the one that ended first first; none where it is not known."""
        return tuple(self._runs.get(key, ()))

    def history(self, key: FamilyKey, metric: Metric) -> FamilyHistory:
        """Returns what a family says of a next run with this metric: the same value as long as nothing has ended."""
        if key not in self._runs:
            return FamilyHistory(key.name)
        known = self._histories.setdefault(key, {})
        if metric not in known:
            known[metric] = history_of(key.name, self._runs[key], metric)
        return known[metric]

    def add(self, key: FamilyKey, run: EarlierRun) -> list[RunKey]:
        """Keep a run, in the place of what is kept of the same one; returns the other runs that are not kept any more.

        Where there are too many families, that goes which ended a run least lately, of the owner who has most. So who
        names each run anew loses his own.
        """
        runs = self._runs.get(key)
        if runs is None:
            runs = self._runs[key] = []
            self._by_owner[key.owner] += 1
        kept = [old for old in runs if old.key != run.key]
        insort(kept, run, key=_order)
        gone = _excess(kept, self._max_runs, self._max_flagged)
        self._count += len(kept) - len(gone) - len(runs)
        self._runs[key] = [old for old in kept if old.key not in gone]
        self._histories.pop(key, None)
        dropped = sorted(gone)
        while len(self._runs) > self._max_families or self._count > self._max_all_runs:
            dropped += self.remove(self._least_used())
        return dropped

    def remove(self, key: FamilyKey) -> list[RunKey]:
        """Forget a family; returns its runs."""
        runs = self._runs.pop(key, [])
        if runs:
            self._by_owner[key.owner] -= 1
        self._count -= len(runs)
        self._histories.pop(key, None)
        return [run.key for run in runs]

    def _least_used(self) -> FamilyKey:
        return min(self._runs, key=lambda key: (-self._by_owner[key.owner], _order(self._runs[key][-1])))


def _order(run: EarlierRun) -> tuple[float, RunKey]:
    return run.ended_at, run.key


def _excess(runs: list[EarlierRun], most: int, most_flagged: int) -> set[RunKey]:
    """Returns the runs that are too many, the oldest first: of those that do not count, and then of all."""
    flagged = [run for run in runs if not run.counts]
    gone = {run.key for run in flagged[: max(len(flagged) - most_flagged, 0)]}
    left = [run.key for run in runs if run.key not in gone]
    return gone | set(left[: max(len(left) - most, 0)])
