"""From bands of jobs to groups in the compiled loops: a band keeps the group of most of its jobs, so few flows move."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from simulator.kernel_groups import regroup
from simulator.tables import Tables

Bands = Sequence[Sequence[int]]


class Ranks:
    """Which group serves which jobs, and in what order."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._group: dict[int, int] = {}
        self._bands: tuple[tuple[int, ...], ...] = ()

    def apply(self, bands: Bands) -> None:
        """Serve these bands of job numbers, first served first; every running job is in one."""
        wanted = tuple(tuple(band) for band in bands if band)
        if wanted == self._bands:
            return
        self._bands = wanted
        taken: set[int] = set()
        group_of: list[int] = []
        for band in wanted:
            before = Counter(self._group[job] for job in band if job in self._group)
            group_of.append(next((group for group, _ in before.most_common() if group not in taken), -1))
            taken.add(group_of[-1])
        held = taken | set(self._group.values())
        fresh = (group for group in range(len(held) + len(wanted) + 1) if group not in held)
        group_of = [group if group >= 0 else next(fresh) for group in group_of]
        self._tables.make_room(max(group_of, default=0) + 1)
        self._group = {job: group for band, group in zip(wanted, group_of, strict=True) for job in band}
        regroup(
            self._tables.state,
            np.array(list(self._group), dtype=np.int32),
            np.array(list(self._group.values()), dtype=np.int32),
            np.array(group_of, dtype=np.int32),
        )
