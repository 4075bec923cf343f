"""The sentences that say why a job of JPAS has its place: the seconds that jobs are compared by, then their cause."""

from __future__ import annotations

COST = "costs {} of its busiest port for each target that it is expected to reach"
"""The seconds are 1 / the index, where a chance of one half counts as half a target."""
USED = "has used {} of its busiest port"
"""The seconds are the attained service: without a prediction it is the best estimate of what a job still needs."""
LEFT = "needs {} of its busiest port until its end"
TO_TARGET = "needs {} of its busiest port until its next target"
GAIN = "costs {} of its busiest port to gain as much as its whole target"


def reason(counted: str, seconds: float, weight: float, why: str) -> str:
    """Returns why a job has its place. ``seconds`` is what jobs are compared by, which is already over ``weight``."""
    rule = "lowest goes first" if weight == 1 else f"divided by its weight {weight:g}, lowest goes first"
    text = f"{counted.format(f'{seconds * weight:.1f} s')} ({rule})"
    return f"{text}; {why}" if why else text


def promoted_reason(otherwise: str, waited_seconds: float) -> str:
    """Returns why a job holds the first class by ageing for a period. ``otherwise`` is why it has its place without."""
    return f"goes first for one period because it had not been first for {waited_seconds:.1f} s (ageing); {otherwise}"
