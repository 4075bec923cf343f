"""From the runs of a family to what a policy gets."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence

from controller.families.gate import judge
from controller.families.history import FamilyHistory, Spread
from controller.families.run import EarlierRun
from controller.model import Metric


def history_of(name: str, runs: Sequence[EarlierRun], metric: Metric) -> FamilyHistory:
    """Returns what runs, oldest first, say of a next one whose progress is measured by ``metric``."""
    counted = [run for run in runs if run.counts and (run.metric, run.direction) == (metric.name, metric.direction)]
    return FamilyHistory(
        name=name,
        runs=tuple(runs),
        gate=judge(counted),
        counted=len(counted),
        share_t90=_spread((run.share_t90 for run in counted), of_logarithm=True),
        share_t95=_spread((run.share_t95 for run in counted), of_logarithm=True),
        converged=_spread(run.converged for run in counted),
    )


def _spread(values: Iterable[float | None], *, of_logarithm: bool = False) -> Spread | None:
    """Returns the spread of the values that there are; ``of_logarithm``: its deviation is that of their logarithms."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    scale = [math.log(value) for value in known] if of_logarithm else known
    deviation = statistics.stdev(scale) if len(scale) > 1 else 0.0
    return Spread(statistics.median(known), min(known), max(known), deviation)
