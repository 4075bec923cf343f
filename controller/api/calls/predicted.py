"""How far off the predicted time of an iteration was, by the pace that was measured. Pure."""

from __future__ import annotations

from controller.declared.declared import PredictedSeconds
from controller.wire import JobPace, PredictionCheck
from controller.wire.base import Unit


def check(
    predicted: PredictedSeconds | None, pace: JobPace | None, unit: Unit, iterations_of_epoch: float | None
) -> PredictionCheck | None:
    """Return a prediction beside what was measured; None without a prediction.

    The highest pace counts, because a prediction cannot know who else will use the network. Where it counts epochs,
    ``iterations_of_epoch`` is how many iterations one has; None: not known, so nothing can be said.
    """
    if predicted is None:
        return None
    counted = iterations_of_epoch if unit == "epoch" else 1.0
    fastest = 0.0 if pace is None or counted is None else max(pace.now, pace.best or 0.0) * counted
    measured = 1.0 / fastest if fastest > 0 else None
    return PredictionCheck(
        seconds=predicted.seconds,
        low=predicted.low,
        high=predicted.high,
        measured=measured,
        off=None if measured is None else measured / predicted.seconds - 1.0,
    )
