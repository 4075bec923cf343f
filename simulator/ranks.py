"""From bands of jobs to groups in the compiled loops: a band keeps the group of most of its jobs, so few flows move."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from simulator.kernel.groups import most_of_each, regroup
from simulator.kernel.state import I4
from simulator.tables import Tables

Bands = Sequence[Sequence[int]]
_NONE = np.zeros(0, np.int32)


class Ranks:
    """Which group serves which jobs, and in what order."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._jobs: I4 = _NONE
        self._first: I4 = _NONE
        self._groups: I4 = _NONE

    def apply(self, bands: Bands) -> None:
        """Serve these bands of job numbers, first served first; every running job is in one."""
        bands = [band for band in bands if band]
        first = np.zeros(len(bands) + 1, np.int32)
        np.cumsum([len(band) for band in bands], out=first[1:])
        jobs = np.fromiter(chain.from_iterable(bands), np.int32, first[-1])
        if np.array_equal(jobs, self._jobs) and np.array_equal(first, self._first):
            return
        self._jobs, self._first = jobs, first
        groups = self._kept(jobs, first)
        # Those of the bands before, too: a group is taken anew only when nobody has been in it for a while.
        held = np.zeros(len(self._tables.state.group) + len(bands) + 1, dtype=np.bool_)
        held[self._groups] = held[groups[groups >= 0]] = True
        groups[groups < 0] = np.flatnonzero(~held)[: np.count_nonzero(groups < 0)]
        self._groups = groups
        self._tables.make_room(int(groups.max(initial=0)) + 1)
        regroup(self._tables.state, jobs, np.repeat(groups, np.diff(first)), groups)

    def _kept(self, jobs: I4, first: I4) -> I4:
        """For each band the group that most of its jobs are in and that no band before it keeps, or -1."""
        met, count, taken = np.zeros((3, len(self._tables.state.group)), np.int32)
        groups = np.zeros(len(first) - 1, np.int32)
        most_of_each(self._tables.state, jobs, first, met, count, taken, groups)
        return groups
