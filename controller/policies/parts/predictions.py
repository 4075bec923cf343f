"""When a job reaches its targets, by its fit, as a plan tells people."""

from __future__ import annotations

from controller.curves.fit import T90, Fit
from controller.model import Job, Prediction


def predictions(job: Job, fitted: Fit | None) -> tuple[Prediction, ...]:
    """Returns the prediction of each target of a fit, of T90 and T95 in this order; none without a fit.

    That of the target which the job declares comes last.
    """
    if fitted is None:
        return ()
    found = [
        Prediction("t90" if target.fraction == T90.fraction else "t95", target.metric, *target.iteration)
        for target in fitted.targets
    ]
    if fitted.declared is not None and job.target is not None:
        found.append(Prediction("target", job.target, *fitted.declared.iteration))
    return tuple(found)
