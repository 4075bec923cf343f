"""Whether a policy may use a family: only where it predicts its own runs better than the global prior does.

Each run is predicted from the others (leave one out): the share of the run at t90 by the median of theirs, and the
converged metric by the median of theirs. The error of a run is the sum of two parts, each in units of what is wrong
without a family, so that 2 is about what the prior gets:

- of the share, the absolute difference of logarithms, over the mean absolute deviation of the prior
  (``controller.curves.fit.T90``). Policies go by the iterations left to t90: to believe in twice as many, or in half
  as many, is equally wrong.
- of the converged metric, the absolute difference over the run's own gap, over ``EVEN_METRIC_ERROR``. Without a family
  nothing is known of the converged metric. A known one whose standard deviation is 5 % of the gap gains, and one whose
  standard deviation is 10 % costs more than it gains; so an error between the two is worth as much as knowing nothing.

The prior's error of a run is that of its typical share, plus 1 for the metric. The gate is open where the mean error of
the family is below the mean error of the prior. Both parts count together, not each by itself: the share of few runs is
noisy, and a family that knows where its runs end is worth using even if it knows little of when. The mean counts, not
the median, since a quarter of wrong runs is enough to take away what the others gain.

One run has no others to be predicted from: it says nothing of how alike the runs are, and the gate is closed.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from controller.curves.fit import T90
from controller.families.history import Gate
from controller.families.run import EarlierRun

EVEN_METRIC_ERROR = 0.075
"""An error of the converged metric of this share of the gap makes a prediction worth as much as none."""
_PRIOR_DEVIATION = T90.spread * math.sqrt(2 / math.pi)
_LEAST_GAP = 1e-12


def judge(runs: Sequence[EarlierRun]) -> Gate:
    """Returns the gate of a family by its runs that count, all of one metric."""
    if not runs:
        return Gate(False, "no run of it has finished with a curve that says something")
    if len(runs) == 1:
        return Gate(False, "one run does not show how much they differ")
    error = statistics.mean(_error(run, [*runs[:i], *runs[i + 1 :]]) for i, run in enumerate(runs))
    prior = statistics.mean(_share_error(run, T90.typical) + 1.0 for run in runs)
    if error < prior:
        return Gate(True, None, error, prior)
    reason = f"its runs predict each other no better than runs of any kind (error {error:.2g}, without it {prior:.2g})"
    return Gate(False, reason, error, prior)


def _error(run: EarlierRun, others: Sequence[EarlierRun]) -> float:
    share = math.exp(statistics.median(math.log(_share(other)) for other in others))
    converged = statistics.median(_converged(other) for other in others)
    metric_error = abs(_converged(run) - converged) / max(run.gap, _LEAST_GAP)
    return _share_error(run, share) + metric_error / EVEN_METRIC_ERROR


def _share_error(run: EarlierRun, predicted: float) -> float:
    return abs(math.log(_share(run) / predicted)) / _PRIOR_DEVIATION


def _share(run: EarlierRun) -> float:
    assert run.share_t90 is not None, "a run that counts has reached 90 %"
    return run.share_t90


def _converged(run: EarlierRun) -> float:
    assert run.converged is not None, "a run that counts has a metric"
    return run.converged
