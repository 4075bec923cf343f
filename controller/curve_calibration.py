"""What recorded runs correct in a fit: how likely a target is passed already, and how far ahead it is if not.

Fits of a few simple curves err alike on most real ones: near a target they see it farther ahead than it is, and they do
not know that a metric far below the best that it can be is seldom done, nor that a run which is nearly over mostly is.
Four numbers of a history say how much to correct:

* the log-odds that the target is passed, as fitted;
* the logarithm of the iterations left, as fitted, over those done;
* the logarithm of the share of the run that is done;
* the logarithm of the metric's room: what is left to the best that it can be (an accuracy's 1), over the gain so far.

From them a logistic regression gives the chance that the target is passed, and a Poisson regression with a logarithmic
link the share of the run that is left to a target ahead. Their coefficients were learned by
``tests.calibrate_curves`` from the recorded curves marked ``study``, and from no other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from controller.curve_histories import Histories

Array = NDArray[np.float64]

SUREST = 0.003
"""No fit is believed to be surer than this of either side."""
LEAST_LEFT = 1e-3
"""Of the iterations done: a target ahead is at least so far ahead."""
LEAST_ROOM = 0.01
USUAL_ROOM = 0.2
"""The room of a metric that has no best value: the typical one of the recorded runs."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Coefficients of 1 and of the four numbers: for the log-odds of passed, and for the log share of the run left."""

    passed: tuple[float, float, float, float, float]
    left: tuple[float, float, float, float, float]


CALIBRATION_90 = Calibration(
    passed=(1.154, 0.590, -0.690, 1.772, -1.346),
    left=(-2.016, 0.058, 0.252, -0.069, 0.750),
)
CALIBRATION_95 = Calibration(
    passed=(1.841, 0.770, -0.822, 2.764, -0.610),
    left=(-1.783, -0.028, 0.466, 0.124, 0.207),
)


def signs(histories: Histories, chance: Array, left: Array) -> Array:
    """The four numbers after a 1 (J, 5) of histories of known length.

    ``chance`` (J,) that a target is ahead, and the iterations ``left`` (J,) until then if it is, as fitted.
    """
    done = np.maximum(histories.last, 1e-9)
    best = histories.reached[:, -1]
    gain = histories.start - best
    known = (histories.sign < 0) & np.isfinite(histories.least) & (gain > 0)
    room = np.divide(best - histories.least, gain, out=np.full(len(done), USUAL_ROOM), where=known)
    return np.stack(
        (
            np.ones(len(done)),
            logit(np.clip(1.0 - chance, SUREST, 1.0 - SUREST)),
            np.log(np.maximum(left / done, LEAST_LEFT)),
            np.log(done / np.maximum(histories.end, done)),
            np.log(np.clip(room, LEAST_ROOM, 1.0)),
        ),
        axis=1,
    )


def corrected(calibration: Calibration, histories: Histories, chance: Array, left: Array) -> tuple[Array, Array]:
    """``chance`` and ``left``, see ``signs``, as recorded runs correct them."""
    numbers = signs(histories, chance, left)
    end = np.maximum(histories.end, histories.last)
    further = np.minimum(end * np.exp(numbers @ np.array(calibration.left)), end - histories.last)
    return expit(-numbers @ np.array(calibration.passed)), further
