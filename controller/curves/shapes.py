"""The shape of a metric history in a few numbers, free of its units and of how long the run is.

What tells whether a run has got most of what it will get: how much of its length is done, how much room the metric has
to the best that it can be, how much of the gain so far had come after an eighth, a quarter, half, ... of it, when
shares of that gain were reached first, how much of it came lately, how much the metric jitters, and how far its best
single report is above. Levels are of the best running median of three so far, as the targets are defined.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from controller.curves.histories import Histories

Array = NDArray[np.float64]

MOMENTS = (0.125, 0.25, 0.5, 0.75, 0.875)
"""The gain so far is measured at these shares of the iterations done."""
LEVELS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.98)
"""The first moment is measured at which these shares of the gain so far were reached."""
LATELY = (0.02, 0.04, 0.08, 0.16, 0.32)
"""The gain is measured in the latest iterations, in windows of these shares of the run's length."""
NUMBERS = (
    *("done", "room", "jitter", "last", "above"),
    *(f"by {m:g}" for m in MOMENTS),
    *(f"until {x:g}" for x in LEVELS),
    *(f"in the last {x:g}" for x in LATELY),
)
LEAST_GAIN = 1e-3
"""A history that has gained less than this share of its size has not begun to learn."""
MOST_ROOM = 100.0
USUAL_ROOM = 0.2
"""A metric that has no best value is given this room, which is typical of the recorded runs."""


def shapes(histories: Histories) -> Array:
    """``NUMBERS`` (J, 21) of histories of known length."""
    last = np.maximum(histories.last, 1e-9)
    # Bin by bin, (BINS, J), so that what is compared and reduced together lies side by side.
    reached, iteration = (np.ascontiguousarray(rows.T) for rows in (histories.reached, histories.iteration))
    used = np.ascontiguousarray(histories.weight.T) > 0
    gain = np.maximum(histories.start - reached, 0.0)
    best = np.maximum(gain[-1], LEAST_GAIN)
    limited = np.isfinite(histories.least)
    room = (histories.start - np.where(limited, histories.least, 0.0)) / best - 1.0
    gained = np.where(np.isfinite(gain), gain, 0.0) / best
    when = np.where(used, iteration / last, -np.inf)
    by = [np.maximum.reduce(np.where(when <= moment, gained, 0.0), axis=0) for moment in MOMENTS]
    end = np.maximum(histories.end, last)
    before = [histories.last - share * end for share in LATELY]
    lately = [1.0 - np.maximum.reduce(np.where(used & (iteration <= then), gained, 0.0), axis=0) for then in before]
    until = [np.minimum.reduce(np.where(used & (gained >= level), when, 1.0), axis=0) for level in LEVELS]
    return np.stack(
        (
            histories.last / end,
            np.where(limited, np.clip(room, 0.0, MOST_ROOM), USUAL_ROOM),
            histories.noise / best,
            (histories.start - histories.value[:, -1]) / best,
            np.maximum(reached[-1] - histories.best, 0.0) / best,
            *by,
            *until,
            *lately,
        ),
        axis=1,
    )
