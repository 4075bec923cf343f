"""What no order of transfers and no lateness can go below, to stand beside what was measured. Pure.

An iteration takes no less than its computing, and no less than its communication. A scheme whose steps teach no more
than the best plain scheme's needs as many of them. So that many iterations of the longer of the two are the least time
to the target that SaSP could have. The times of an iteration under the claim's schemes are those of the recursion by
which ``partial`` chooses (``sasp.core.partial``), on a network without latency. There a layer is transferred once an
iteration; over a parameter server it goes in and out again, which takes longer where nothing hides it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from evaluation.sasp.rates import TaskRates
from evaluation.sasp.study.arms import Arm
from sasp.core.partial import LayerTimes, Times
from sasp.core.scheme import parse
from simulator.reports.statistics import reduction

_SCHEMES = {"bsp": "none", "bsp+overlap": "none", "bsp+sasp": "none", "bsp+sasp:1": "all"}
"""The schemes of the recursion, and which layers are late there."""


def iteration_seconds(rates: TaskRates, computing: float, ratio: float) -> dict[str, float]:
    """Return the seconds of an iteration by scheme, where communication takes ``ratio`` times ``computing``."""
    whole = sum(rates.sizes)
    layers = tuple(
        LayerTimes(needed * computing, ready * computing, ratio * computing * size / whole)
        for needed, ready, size in zip(rates.needed, rates.ready, rates.sizes, strict=True)
    )
    times = Times(computing, layers)
    return {
        scheme: Arm(scheme, parse(scheme), "all" if late == "all" else "none").seconds(times)
        for scheme, late in _SCHEMES.items()
    }


def bound(
    rates: TaskRates, computing: float, ratio: float, plain: Sequence[tuple[int, float]]
) -> Mapping[str, float | Mapping[str, float]]:
    """Return the bounds. ``plain``: the best plain scheme's iterations and seconds to the target, by seed."""
    least = max(1.0, ratio) * computing
    seconds = [taken for _, taken in plain]
    return {
        "computing_seconds": computing,
        "communication_seconds": ratio * computing,
        "iteration_seconds": iteration_seconds(rates, computing, ratio),
        "target_seconds": fmean(iterations * least for iterations, _ in plain),
        "reduction": reduction(seconds, [iterations * least for iterations, _ in plain]),
        "reduction_computing_alone": reduction(seconds, [iterations * computing for iterations, _ in plain]),
    }
