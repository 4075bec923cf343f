"""The sentences that say why a job of JPAS has its place: the seconds that jobs are compared by, then their cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from controller.quantities import duration

COST = "needs {} of its busiest port for each expected milestone"
"""The seconds are 1 / the index, where a chance of one half counts as half a milestone. The milestones are the target
of a job or 90 % of its convergence, 95 %, and its end."""
USED = "has used {} of its busiest port"
"""The seconds are the attained service: without a prediction it is the best estimate of what a job still needs."""
LEFT = "needs {} of its busiest port until its end"
TO_TARGET = "needs {} of its busiest port until its next target"
GAIN = "costs {} of its busiest port to gain as much as its whole target"


def reason(counted: str, seconds: float, weight: float, why: str, beside: str = "") -> str:
    """Returns why a job has its place. ``seconds`` is what jobs are compared by, which is already over ``weight``.

    ``beside`` says what the next job has, see ``neighbours``.
    """
    rule = "" if weight == 1 else f", divided by its weight {weight:g} that is {duration(seconds)}"
    text = f"{counted.format(duration(seconds * weight))}{rule} ({beside}lowest goes first)"
    return f"{text}; {why}" if why else text


def neighbours(order: Sequence[str], tiers: Mapping[str, float], seconds: Mapping[str, float]) -> dict[str, str]:
    """Returns what the job just before each job has, or just after the first one: what its own number is compared with.

    ``order`` are all jobs, first served first. Jobs of other tiers are not compared by these seconds.
    """
    said = {}
    for place, job in enumerate(order):
        other = order[place - 1] if place > 0 else order[1] if len(order) > 1 else job
        if other != job and tiers[other] == tiers[job]:
            said[job] = f"{other}, {'before' if place > 0 else 'after'} it: {duration(seconds[other])}; "
    return said


def iterations(count: float) -> str:
    """Returns a number of iterations in words: "1 iteration", "23 iterations"."""
    return f"{count:.0f} iteration{'' if round(count) == 1 else 's'}"


def promoted_reason(otherwise: str, waited_seconds: float) -> str:
    """Returns why a job holds the first class by ageing for a period. ``otherwise`` is why it has its place without."""
    waited = duration(waited_seconds)
    return f"goes first for one period because it had not been first for {waited} (ageing); {otherwise}"
