"""Distinguishes a new launch of a job on a host from a repeated or a late message of an earlier one. Pure."""

from __future__ import annotations

from enum import Enum

from controller.declared.parts.host_part import HostPart
from controller.declared.parts.part import Part

SAME_LAUNCH_SECONDS = 2.0
"""Take two launches on a host for the same one where they differ by at most this: an agent that starts again computes
the start of a process anew, from a clock that was set a little."""

EARLY_SECONDS = 1.0
"""A launch may seem to begin this long before the end of the launch before it: agents look once a second."""


class Launch(Enum):
    """What the part of a host is, beside the part that is known of the same host."""

    NEW = "new"
    """The first part of the host in this run, or that of another launch."""
    SAME = "same"
    """The part of the launch that is known, which runs."""
    LATE = "late"
    """A message from before the end, or from before the launch that is known."""
    UNTOLD = "untold"
    """The part that is known is over, and the message does not tell of which launch it is."""


def launch_of(part: Part, known: HostPart | None, began: float) -> Launch:
    """Returns what ``part`` is beside the ``known`` part of its host; None: there is none.

    ``began`` is the part's arrival by the controller's clock.
    """
    if known is None:
        return Launch.NEW
    before, now = known.part.arrival, part.arrival
    if before is None or now is None:
        if known.is_running:
            return Launch.SAME
        if now is None:
            return Launch.UNTOLD
        return Launch.NEW if is_after(began, known.over_at) else Launch.LATE
    if now > before + SAME_LAUNCH_SECONDS:
        return Launch.NEW
    is_of_it = now >= before - SAME_LAUNCH_SECONDS
    return Launch.SAME if is_of_it and known.is_running else Launch.LATE


def is_after(began: float, over_at: float | None) -> bool:
    """Returns whether a launch has begun after an end. Both times are by the controller's clock."""
    return over_at is None or began > over_at - EARLY_SECONDS


def is_of_launch(known: HostPart, time: float) -> bool:
    """Returns whether what a host knew at ``time``, by its own clock, can be of the part's launch."""
    return known.part.arrival is None or time >= known.part.arrival - SAME_LAUNCH_SECONDS


def is_meant(known: HostPart, arrival: float) -> bool:
    """Returns whether the part's launch is that of ``arrival``, by the host's clock, or one before it."""
    return known.part.arrival is None or known.part.arrival <= arrival + SAME_LAUNCH_SECONDS
