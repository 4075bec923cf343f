"""The arms of the study in the simulator, by their names: a policy with its options, and the limits that it has.

``POLICY:OPTION=VALUE,...@LIMIT=VALUE,...``, such as ``beamer``, ``beamer:horizon=study`` or
``beamer@period=1,classes=all``. Limits that are not named are those of the testbed. ``period=none``: plans are made the
moment that anything changes. ``classes=all``: each band of the order has a class. Two arms are no policies: ``least``
has the bounds that no order beats (``evaluation.beamer.bounds.least``), and ``search`` the best fixed order that local
search finds (``evaluation.beamer.bounds.search``), which knows everything.
"""

from __future__ import annotations

from controller.policies.base import Policy
from controller.policies.registry import PolicyError, make, option_value
from evaluation.beamer.bounds.least import least
from evaluation.beamer.bounds.search import search
from evaluation.beamer.simulation import SimStudies, Times, run
from simulator.limits import Limits
from topologies.experiments.workload import PERIOD_SECONDS

FAIR = "fair"
TESTBED = Limits(classes=7, period=PERIOD_SECONDS)
Results = dict[str, Times]
_LIMITS = ("period", "classes")


def measure(arm: str, sim: SimStudies, evaluations: int) -> Results:
    """Returns the results of an arm by their names. ``evaluations``: those of a search. Raises PolicyError."""
    name, _, text = arm.partition("@")
    limits = limits_of(text)
    if name == "least":
        bounds = least(sim)
        return {arm: Times(bounds.together), f"{arm} alone": Times(bounds.alone, bounds.rungs)}
    if name == "search":
        found = search(sim, limits, evaluations=evaluations)
        return {arm: found.times, f"{arm} start": found.start}
    return {arm: run(sim, policy_of(name), limits)}


def policy_of(text: str) -> Policy:
    """Returns the policy of an arm without its limits. Raises PolicyError."""
    name, _, options = text.partition(":")
    return make(name, {key: option_value(value) for key, value in _pairs(options)})


def limits_of(text: str) -> Limits:
    """Returns the limits of an arm. Raises PolicyError for a limit that does not exist, and for its value."""
    named = dict(_pairs(text))
    if unknown := [key for key in named if key not in _LIMITS]:
        raise PolicyError(f"limit {unknown[0]}: there is no such limit; there are {', '.join(_LIMITS)}")
    try:
        period, classes = named.get("period"), named.get("classes")
        return Limits(
            period=TESTBED.period if period is None else None if period == "none" else float(period),
            classes=TESTBED.classes if classes is None else None if classes == "all" else int(classes),
        )
    except ValueError as error:
        raise PolicyError(f"limits {text}: {error}; period is none or seconds, classes is all or a number") from error


def _pairs(text: str) -> list[tuple[str, str]]:
    return [(key, value) for key, _, value in (pair.partition("=") for pair in text.split(",") if pair)]
