"""The shares of convergence that are predicted, and when runs typically reach them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Array = NDArray[np.float64]

PRIOR_SHARE = 0.15
"""Weigh the prior alone by this share, and the fit by the rest."""
PRIOR_DRAWS = 20


@dataclass(frozen=True, slots=True)
class TargetSpec:
    """A target to predict: ``fraction`` is its share of convergence.

    The share of a run after which it comes has a log-normal prior: ``typical`` is its median, ``spread`` the standard
    deviation of its logarithm. ``learned`` says that trees learned from recorded runs predict this target.
    """

    fraction: float
    typical: float
    spread: float
    learned: bool = False

    def shares(self, n: int) -> Array:
        """Returns n equally likely shares of a run (at most 1)."""
        shares: Array = np.minimum(self.typical * np.exp(self.spread * ndtri((np.arange(n) + 0.5) / n)), 1.0)
        return shares

    def density(self, share: Array) -> Array:
        """Returns the prior density over the logarithm of the share, up to a constant factor."""
        with np.errstate(divide="ignore"):
            density: Array = np.exp(-0.5 * (np.log(share / self.typical) / self.spread) ** 2)
        return density


T90 = TargetSpec(0.90, typical=0.25, spread=0.6, learned=True)
T95 = TargetSpec(0.95, typical=0.35, spread=0.6, learned=True)


@cache
def prior_shares(spec: TargetSpec) -> Array:
    """Returns ``PRIOR_DRAWS`` equally likely shares of a run after which a target comes."""
    return spec.shares(PRIOR_DRAWS)
