"""The target that a job declares: a level of its metric, and not a share of what it converges to.

The reports show whether the job has crossed it. The curves that are fitted to the history predict when it will. A user
who knows the training declares a value near the one to which it converges, so the target also says which curves are
likely: the nearer the target is to 90 % of a curve's gap, the more likely is the curve. A curve that never reaches the
target keeps the weight that the reports give it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.curves.candidates import Candidates, iteration_at
from controller.curves.histories import Histories
from controller.curves.target_spec import PRIOR_SHARE, T90, prior_shares
from controller.curves.weighted import Estimate, estimates, in_order, quantiles, reweighted

Array = NDArray[np.float64]

USUAL_SPREAD, LEAST_USUAL = 0.12, 0.01
"""A declared target is 90 % of a run's gap on average, with this standard deviation. The second number is the least
density of any share."""

NUMBERS = ("closed", "last closed", "crossed", "since", "reach", "share of the fit's", "room")
"""The features of a declared target, beside those of any target."""
MAX_CLOSED = 3.0
"""Cut shares of a gap at this value."""
LEAST_GAP = 1e-12
"""A smaller gap is none."""


def closed(gain: Array, gap: Array) -> Array:
    """Returns the share of each gap (J,) that a gain (J,) closes: at most ``MAX_CLOSED``, which it is without a gap."""
    share = np.divide(gain, gap, out=np.full(len(gap), MAX_CLOSED), where=gap > LEAST_GAP)
    clipped: Array = np.clip(share, 0.0, MAX_CLOSED)
    return clipped


class Draws(NamedTuple):
    """Curves that fit J histories, with their weights.

    ``candidates`` are their parameters. ``ends`` (J, E) are the iterations at which the run may end. ``converged`` and
    ``likely``, both (J, G, S, E), are the metric to which each curve converges and its weight. G, S and E count
    candidates, draws of each, and ends.
    """

    candidates: Candidates
    ends: Array
    converged: Array
    likely: Array


class Declared(NamedTuple):
    """The target that a job declares: the iteration at which its metric crosses that value.

    ``crossed`` is the iteration at which the reports show it crossed; None: they do not. ``limit`` is the best value
    that the metric can have, where the target is beyond it; None: it is not. ``reach`` is the fit's chance that the run
    gets to the target by its end, 1 where it was crossed. ``rate`` is the best chance to reach the target per iteration
    spent on it, as recorded runs tell; where the run's length is not known, as the fit tells.
    """

    iteration: Estimate
    crossed: float | None
    limit: float | None
    reach: float
    rate: float


@dataclass(frozen=True, slots=True, eq=False)
class DeclaredTargets:
    """The targets of J histories that all declare one.

    ``iteration`` (J, 3) of the crossing, low, median and high; ``chance`` (J,) that it comes yet; ``reach`` (J,);
    ``rate`` (J,): the chance over the mean iterations until then, by the fit alone.
    """

    iteration: Array
    chance: Array
    reach: Array
    rate: Array

    @classmethod
    def of(cls, histories: Histories, draws: Draws) -> DeclaredTargets:
        """Returns the targets by the fit."""
        n = len(histories.last)
        last = histories.last[:, None]
        end = np.broadcast_to(draws.ends[:, None, None, :], draws.likely.shape).reshape(n, -1)
        given = draws.likely.reshape(n, -1)
        crossing = _crossing(histories, draws)
        comes = crossing <= end
        seen = np.isfinite(histories.crossed)
        reach = np.add.reduce(np.where(comes, given, 0.0), axis=1) / np.add.reduce(given, axis=1)
        start = histories.start[:, None]
        share = (start - histories.target[:, None]) / np.maximum(start - draws.converged.reshape(n, -1), 1e-12)
        usual = LEAST_USUAL + np.exp(-0.5 * ((share - T90.fraction) / USUAL_SPREAD) ** 2)
        weight = reweighted(given, usual * T90.density(np.minimum(np.maximum(crossing, 0.0), end) / end))
        prior = (draws.ends[:, :, None] * prior_shares(T90)).reshape(n, -1)
        # The reports do not show a crossing so far, so it comes later, by the fit and by the prior.
        later = prior > last
        by_prior = PRIOR_SHARE * later / np.maximum(np.add.reduce(later, axis=1), 1.0)[:, None]
        crossing = np.concatenate((np.minimum(np.maximum(crossing, last), end), prior), axis=1)
        weight = np.concatenate(((1 - PRIOR_SHARE) * weight, by_prior), axis=1)
        ahead = np.where(np.concatenate((comes, later), axis=1) & ~seen[:, None], weight, 0.0)
        chance = np.minimum(np.add.reduce(ahead, axis=1), 1.0)
        far = np.add.reduce(ahead * (crossing - last), axis=1)
        left = np.divide(far, chance, out=np.zeros(n), where=chance > 0)
        return cls(
            iteration=np.where(seen[:, None], histories.crossed[:, None], quantiles(*in_order(crossing, weight))),
            chance=chance,
            reach=np.where(seen, 1.0, reach),
            rate=chance / np.maximum(left, 1.0),
        )

    def outlook(self, histories: Histories) -> Array:
        """Returns how likely the target comes yet, and how far ahead it is, in lengths of the run (J, 4)."""
        end = np.maximum(histories.end, histories.last)[:, None]
        return np.concatenate((self.chance[:, None], (self.iteration - histories.last[:, None]) / end), axis=1)

    def numbers(self, histories: Histories, converged: Array) -> Array:
        """Returns ``NUMBERS`` (J, 7) of histories of known length. ``converged`` (J,) is the fit's converged metric."""
        end = np.maximum(histories.end, histories.last)
        gap = histories.start - histories.target
        is_gap = gap > LEAST_GAP

        seen = np.isfinite(histories.crossed)
        crossed = np.where(seen, histories.crossed, 0.0)
        fitted = np.maximum(histories.start - converged, 1e-12)
        limited = np.isfinite(histories.least)
        room = np.divide(
            histories.start - np.where(limited, histories.least, 0.0), gap, out=np.zeros(len(gap)), where=is_gap
        )
        return np.stack(
            (
                closed(histories.start - histories.reached[:, -1], gap),
                closed(histories.start - histories.value[:, -1], gap),
                np.where(seen, crossed / end, 2.0),
                np.where(seen, (histories.last - crossed) / end, -1.0),
                self.reach,
                np.clip(gap / fitted, 0.0, MAX_CLOSED),
                np.where(limited, np.clip(room, 0.0, MAX_CLOSED), MAX_CLOSED),
            ),
            axis=1,
        )

    def as_values(self, histories: Histories, rate: Array) -> list[Declared]:
        """Returns the target of each history. ``rate`` (J,) becomes their ``rate``."""
        seen = np.isfinite(histories.crossed)
        beyond = ~seen & (histories.target < histories.least - 1e-9 * np.abs(histories.target))
        limit = histories.least * histories.sign * histories.size
        columns = (
            estimates(self.iteration),
            [crossed if crossed < inf else None for crossed in histories.crossed.tolist()],
            [best if is_beyond else None for best, is_beyond in zip(limit.tolist(), beyond.tolist(), strict=True)],
            self.reach.tolist(),
            rate.tolist(),
        )
        return [Declared(*values) for values in zip(*columns, strict=True)]


def _crossing(histories: Histories, draws: Draws) -> Array:
    """Returns the iteration at which each curve crosses the target (J, D); infinite where it never does."""
    level = histories.target[:, None, None, None]
    c0, c1 = draws.candidates.c0[..., None], draws.candidates.c1[..., None]
    # A flat curve is at its only value from the start: it is below the level or never gets there.
    flat = np.broadcast_to(np.where(c0 <= level, np.inf, -1.0), draws.likely.shape).copy()
    ratio = np.divide(level - c0, c1, out=flat, where=np.broadcast_to(c1 > 1e-12, flat.shape))
    return iteration_at(ratio, draws.candidates.scale[:, :, None, None]).reshape(len(histories.last), -1)
