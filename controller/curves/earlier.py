"""The earlier runs of a job's family, as arrays for the fit of the job's history.

``controller.families.earlier`` makes them from a family whose runs predict each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.curves.target_spec import T90, TargetSpec

Array = NDArray[np.float64]

PRIOR_RUNS = 1.0
"""The prior's spread of the share at t90 counts as much as so many runs, because few runs may be alike by chance."""


class EarlierCurve(NamedTuple):
    """A run. ``share_t90`` is the share of it at t90. ``levels`` (P,) are its best running medians after ``shares``
    (P,) of it, with their sign turned so that they fall.
    """

    share_t90: float
    shares: Array
    levels: Array


@dataclass(frozen=True, slots=True)
class EarlierRuns:
    """R runs. ``digest`` is a hash of all other fields, so only it is compared.

    ``share`` is the share of the run at t90: its median, lowest and highest value, and the standard deviation of its
    logarithm. ``shares`` (R,) has the value of each run. ``converged`` has the median and the standard deviation of the
    converged metric, in its units. ``level`` and ``at``, both (R, P), are each run's best running median so far, with
    its sign turned so that it falls, and the share of the run at that point. A run with fewer points repeats its last.
    """

    digest: bytes
    share: tuple[float, float, float, float] = field(compare=False)
    converged: tuple[float, float] = field(compare=False)
    shares: Array = field(compare=False)
    level: Array = field(compare=False)
    at: Array = field(compare=False)

    @classmethod
    def of(
        cls,
        runs: Sequence[EarlierCurve],
        share: tuple[float, float, float, float],
        converged: tuple[float, float],
        points: int,
    ) -> EarlierRuns:
        """Returns the value of at least one run, each with at most ``points`` points."""
        shares = np.array([run.share_t90 for run in runs])
        more = [(0, points - len(run.levels)) for run in runs]
        level = np.stack([np.pad(run.levels, pad, mode="edge") for run, pad in zip(runs, more, strict=True)])
        at = np.stack([np.pad(run.shares, pad, constant_values=1.0) for run, pad in zip(runs, more, strict=True)])
        digest = blake2b(repr((share, converged)).encode(), digest_size=16)
        for values in (shares, level, at):
            values.flags.writeable = False
            digest.update(values.tobytes())
        return cls(digest.digest(), share, converged, shares, level, at)

    @property
    def count(self) -> int:
        """Returns how many runs these are."""
        return len(self.shares)

    @property
    def t90(self) -> TargetSpec:
        """Returns the distribution of the share of the run at t90: that of these runs, and a little of the prior."""
        median, _, _, deviation = self.share
        variance = (self.count * deviation**2 + PRIOR_RUNS * T90.spread**2) / (self.count + PRIOR_RUNS)
        return TargetSpec(T90.fraction, median, variance**0.5)
