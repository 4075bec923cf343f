"""What ``--events`` asks for: the policy that the network followed beside the others, and the recorded controller."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from controller.model import MAX_CLASSES
from controller.policies.registry import PolicyError, make
from simulator.errors import InputError
from simulator.limits import Limits
from simulator.recorded.fit import fitted
from simulator.recorded.source import Recorded, reading
from simulator.sweep.sweep import Task, network_of

USUAL_PERIOD_SECONDS = 5.0
"""The period of a controller whose settings are not in the recording: the default of the settings."""


@dataclass(frozen=True, slots=True)
class Followed:
    """The policy that the network of a recording followed, with its options. ``why``: why it cannot be simulated."""

    policy: str
    options: Mapping[str, Any]
    why: str | None = None


def followed(source: Recorded, named: str | None) -> Followed:
    """Returns what the network followed; ``named`` by who asks, or as the recording says. Raises InputError."""
    recording, _ = reading(source)
    policy = named if named is not None else recording.policy
    if policy is None:
        raise InputError(f"{source.source}: it has no plan, so nobody knows what the network followed; use --followed")
    options = recording.options if policy == recording.policy else {}
    try:
        make(policy, options)
    except PolicyError as error:
        return Followed(
            policy, options, f"{policy} could not be simulated, so the estimate's error is not known: {error}"
        )
    return Followed(policy, options)


def recorded_limits(source: Recorded, asked: Limits, options: Namespace) -> Limits:
    """Returns the limits of the recorded controller, where others are not asked for."""
    if options.ideal:
        return asked
    recording, _ = reading(source)
    classes = recording.classes or MAX_CLASSES
    period = recording.period or USUAL_PERIOD_SECONDS
    return replace(
        asked,
        classes=asked.classes if asked.classes is not None else classes,
        period=asked.period if asked.period is not None else period,
    )


def with_fit(tasks: Sequence[Task], progress: Callable[[float], None]) -> tuple[Task, ...]:
    """Returns the tasks with the seconds that the recorded jobs compute. The first task has the followed policy.

    ``progress`` is told the share of the fit that is done.
    """
    first = tasks[0]
    assert isinstance(first.source, Recorded)
    source = fitted(first.source, make(first.policy, first.options), first.limits, network_of(first), progress)
    return tuple(replace(task, source=source) for task in tasks)


def said(limits: Limits) -> str:
    """Returns the limits in a sentence."""
    if limits.classes is None or limits.period is None:
        return "each rank of a policy is a class, and control is instant"
    return (
        f"the controller has {limits.classes} classes, and a plan each {limits.period:g} s and at each arrival and end"
    )
