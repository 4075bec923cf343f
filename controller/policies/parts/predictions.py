"""When a job reaches its targets, by its fit, as a plan tells people."""

from __future__ import annotations

from typing import Literal

from controller.curves.fit import T90, Fit
from controller.curves.weighted import Estimate
from controller.model import Job, Prediction

LIKELY = 0.5
"""A target is taken as reached from this chance on."""


def predictions(job: Job, fitted: Fit | None, passed: int | None = None) -> tuple[Prediction, ...]:
    """Returns the prediction of each target of a fit, of T90 and T95 in this order; none without a fit.

    That of the target which the job declares comes last. ``passed`` counts the targets that the policy takes as
    reached; None: it does not judge the job by them, and the fit alone says it. So no target is reached in the policy's
    reason, and expected in its prediction.
    """
    if fitted is None:
        return ()
    done = job.iterations_done
    found = [
        _prediction(
            "t90" if target.fraction == T90.fraction else "t95",
            target.metric,
            target.iteration,
            done,
            is_reached=target.crossed >= LIKELY if passed is None else place < passed,
        )
        for place, target in enumerate(fitted.targets)
    ]
    declared = fitted.declared
    if declared is not None and job.target is not None:
        found.append(
            _prediction("target", job.target, declared.iteration, done, is_reached=declared.crossed is not None)
        )
    return tuple(found)


def _prediction(
    name: Literal["t90", "t95", "target"], metric: float, at: Estimate, done: float, *, is_reached: bool
) -> Prediction:
    """Returns a prediction that lies before what a job has done where it is reached, and not before it elsewhere."""
    iteration = min(at.median, done) if is_reached else max(at.median, done)
    return Prediction(name, metric, iteration, min(at.low, iteration), max(at.high, iteration), is_reached)
