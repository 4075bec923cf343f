"""What ``wrap`` and ``join`` do where a script says nothing about late gradients. Pure.

[ours] Of the ways that let only the layers be late that need it, this one saves most time to a target, in the mean over
three tasks (``evaluation.sasp.study.chosen``). Where staleness would save less than 5 % of an iteration, no layer is
late.
"""

from __future__ import annotations

from sasp.core.scheme import Scheme
from sasp.core.staleness import Prediction

STALENESS = 1
PARTIAL = True
PREDICTION: Prediction = "local"
SCHEME = Scheme("bsp", STALENESS, "sasp")
"""Of a parameter server and its workers."""


def ways(partial: bool | None, prediction: Prediction | None, *, late: bool, others: bool) -> tuple[bool, Prediction]:
    """Return ``partial`` and ``prediction``, with their defaults where a script does not give them (None).

    Both are off unless gradients may be late and all workers' gradients of an iteration make one step (``late``), and
    where the script gives another option beside which they would be refused (``others``).
    """
    usual = late and not others
    return (
        (PARTIAL and usual) if partial is None else partial,
        (PREDICTION if usual else "none") if prediction is None else prediction,
    )
