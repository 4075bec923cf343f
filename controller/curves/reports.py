"""A history's reports as numbers, side by side: read once, and from then on only what is new.

A plan needs the histories of all jobs, and of each no more than a report or two was not there a period before. To go
through all reports of all jobs, object by object, would take longer than to fit curves to them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import nan

import numpy as np
from numpy.typing import NDArray

from controller.model import Progress

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Reports:
    """``iterations`` and ``metrics`` (n,) of n reports, as doubles in the order given; nan: no metric was told.

    They grow in place: copied at every report, many long histories would be moved about all the time.
    """

    iterations: array[float]
    metrics: array[float]

    @classmethod
    def of(cls, progress: Iterable[Progress]) -> Reports:
        """What was reported."""
        points = tuple(progress)
        return cls(
            array("d", [point.iteration for point in points]),
            array("d", [nan if point.metric is None else point.metric for point in points]),
        )

    def __len__(self) -> int:
        return len(self.iterations)

    def go_on(self, after: int, later: Iterable[Progress]) -> None:
        """After the first so many of these come later ones."""
        new = Reports.of(later)
        for mine, its in ((self.iterations, new.iterations), (self.metrics, new.metrics)):
            del mine[after:]
            mine.extend(its)

    def first(self, count: int) -> Reports:
        """The first so many of them."""
        return self if count >= len(self) else Reports(self.iterations[:count], self.metrics[:count])


def joined(parts: Sequence[array[float]]) -> Array:
    """One after the other, as one array that is not to be written to."""
    return np.frombuffer(b"".join(parts), dtype=np.float64)
